"""``notifier-kafka drivers ...``: list the installed plugins."""

import argparse
from collections.abc import Iterable, Sequence
from importlib import metadata

from notifier_kafka.cli.command import Lister
from notifier_kafka.cli.output import text
from notifier_kafka.contract import plugins
from notifier_kafka.publishing import ordering_keys, transport
from notifier_kafka.publishing.channels import channel

NAMESPACES = (transport.NAMESPACE, "notifier_kafka.kafka_clients", channel.NAMESPACE, ordering_keys.NAMESPACE)
COLUMNS = ("namespace", "name", "target", "distribution", "loads")

Row = tuple[str, str, str, str, str]


class ListDrivers(Lister):
    """List the installed drivers, Kafka clients, channels and key functions.

    The last column tells whether each can be loaded, and if not, what to do.
    """

    def take_action(
        self,
        parsed_args: argparse.Namespace,  # noqa: ARG002 - the signature is cliff's
    ) -> tuple[Sequence[str], Iterable[Row]]:
        return COLUMNS, [row for namespace in NAMESPACES for row in _rows(namespace)]


def _rows(namespace: str) -> list[Row]:
    # stevedore does not tell the distribution of an entry point.
    entries = metadata.entry_points(group=namespace)
    return sorted((namespace, e.name, e.value, _owner(e), _loads(e)) for e in entries)


def _owner(entry: metadata.EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else "?"


def _loads(entry: metadata.EntryPoint) -> str:
    try:
        entry.load()
    except Exception as error:  # noqa: BLE001 - a plugin may raise anything; the list continues
        return f"no: {text.visible(plugins.describe_failure(entry, error))}"
    return "yes"
