"""``notifier-kafka topics ...``: the topics on the log."""

import argparse
import contextlib
from collections.abc import Iterable, Iterator, Sequence

from notifier_kafka.cli import text
from notifier_kafka.cli.command import Lister
from notifier_kafka.driver import Admin
from notifier_kafka.errors import TopicNotFound

COLUMNS = ("name", "partitions", "records")


class ListTopics(Lister):
    """List the topics on the log, with how many records each holds now."""

    def take_action(
        self,
        parsed_args: argparse.Namespace,  # noqa: ARG002 - the signature is cliff's
    ) -> tuple[Sequence[str], Iterable[tuple[str, int, int]]]:
        with self.program.transport() as transport:
            return COLUMNS, list(_rows(transport.driver.admin()))


def _rows(admin: Admin) -> Iterator[tuple[str, int, int]]:
    for name in sorted(admin.list_topics()):
        # One may be deleted while the list is made.
        with contextlib.suppress(TopicNotFound):
            spans = admin.describe_topic(name).spans
            yield text.visible(name), len(spans), sum(span.stop - span.start for span in spans)
