"""Where other programs meet notifications: logging, WSGI.

Private; the public names are in ``notifier_kafka``.
"""
