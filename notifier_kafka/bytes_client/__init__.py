"""The plain bytes client: a queue of bytes over the same transports.

Public path: ``notifier_kafka.client``.
"""
