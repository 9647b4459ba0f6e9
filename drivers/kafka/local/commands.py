"""``notifier-kafka broker ...``: a local Kafka cluster to try things on."""

import argparse
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from notifier_kafka.cli import installed_options, jar_download
from notifier_kafka.cli.command import Command, Lister, ShowOne
from notifier_kafka.cli.output import text
from notifier_kafka.errors import ConfigurationError
from notifier_kafka.jvm import jars

from ..options import LOCAL_GROUP
from .broker_users import ADMIN, CLIENT, MECHANISMS, Security
from .cluster import Cluster
from .saved_state import SIZES

DEFAULT_PORT = 9092
COLUMNS = ("node", "address", "state", "pid", "log")
_FOLLOW_SECONDS = 0.2


def default_directory() -> Path:
    """Return the directory of the cluster when the user gives none."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state, "notifier-kafka", "broker")


def _add_directory(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--directory",
        default=str(default_directory()),
        help="Where the cluster keeps its data, logs and certificates. Default: %(default)s.",
    )


class StartBroker(ShowOne):
    """Start a local Kafka cluster, and print how to connect to it.

    It listens on loopback only and keeps its data. The first start downloads Apache Kafka
    into the user's cache. It runs until 'broker stop'.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add = parser.add_argument
        add("--nodes", type=int, choices=SIZES, help="Number of brokers. Default: 1, or as before.")
        add(
            "--tls",
            action="store_true",
            help="Encrypt connections, with an authority and certificates of its own.",
        )
        add("--sasl", choices=sorted(MECHANISMS), help="Require clients to log in.")
        add(
            "--acls",
            action="store_true",
            help="Allow the user client only what ACLs allow. Needs --sasl or --tls.",
        )
        add(
            "--port",
            type=int,
            help="Port of the first broker; the others take the next ones. 0 takes free ports. "
            f"Default: {DEFAULT_PORT}, or the same as before.",
        )
        _add_directory(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Sequence[str]]:
        cluster = _described(parsed_args)
        cluster.java = installed_options.java_option(self.program.configuration(), LOCAL_GROUP)
        jar_download.fetch(jars.KAFKA, cluster.java)
        cluster.start()
        found = {"transport_url": cluster.url}
        if not cluster.saved_state.security.open:
            found["config_file"] = str(cluster.ini(ADMIN))
        if cluster.saved_state.security.acls:
            found["config_file_of_client"] = str(cluster.ini(CLIENT))
        return tuple(found), tuple(found.values())

    def produce_output(
        self, parsed_args: argparse.Namespace, column_names: Sequence[str], data: Sequence[Any]
    ) -> int:
        if parsed_args.formatter != "table":
            return int(super().produce_output(parsed_args, column_names, data))
        # In the syntax of a configuration file, to copy it from the terminal.
        for name, value in zip(column_names, data, strict=True):
            self.app.stdout.write(f"{name} = {value}\n")
        return 0


def _described(given: argparse.Namespace) -> Cluster:
    last = Cluster.open(given.directory) if Path(given.directory, "cluster.json").exists() else None
    if last and not (given.nodes or given.port or given.tls or given.sasl or given.acls):
        return last
    security = Security(tls=given.tls, sasl=given.sasl, acls=given.acls)
    port = given.port if given.port is not None else 0 if last else DEFAULT_PORT
    nodes = given.nodes or (len(last.nodes) if last else SIZES[0])
    return Cluster(given.directory, nodes, port=port, security=security)


class StopBroker(Lister):
    """Stop the local Kafka cluster, and show its brokers. The data stay."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_directory(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        cluster = Cluster.open(parsed_args.directory)
        cluster.stop()
        return _status(cluster)


class ShowBroker(Lister):
    """Show the brokers of the local Kafka cluster, and whether they run."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_directory(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        return _status(Cluster.open(parsed_args.directory))


class ShowBrokerLog(Command):
    """Print the log of a local Kafka broker."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("--node", type=int, default=1, help="Number of the broker, from 1. Default: 1.")
        parser.add_argument("--follow", action="store_true", help="Print new lines too, until interrupted.")
        _add_directory(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        log = Cluster.open(parsed_args.directory).logs(parsed_args.node)
        try:
            for part in _read(log, follow=parsed_args.follow):
                # Clients control some of the text that a broker logs.
                end = "\n" if part.endswith("\n") else ""
                self.app.stdout.write(text.visible(part.removesuffix("\n")) + end)
                self.app.stdout.flush()
        except FileNotFoundError:
            raise ConfigurationError(f"there is no {log}: the broker was never started") from None


def _status(cluster: Cluster) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
    return COLUMNS, [tuple(node[column] for column in COLUMNS) for node in cluster.status()]


def _read(log: Path, *, follow: bool) -> Iterator[str]:
    """Yield the lines of a log; with ``follow`` also new lines, even after the log was rolled over."""
    while True:
        with log.open(encoding="utf-8", errors="replace") as file:
            yield from file
            while follow and os.fstat(file.fileno()).st_ino == log.stat().st_ino:
                time.sleep(_FOLLOW_SECONDS)
                yield from file
        if not follow:
            return
