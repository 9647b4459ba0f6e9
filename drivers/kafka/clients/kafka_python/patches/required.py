"""The private and undocumented names of kafka-python that the patches use, and a check that they are there.

A patch that meets another version than it was written for must not fail silently, or in a thread.
"""

import dis
import importlib
import inspect
from typing import Any

import kafka

from notifier_kafka.errors import ConfigurationError

SUPPORTED = "kafka-python>=3.0.1,<3.1"

ATTRIBUTE = None

REQUIRED: dict[str, dict[str, str | None]] = {
    "kafka.KafkaConsumer": {"_client": ATTRIBUTE, "_coordinator": ATTRIBUTE, "_fetcher": ATTRIBUTE},
    "kafka.KafkaProducer": {"_closed": ATTRIBUTE, "_sender": ATTRIBUTE},
    "kafka.producer.sender.Sender": {"force_close": "self"},
    "kafka.cluster.ClusterMetadata": {
        "config": ATTRIBUTE,
        "topic_id": "self, topic_name",
        "unauthorized_topics": ATTRIBUTE,
    },
    "kafka.net.inet.KafkaNetSocket": {"sock_connect": "self, net, sock, sockaddr, timeout_at="},
    "kafka.net.selector.NetworkSelector": {
        "__init__": "self, **configs",
        "_io_thread": ATTRIBUTE,
        "run": "self, coro, *args",
    },
    "kafka.net.compat.KafkaNetClient": {
        "__init__": "self, net=, manager=, **configs",
        "_manager": ATTRIBUTE,
        "_net": ATTRIBUTE,
    },
    "kafka.net.manager.KafkaConnectionManager": {
        "__init__": "self, net, **configs",
        "_build_transport": "self, node, timeout_at=",
        "_conns": ATTRIBUTE,
        "cluster": ATTRIBUTE,
        "get_connection": (
            "self, node_id, timeout_ms=, pop_on_close=, refresh_metadata_on_err=, reset_backoff_on_connect="
        ),
        "wait_for": "self, future, timeout_ms",
    },
    "kafka.net.connection.KafkaConnection": {"close_future": ATTRIBUTE, "init_future": ATTRIBUTE},
    "kafka.net.transport.KafkaTCPTransport": {"_sock_recv": "self"},
    "kafka.net.transport.KafkaSSLTransport": {"_sock_recv": "self"},
    "kafka.coordinator.consumer.ConsumerCoordinator": {
        "_build_metadata_snapshot": "self, subscription, cluster",
        "_do_join_and_sync_async": "self",
        "_generation": ATTRIBUTE,
        "_join_task": ATTRIBUTE,
        "_manager": ATTRIBUTE,
        "_net": ATTRIBUTE,
        "_on_join_prepare_async": "self, generation, member_id, timeout_ms=",
        "_subscription": ATTRIBUTE,
        "coordinator_id": ATTRIBUTE,
        "rejoin_needed": ATTRIBUTE,
        "rejoining": ATTRIBUTE,
        "state": ATTRIBUTE,
    },
    "kafka.coordinator.base.Generation": {"has_member_id": "self"},
    "kafka.structs.MemberState": {"REBALANCING": ATTRIBUTE},
    "kafka.consumer.subscription_state.SubscriptionState": {"reset_group_subscription": "self"},
    "kafka.consumer.fetcher.Fetcher": {
        "PartitionRecords": ATTRIBUTE,
        "_next_in_line_exception_metadata": ATTRIBUTE,
        "_next_partition_records": ATTRIBUTE,
    },
    "kafka.consumer.fetcher.Fetcher.PartitionRecords": {
        "_unpack_records": "self, tp, records, key_deserializer, value_deserializer",
        "drain": "self",
        "next_fetch_offset": ATTRIBUTE,
        "topic_partition": ATTRIBUTE,
    },
    "kafka.record.memory_records.MemoryRecords": {
        "MAGIC_OFFSET": ATTRIBUTE,
        "MIN_SLICE": ATTRIBUTE,
        "__init__": "self, bytes_data",
        "_buffer": ATTRIBUTE,
        "_cache_next": "self, len_offset=, log_overhead=",
        "_next_slice": ATTRIBUTE,
        "next_batch": "self, _min_slice=, _magic_offset=",
    },
    "kafka.record.default_records.DefaultRecordBatch": {
        "__init__": "self, buffer",
        "_assert_has_codec": "self, compression_type",
        "_buffer": ATTRIBUTE,
        "_decompressed": ATTRIBUTE,
        "_maybe_uncompress": "self",
        "_pos": ATTRIBUTE,
        "_read_msg": "self, decode_varint=",
        "next_offset": ATTRIBUTE,
    },
}
"""By class: the parameters of a method (``=`` for one with a default), or ATTRIBUTE."""


def check() -> None:
    """Raise ``ConfigurationError`` with the library's version and every name that is not as it should be."""
    unknown = [problem for path, names in REQUIRED.items() for problem in _problems(path, names)]
    if unknown:
        raise ConfigurationError(
            f"kafka-python {kafka.__version__} is not supported: {'; '.join(unknown)}: "
            f"install another one with: pip install '{SUPPORTED}'"
        )


def _problems(path: str, names: dict[str, str | None]) -> list[str]:
    try:
        owner = _resolve(path)
    except (ImportError, AttributeError):
        return [f"there is no {path}"]
    attributes = _attributes_of_instances(owner)
    found = []
    for name, expected in names.items():
        if not (hasattr(owner, name) or (expected is ATTRIBUTE and name in attributes)):
            found.append(f"there is no {path}.{name}")
        elif expected is not ATTRIBUTE and (actual := parameters(getattr(owner, name))) != expected:
            found.append(f"{path}.{name} takes ({actual}) instead of ({expected})")
    return found


def _resolve(path: str) -> Any:
    """Import as much of a dotted path as is a module, and take the rest as attributes."""
    parts = path.split(".")
    found: Any = importlib.import_module(parts[0])
    for number, part in enumerate(parts[1:], start=2):
        if not hasattr(found, part):
            importlib.import_module(".".join(parts[:number]))
        found = getattr(found, part)
    return found


def _attributes_of_instances(owner: type) -> set[str]:
    """Collect what the constructors of a class and of its bases assign to ``self``."""
    constructors = [vars(each)["__init__"] for each in owner.__mro__ if "__init__" in vars(each)]
    return {
        instruction.argval
        for constructor in constructors
        if inspect.isfunction(constructor)
        for instruction in dis.get_instructions(constructor)
        if instruction.opname == "STORE_ATTR"
    }


def parameters(method: Any) -> str:
    """Spell the parameters of a method without its defaults' values."""
    marks: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return ", ".join(
        marks.get(one.kind, "") + one.name + ("" if one.default is one.empty else "=")
        for one in inspect.signature(method).parameters.values()
    )
