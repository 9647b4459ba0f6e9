"""Serializers: the user's hooks that convert context and payload, as in oslo.messaging."""

import abc
from typing import Any

from notifier_kafka.wire import json_values


class Serializer(abc.ABC):
    """Converts a program's own objects to JSON values, and back."""

    @abc.abstractmethod
    def serialize_entity(self, ctxt: Any, entity: Any) -> Any:
        """Return ``entity``, a payload, as JSON values."""

    @abc.abstractmethod
    def deserialize_entity(self, ctxt: Any, entity: Any) -> Any:
        """Return what ``serialize_entity`` was given."""

    @abc.abstractmethod
    def serialize_context(self, ctxt: Any) -> Any:
        """Return the context as a dict."""

    @abc.abstractmethod
    def deserialize_context(self, ctxt: Any) -> Any:
        """Return what ``serialize_context`` was given."""


class NoOpSerializer(Serializer):
    """Leaves everything as it is."""

    def serialize_entity(self, ctxt: Any, entity: Any) -> Any:  # noqa: ARG002
        return entity

    def deserialize_entity(self, ctxt: Any, entity: Any) -> Any:  # noqa: ARG002
        return entity

    def serialize_context(self, ctxt: Any) -> Any:
        return ctxt

    def deserialize_context(self, ctxt: Any) -> Any:
        return ctxt


class JsonPayloadSerializer(NoOpSerializer):
    """Converts payloads to JSON values before any channel gets them."""

    # Static and with this name for the context, because programs call it on the class.
    @staticmethod
    def serialize_entity(context: Any, entity: Any) -> Any:  # noqa: ARG004
        """Return ``entity`` converted by the rules of ``json_values``, or raise ``EncodeError``.

        As in oslo.messaging, an object of the program's own becomes a dict of its attributes.
        """
        return json_values.convert(entity, "payload", instances=True)
