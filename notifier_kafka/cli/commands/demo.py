"""``notifier-kafka demo``: publish a day, listen to it, aggregate it with Spark, compare the counts."""

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
from typing import Any

from notifier_kafka.cli import installed_options, jar_download
from notifier_kafka.cli.arguments import page_file, positive
from notifier_kafka.cli.command import Lister
from notifier_kafka.cli.demo import traffic
from notifier_kafka.cli.demo.aggregation import Aggregation
from notifier_kafka.cli.demo.outcome import Outcome
from notifier_kafka.cli.demo.sandbox import Sandbox
from notifier_kafka.cli.exits import Partial, UsageError
from notifier_kafka.cli.output.progress_bar import Bar
from notifier_kafka.config import options
from notifier_kafka.contract import plugins
from notifier_kafka.errors import DriverLoadFailure
from notifier_kafka.jvm import jars, java
from notifier_kafka.publishing.transport import NotificationTransport

COLUMNS = ("event_type", "published", "handled", "aggregated")
REQUIRED_MODULES = ("pyspark", "pyarrow", "plotly")
# The demonstration ends before optimized compilation pays off: this halves its time.
FAST_START_PROPERTIES = "spark.driver.extraJavaOptions:-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


class Demo(Lister):
    """Publish a day of notifications, listen, aggregate with Spark, and compare the counts.

    Uses a temporary SQLite log; with --kafka a temporary broker; with --transport-url temporary
    topics on that log. Writes an HTML page of charts. The exit code is 0 only if every
    notification was handled and counted exactly once, and all duplicate, late and malformed
    ones are accounted for.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add = parser.add_argument
        add(
            "--count",
            type=positive,
            default=20_000,
            metavar="N",
            help="How many notifications. Default: %(default)s.",
        )
        add("--kafka", action="store_true", help="Start a Kafka broker for this, and stop it afterwards.")
        add("--no-spark", action="store_true", help="Publish and listen only. Needs no extra and no Java.")
        page_file(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Iterable[Any]]:
        self._check_requirements(parsed_args)
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) != signal.SIG_IGN:
                # Like Ctrl-C, so that nothing is left behind.
                signal.signal(number, signal.default_int_handler)
        if not self.program.options.verbose:
            # Warnings of malformed records, which are counted, would appear between the bars.
            logging.getLogger("notifier_kafka.listening.batch_handler").setLevel(logging.ERROR)
        with tempfile.TemporaryDirectory(prefix="notifier-kafka-demo-") as name:
            directory = Path(name)
            with self._log_url(directory, parsed_args) as url, self.program.transport(url=url) as transport:
                self._outcome = self._run_day(transport, directory, parsed_args)
        outcome = self._outcome
        counts = [outcome.published, outcome.handled]
        if outcome.spark:
            counts.append(outcome.aggregated)
        event_types = sorted(outcome.published | outcome.handled | outcome.aggregated)
        rows = [(name, *(each[name] for each in counts)) for name in event_types]
        return COLUMNS[: 1 + len(counts)], rows

    def run(self, parsed_args: argparse.Namespace) -> int:
        began = time.monotonic()
        result = super().run(parsed_args)
        # Below a table these lines are for the same reader; in JSON or CSV they would be invalid.
        stream = sys.stdout if parsed_args.formatter == "table" else sys.stderr
        for line in self._outcome.lines():
            print(line, file=stream)
        if self._outcome.spark:
            print(f"page: {Path(parsed_args.output_file).absolute().as_uri()}", file=stream)
        print(f"took {time.monotonic() - began:.1f} s", file=stream)
        if not self._outcome.counts_agree():
            raise Partial("the counts do not agree")
        return result

    def _check_requirements(self, args: argparse.Namespace) -> None:
        """Raise now for what would fail at the end."""
        if args.kafka and self.program.options.transport_url:
            raise UsageError("demo: --kafka and --transport-url name two different logs; use one of them")
        if args.no_spark:
            return
        if missing := [name for name in REQUIRED_MODULES if importlib.util.find_spec(name) is None]:
            raise DriverLoadFailure(
                "demo",
                f"{', '.join(missing)}: not installed; pip install 'notifier-kafka[demo]', or use "
                "--no-spark to publish and listen only",
            )
        java.find(java.SPARK, installed_options.java_option(self.program.configuration(), "spark_sinks"))
        directory = Path(args.output_file).absolute().parent
        if not os.access(directory, os.W_OK):
            raise UsageError(
                f"demo: {directory} cannot be written to; name another file for the page with -o"
            )

    @contextlib.contextmanager
    def _log_url(self, directory: Path, args: argparse.Namespace) -> Iterator[str]:
        """Lend a log that other processes can read too."""
        if not args.kafka:
            yield options.log_url(directory / "log.db")
            return
        java_option = installed_options.java_option(self.program.configuration(), "broker")
        for name in [jars.KAFKA] + ([] if args.no_spark else [jars.spark_kafka()]):
            jar_download.fetch(name, java_option)
        bar = Bar("broker")
        bar.show(0, "starting")
        cluster = plugins.load("notifier_kafka.clusters", "kafka")(directory / "kafka", ends_with_parent=True)
        cluster.java = java_option
        cluster.start()
        bar.end(cluster.url)
        try:
            yield cluster.url
        finally:
            cluster.stop()

    def _run_day(
        self, transport: NotificationTransport, directory: Path, args: argparse.Namespace
    ) -> Outcome:
        today = datetime.datetime.now(datetime.UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        midnight = today - datetime.timedelta(days=1)
        day, sandbox = traffic.make_traffic(args.count, midnight), Sandbox(transport)
        with sandbox.listening():
            sandbox.publish_malformed()
            sandbox.publish(day.on_time, day.duplicates)
            if args.no_spark:
                sandbox.publish(day.late)
                sandbox.wait_until_handled()
                return Outcome.of(sandbox, day, {}, collections.Counter())
            aggregation = Aggregation(directory, self._config_files(transport, directory), sandbox.topic)
            with aggregation.running():
                sandbox.wait_until_handled()
                aggregation.wait_for(sandbox.records)
                # Spark has counted the afternoon by now, so notifications of the morning are late.
                sandbox.publish(day.late)
                sandbox.wait_until_handled()
                aggregation.wait_for(sandbox.records)
        figures = self._call("report", "--input", str(aggregation.output), "-o", args.output_file)
        return Outcome.of(
            sandbox, day, dict(zip(*figures, strict=True)), self._aggregated(aggregation, midnight)
        )

    def _config_files(self, transport: NotificationTransport, directory: Path) -> list[Path]:
        """Return the configuration files for the job. As an argument, the URL would show its password."""
        own = directory / "log.conf"
        own.touch(mode=0o600)
        url = str(transport.url).replace("$", "$$")
        own.write_text(
            f"[DEFAULT]\ntransport_url = {url}\n\n[spark_sinks]\nspark_properties = {FAST_START_PROPERTIES}\n"
        )
        return [*installed_options.config_files(transport.conf), own]

    def _aggregated(self, aggregation: Aggregation, midnight: datetime.datetime) -> collections.Counter[str]:
        """Read the counts of the whole day with ``metrics show``."""
        _, rows = self._call(
            "metrics", "show", f"parquet:{aggregation.output}", "--metric", "notifications.count"
        )
        window = tuple(
            (midnight + datetime.timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%SZ") for days in (0, 1)
        )
        counts: collections.Counter[str] = collections.Counter()
        for _metric, start, end, group, value, _unit in rows:
            if (start, end) == window:
                counts[json.loads(group)["event_type"]] += round(value)
        return counts

    def _call(self, *argv: str) -> tuple[Sequence[Any], Any]:
        """Run another command of the program; return what it would print."""
        command, parser, arguments = self.program.find(list(argv))
        result: tuple[Sequence[Any], Any] = command.take_action(parser.parse_args(arguments))
        return result
