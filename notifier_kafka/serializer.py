"""The name under which programs written for oslo.messaging also find the serializers."""

from notifier_kafka.wire.serializer import JsonPayloadSerializer, NoOpSerializer, Serializer

__all__ = ["JsonPayloadSerializer", "NoOpSerializer", "Serializer"]
