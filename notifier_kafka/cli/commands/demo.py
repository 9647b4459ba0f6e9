"""``notifier-kafka demo``: publish a day, listen to it, count it by Spark, and see that the sums agree."""

import argparse
import collections
import contextlib
import datetime
import importlib.util
import json
import logging
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from notifier_kafka.cli import installed_options, jar_download
from notifier_kafka.cli.arguments import page_file, positive
from notifier_kafka.cli.command import Lister
from notifier_kafka.cli.demo import traffic
from notifier_kafka.cli.demo.aggregation import Aggregation
from notifier_kafka.cli.demo.sandbox import Stage
from notifier_kafka.cli.exits import Partial, UsageError
from notifier_kafka.cli.output.progress_bar import Bar
from notifier_kafka.config import options
from notifier_kafka.contract import plugins
from notifier_kafka.errors import DriverLoadFailure
from notifier_kafka.jvm import jars, java
from notifier_kafka.publishing.transport import NotificationTransport

COLUMNS = ("event_type", "published", "handled", "aggregated")
NEEDED = ("pyspark", "pyarrow", "plotly")
# A process this short ends before a better compiler has paid for itself: half the time in all.
QUICK = "spark.driver.extraJavaOptions:-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


class Demo(Lister):
    """Publish a day of notifications, listen to them, count them by Spark, and reconcile the sums.

    Runs on a log of its own that is gone afterwards: SQLite, with --kafka a broker of its
    own, or with --transport-url topics of its own on that log. Leaves a page of charts. Ends
    with exit code 0 only if every notification was handled and is counted once, and what
    came twice, late or malformed is accounted for.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add = parser.add_argument
        add(
            "--count", type=positive, default=20_000, metavar="N", help="Notifications. Default: %(default)s."
        )
        add(
            "--kafka", action="store_true", help="On a Kafka broker, started for this and stopped afterwards."
        )
        add("--no-spark", action="store_true", help="Publish and listen only; needs no extra and no Java.")
        page_file(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Iterable[Any]]:
        self._check(parsed_args)
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) != signal.SIG_IGN:
                # As Ctrl-C: nothing is left behind, whoever ends it.
                signal.signal(number, signal.default_int_handler)
        if not self.program.options.verbose:
            # Warnings of malformed records, which are among the sums, would come between the bars.
            logging.getLogger("notifier_kafka.listening.batch_handler").setLevel(logging.ERROR)
        with tempfile.TemporaryDirectory(prefix="notifier-kafka-demo-") as made:
            directory = Path(made)
            with self._url(directory, parsed_args) as url, self.program.transport(url=url) as transport:
                self._outcome = self._play(transport, directory, parsed_args)
        found = self._outcome
        types = sorted(found.published | found.handled | found.aggregated)
        sides = (found.published, found.handled, found.aggregated)
        columns = COLUMNS if found.spark else COLUMNS[:-1]
        return columns, [(name, *(side[name] for side in sides[: len(columns) - 1])) for name in types]

    def run(self, parsed_args: argparse.Namespace) -> int:
        began = time.monotonic()
        result = super().run(parsed_args)
        # Beside a table it belongs to what a person reads; JSON or CSV it would spoil.
        stream = sys.stdout if parsed_args.formatter == "table" else sys.stderr
        for line in self._outcome.lines():
            print(line, file=stream)
        if self._outcome.spark:
            print(f"the page: {Path(parsed_args.output_file).absolute().as_uri()}", file=stream)
        print(f"took {time.monotonic() - began:.1f} s", file=stream)
        if not self._outcome.agrees():
            raise Partial("the sums do not agree")
        return result

    def _check(self, args: argparse.Namespace) -> None:
        """Refuse at once what could not be done at the end."""
        if args.kafka and self.program.options.transport_url:
            raise UsageError("demo: --kafka and --transport-url are two different logs; name one")
        if args.no_spark:
            return
        if missing := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
            raise DriverLoadFailure(
                "demo",
                f"{', '.join(missing)}: not installed; pip install 'notifier-kafka[demo]', or --no-spark to "
                "publish and listen only",
            )
        java.find(java.SPARK, installed_options.java_option(self.program.configuration(), "spark_sinks"))
        directory = Path(args.output_file).absolute().parent
        if not os.access(directory, os.W_OK):
            raise UsageError(
                f"demo: {directory} cannot be written to; name another place for the page with -o"
            )

    @contextlib.contextmanager
    def _url(self, directory: Path, args: argparse.Namespace) -> Iterator[str]:
        """Lend a log that other processes can read as well."""
        if not args.kafka:
            yield options.log_url(directory / "log.db")
            return
        java_option = installed_options.java_option(self.program.configuration(), "broker")
        for name in [jars.KAFKA] + ([] if args.no_spark else [jars.spark_kafka()]):
            jar_download.fetch(name, java_option)
        bar = Bar("broker")
        bar.show(0, "starts")
        cluster = plugins.load("notifier_kafka.clusters", "kafka")(directory / "kafka", ends_with_parent=True)
        cluster.java = java_option
        cluster.start()
        bar.end(cluster.url)
        try:
            yield cluster.url
        finally:
            cluster.stop()

    def _play(self, transport: NotificationTransport, directory: Path, args: argparse.Namespace) -> "Outcome":
        today = datetime.datetime.now(datetime.UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        midnight = today - datetime.timedelta(days=1)
        script, stage = traffic.script(args.count, midnight), Stage(transport)
        with stage.open():
            stage.publish_malformed()
            stage.publish(script.first, script.again)
            if args.no_spark:
                stage.publish(script.late)
                stage.wait()
                return Outcome.of(stage, script, {}, collections.Counter())
            aggregation = Aggregation(directory, self._config_files(transport, directory), stage.name)
            with aggregation.running():
                stage.wait()
                aggregation.wait(stage.records)
                # Now what is of the morning is late.
                stage.publish(script.late)
                stage.wait()
                aggregation.wait(stage.records)
        figures = self._call("report", "--input", str(aggregation.output), "-o", args.output_file)
        return Outcome.of(
            stage, script, dict(zip(*figures, strict=True)), self._aggregated(aggregation, midnight)
        )

    def _config_files(self, transport: NotificationTransport, directory: Path) -> list[Path]:
        """Name the files for the job, with one for the log: a password is no argument for all to see."""
        own = directory / "log.conf"
        own.touch(mode=0o600)
        url = str(transport.url).replace("$", "$$")
        own.write_text(f"[DEFAULT]\ntransport_url = {url}\n\n[spark_sinks]\nspark_properties = {QUICK}\n")
        return [*installed_options.files(transport.conf), own]

    def _aggregated(self, aggregation: Aggregation, midnight: datetime.datetime) -> collections.Counter[str]:
        """Read the windows of the whole day back, as ``metrics show`` has them."""
        _, rows = self._call(
            "metrics", "show", f"parquet:{aggregation.output}", "--metric", "notifications.count"
        )
        window = tuple(
            (midnight + datetime.timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%SZ") for days in (0, 1)
        )
        found: collections.Counter[str] = collections.Counter()
        for _metric, start, end, group, value, _unit in rows:
            if (start, end) == window:
                found[json.loads(group)["event_type"]] += round(value)
        return found

    def _call(self, *argv: str) -> tuple[Sequence[Any], Any]:
        """Run another command of the program, for what it would print."""
        command, parser, arguments = self.program.find(list(argv))
        found: tuple[Sequence[Any], Any] = command.take_action(parser.parse_args(arguments))
        return found


class Outcome(NamedTuple):
    """The sums of three sides. Notifications are counted once; the rest is of records."""

    published: collections.Counter[str]
    handled: collections.Counter[str]
    aggregated: collections.Counter[str]
    expected: dict[str, int]
    listened: dict[str, int]
    spark: dict[str, Any]
    lost: int

    @classmethod
    def of(
        cls,
        stage: Stage,
        script: traffic.Script,
        figures: dict[str, Any],
        aggregated: collections.Counter[str],
    ) -> "Outcome":
        """Take them from those who counted."""
        return cls(
            stage.published,
            stage.handled,
            aggregated,
            {"duplicate": stage.again, "malformed": stage.malformed, "late": len(script.late)},
            {"duplicate": stage.delivered_again, "malformed": stage.set_aside},
            figures,
            stage.lost,
        )

    def agrees(self) -> bool:
        """Say whether nothing is missing anywhere, and nothing counted twice."""
        listened = self.published == self.handled and not self.lost
        # The same one may be delivered again, which is no mistake.
        listened &= self.listened["duplicate"] >= self.expected["duplicate"]
        listened &= self.listened["malformed"] == self.expected["malformed"]
        if not self.spark:
            return listened
        counted = self.aggregated == self.published and self.spark["total"] == self.published.total()
        return listened and counted and all(self.spark[name] == n for name, n in self.expected.items())

    def lines(self) -> Iterator[str]:
        """Say what equals what."""
        sides = [("published", self.published.total()), ("handled", self.handled.total())]
        if self.spark:
            sides.append(("aggregated", self.aggregated.total()))
        yield _equation(sides) + f"; lost {self.lost:,}"
        for name, heard in (("duplicate", "delivered again"), ("malformed", "set aside"), ("late", "")):
            sides = [(f"{name} published", self.expected[name])]
            if heard:
                sides.append((heard, self.listened[name]))
            if self.spark:
                sides.append((f"{name} for Spark", self.spark[name]))
            yield _equation(sides)


def _equation(sides: Sequence[tuple[str, int]]) -> str:
    made = f"{sides[0][0]} {sides[0][1]:,}"
    for name, count in sides[1:]:
        made += f" {'=' if count == sides[0][1] else 'is not'} {name} {count:,}"
    return made
