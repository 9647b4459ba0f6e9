"""The user's hooks over context and payload: oslo.messaging's serializers."""

import abc
from typing import Any

from notifier_kafka.wire import json_values


class Serializer(abc.ABC):
    """Turns what a program works with into primitives, and back."""

    @abc.abstractmethod
    def serialize_entity(self, ctxt: Any, entity: Any) -> Any:
        """Return ``entity``, a payload, in primitive form."""

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
    """Converts payloads to primitives before any channel sees them."""

    # Static and with this name for the context, because programs call it on the class.
    @staticmethod
    def serialize_entity(context: Any, entity: Any) -> Any:  # noqa: ARG004
        """Return ``entity`` converted by the rules of ``primitives``, or raise ``EncodeError``.

        As in oslo.messaging's, an object of a program's own becomes its attributes.
        """
        return json_values.convert(entity, "payload", instances=True)
