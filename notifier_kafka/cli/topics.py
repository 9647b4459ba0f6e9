"""``notifier-kafka topics ...``: the topics on the log."""

import argparse
from collections.abc import Iterable, Sequence

from notifier_kafka.cli import text
from notifier_kafka.cli.command import Lister
from notifier_kafka.driver import Admin

COLUMNS = ("name", "partitions", "records")


class ListTopics(Lister):
    """List the topics on the log, with how many records each holds now."""

    def take_action(
        self,
        parsed_args: argparse.Namespace,  # noqa: ARG002 - the signature is cliff's
    ) -> tuple[Sequence[str], Iterable[tuple[str, int, int]]]:
        with self.program.transport() as transport:
            admin = transport.driver.admin()
            return COLUMNS, [_row(admin, name) for name in sorted(admin.list_topics())]


def _row(admin: Admin, name: str) -> tuple[str, int, int]:
    spans = admin.describe_topic(name).spans
    return text.visible(name), len(spans), sum(span.stop - span.start for span in spans)
