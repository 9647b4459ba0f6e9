"""INI options: what there is, how they are read and checked.

Private; the public names are in ``notifier_kafka``.
"""
