"""``notifier-kafka aggregate``."""

import argparse
import functools
import signal
import threading
import time
from collections.abc import Sequence
from types import FrameType

from notifier_kafka.cli import arguments, jar_download
from notifier_kafka.cli.command import Command, add_stream_format
from notifier_kafka.cli.exits import Exit, Partial
from notifier_kafka.cli.output import text
from notifier_kafka.config import options as framework
from notifier_kafka.contract.driver import Driver
from notifier_kafka.errors import MessagingException
from spark_sinks.cli.run_output import RunPrinter
from spark_sinks.decode.clock_tolerance import ClockTolerance
from spark_sinks.job import offset_discovery, settings
from spark_sinks.job.run_limits import RunLimits
from spark_sinks.job.settings import JobSettings
from spark_sinks.language import metrics
from spark_sinks.state import plan
from spark_sinks.state.ledger import Ledger


class Aggregate(Command):
    """Compute metrics from the notifications in topics. Each notification is counted once.

    A run continues where the previous one ended. A run that was interrupted is repeated.
    SIGTERM ends a run after the current batch. A report of each run goes to stderr; with
    -f json, csv or value it goes to stdout instead, one line for each run.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add = parser.add_argument
        add("--metrics", metavar="FILE", help="File that declares the metrics. Default: a built-in set.")
        add("--input", metavar="URL", help="URL of the log to read. Default: the transport URL.")
        add(
            "--topic",
            action="append",
            metavar="T",
            help="Topic to read, or a pattern such as 'a.*'. Repeatable. Default: the configured topics.",
        )
        add("--window", metavar="W", help="Width of a window: 30s, 1m, 1h.")
        add("--output", action="append", metavar="KIND:PLACE", help="Where metric rows go. Repeatable.")
        add("--checkpoint-dir", metavar="DIR", help="Directory for the job's state: what it has counted.")
        add(
            "--since",
            type=_since,
            metavar="WHEN",
            help="Count records from here on: beginning, end or a time.",
        )
        add("--until", type=arguments.moment, metavar="TIME", help="Count records before this time.")
        add("--max-records", type=arguments.positive, metavar="N", help="Stop after N records.")
        add(
            "--every",
            type=metrics.parse_width,
            metavar="W",
            help="Repeat the run at this interval, such as 60s.",
        )
        add(
            "--allow-loss",
            action="store_true",
            help="Continue when records were deleted before they were counted.",
        )
        add("--dry-run", action="store_true", help="Print what would be read, and read nothing.")
        add_stream_format(parser, "table")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        conf = self.program.configuration()
        chosen = settings.read(
            conf,
            metrics_file=parsed_args.metrics,
            window=parsed_args.window,
            output=parsed_args.output,
            checkpoint_dir=parsed_args.checkpoint_dir,
        )
        with self.program.transport(parsed_args.input) as transport:
            wanted = parsed_args.topic or framework.notifications(conf).topics
            if parsed_args.dry_run:
                return _dry_run(transport.driver, chosen, wanted, parsed_args)
            return _run(transport.driver, chosen, wanted, parsed_args)


def _since(argument: str) -> str | float:
    found = arguments.start(argument)
    if isinstance(found, int):
        raise argparse.ArgumentTypeError(f"{argument!r} is not 'beginning', 'end' or a time")
    return found


def _dry_run(driver: Driver, chosen: JobSettings, wanted: Sequence[str], args: argparse.Namespace) -> int:
    limits = _limits(driver, chosen, args)
    found, lost, left_out = offset_discovery.spans(driver, Ledger(chosen.checkpoint), wanted, limits)
    if limits.records is not None:
        found = list(plan.limit(found, limits.records))
    for words in (*(words for words, _ in lost), *left_out):
        text.note(words)
    RunPrinter(args.format).spans(found)
    return Exit.OK


def _limits(driver: Driver, chosen: JobSettings, args: argparse.Namespace) -> RunLimits:
    """Combine options and arguments."""
    group = chosen.options
    since = args.since if isinstance(args.since, float) else None
    return RunLimits(
        since=0.0 if args.since == "earliest" else since,
        until=args.until,
        start="latest" if args.since == "latest" else group.start,
        records=args.max_records,
        batch_records=group.batch_records,
        deduplicate_seconds=group.deduplicate,
        clock=ClockTolerance(group.clock_behind, group.clock_ahead),
        allow_loss=args.allow_loss,
        own_topics=_own_topics(driver, chosen),
    )


def _own_topics(driver: Driver, chosen: JobSettings) -> frozenset[str]:
    if not any(output.startswith("kafka:") for output in chosen.outputs):
        return frozenset()
    # Here, because it imports PySpark.
    from spark_sinks.outputs import kafka

    return kafka.written_topics(chosen.outputs, driver.url)


class _StopSignal:
    """Set by SIGTERM and Ctrl-C, checked between batches. A second signal ends the program at once."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._stop)

    def __call__(self) -> bool:
        return self._stopped.is_set()

    def wait(self, seconds: float) -> None:
        self._stopped.wait(seconds)

    def _stop(self, number: int, _frame: FrameType | None) -> None:
        self._stopped.set()
        signal.signal(number, signal.SIG_DFL)


def _run(driver: Driver, chosen: JobSettings, wanted: Sequence[str], args: argparse.Namespace) -> int:
    # Here, because PySpark takes a second to import and may not be installed.
    from spark_sinks.cli import progress
    from spark_sinks.job import wiring

    fetch = functools.partial(jar_download.fetch, java_option=chosen.options.java)
    with wiring.open_job(driver, chosen, fetch) as made:
        # After Spark's own handler for Ctrl-C.
        stop = _StopSignal()
        limits, printer = _limits(driver, chosen, args), RunPrinter(args.format)
        while True:
            began = time.monotonic()
            try:
                with progress.show_progress(made):
                    report = made.run(wanted, limits, stop)
            except MessagingException as error:
                # With --every an unreachable broker is tried again.
                if not args.every or not error.retriable or stop():
                    raise
                text.note(f"{error}; again in {args.every} seconds")
                stop.wait(args.every)
                continue
            printer.run(report)
            ending = not args.every or stop()
            if report.failures and ending:
                name, reason = next(iter(report.failures.items()))
                raise Partial(
                    f"{name}: {reason}; the other outputs are complete; run again to write this one"
                )
            if ending:
                return Exit.OK
            stop.wait(max(0.0, began + args.every - time.monotonic()))
