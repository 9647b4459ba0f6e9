"""What a transport driver may import, and nothing else.

Public paths: ``notifier_kafka.driver``, ``url``, ``outbox``, ``forks``.
"""
