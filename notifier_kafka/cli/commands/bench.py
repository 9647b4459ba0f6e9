"""``notifier-kafka bench``: measure the speed of the configured log from this machine."""

import argparse
import contextlib
import functools
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from notifier_kafka import target
from notifier_kafka.cli import arguments
from notifier_kafka.cli.command import Lister
from notifier_kafka.cli.demo import sandbox
from notifier_kafka.cli.exits import Partial
from notifier_kafka.cli.output.progress_bar import Bar
from notifier_kafka.listening import listener
from notifier_kafka.publishing import notifier
from notifier_kafka.publishing.transport import NotificationTransport

COLUMNS = ("step", "notifications", "per_second", "cpu_us_each", "call_p50_ms", "call_p99_ms")
EVENT_TYPE = "bench.done"
BATCH_NOTIFICATIONS = 1_000
STALL_SECONDS = 60.0  # without progress, after which a step has failed
MAX_ACKNOWLEDGED_CALLS = 500


class Bench(Lister):
    """Measure how fast this machine publishes notifications to the log and listens to them.

    Uses topics of its own, and deletes them. A rate covers the time until all notifications are
    durable, or handled and committed. CPU is the CPU time of this process only. For figures to
    compare with, run 'python -m benchmarks' in the source tree.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add = parser.add_argument
        add(
            "--count",
            type=arguments.positive,
            default=20_000,
            metavar="N",
            help="Notifications per step. Default: %(default)s.",
        )
        add(
            "--size",
            type=arguments.positive,
            default=200,
            metavar="BYTES",
            help="Size of the text in each payload. Default: %(default)s.",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        with self.program.transport() as transport:
            return COLUMNS, list(_measure(transport, parsed_args.count, {"text": "x" * parsed_args.size}))


def _measure(
    transport: NotificationTransport, count: int, payload: dict[str, str]
) -> Iterator[Sequence[Any]]:
    name = f"notifier-kafka-bench-{uuid.uuid4().hex[:8]}"
    sender = notifier.Notifier(transport, "bench.host1", driver="messagingv2", topics=[name])
    # Create the topic and open the connection before the first measurement.
    sender.prepare(wait=True).info({}, EVENT_TYPE, payload)
    acknowledged, few = sender.prepare(wait=True), min(count, MAX_ACKNOWLEDGED_CALLS)
    try:
        yield _measure_calls(
            "publish one by one", count, lambda: sender.info({}, EVENT_TYPE, payload), transport
        )
        yield _measure_step("publish many", count, lambda _bar: _send_many(sender, transport, count, payload))
        yield _measure_calls(
            "publish and wait", few, lambda: acknowledged.info({}, EVENT_TYPE, payload), transport
        )
        stored = 1 + 2 * count + few
        for step, is_batch in (("listen one by one", False), ("listen in batches", True)):
            listen = functools.partial(_listen, transport, name, stored, is_batch=is_batch)
            yield _measure_step(step, stored, listen)
    finally:
        sandbox.delete_topics(transport, name)


def _measure_step(step: str, count: int, work: Callable[[Bar], object]) -> list[Any]:
    bar = Bar(step, count)
    began, used = time.perf_counter(), time.process_time()
    work(bar)
    seconds, used = time.perf_counter() - began, time.process_time() - used
    bar.end(f"{count:,}")
    return [step, count, round(count / seconds), round(1e6 * used / count, 1), None, None]


def _measure_calls(
    step: str, count: int, call: Callable[[], object], transport: NotificationTransport
) -> list[Any]:
    """Measure a step, and the duration of each call."""
    durations = []

    def work(bar: Bar) -> None:
        for number in range(count):
            before = time.perf_counter()
            call()
            durations.append(time.perf_counter() - before)
            if number % BATCH_NOTIFICATIONS == 0:
                bar.show(number)
        _flush(transport)

    row = _measure_step(step, count, work)
    durations.sort()
    return [*row[:-2], *(round(1e3 * durations[int(share * (count - 1))], 3) for share in (0.5, 0.99))]


def _send_many(sender: notifier.Notifier, transport: NotificationTransport, count: int, payload: Any) -> None:
    for start in range(0, count, BATCH_NOTIFICATIONS):
        sender.send_many({}, "info", [(EVENT_TYPE, payload)] * min(BATCH_NOTIFICATIONS, count - start))
    _flush(transport)


def _flush(transport: NotificationTransport) -> None:
    if left := transport.flush(STALL_SECONDS):
        raise Partial(f"{left} notifications were not on the log after {STALL_SECONDS:g} s")


class _CountingEndpoint:
    """An endpoint that counts notifications."""

    def __init__(self) -> None:
        self.done, self.moved = 0, threading.Event()

    def info(self, _ctxt: Any, _publisher_id: str, _event_type: str, _payload: Any, _metadata: Any) -> None:
        self.done += 1
        self.moved.set()


class _CountingBatchEndpoint(_CountingEndpoint):
    def info(self, messages: list[Any]) -> None:  # type: ignore[override]
        self.done += len(messages)
        self.moved.set()


def _listen(transport: NotificationTransport, name: str, stored: int, bar: Bar, *, is_batch: bool) -> None:
    """Listen with a new pool until all notifications are handled."""
    endpoint: _CountingEndpoint = _CountingBatchEndpoint() if is_batch else _CountingEndpoint()
    targets, pool = [target.Target(topic=name)], f"{name}-{'batches' if is_batch else 'one-by-one'}"
    with contextlib.ExitStack() as stack:
        if is_batch:
            running = listener.get_batch_notification_listener(
                transport, targets, [endpoint], pool=pool, batch_size=BATCH_NOTIFICATIONS
            )
        else:
            running = listener.get_notification_listener(transport, targets, [endpoint], pool=pool)
        running.start_from("earliest")
        stack.enter_context(running)
        while endpoint.done < stored:
            endpoint.moved.clear()
            if endpoint.done < stored and not endpoint.moved.wait(STALL_SECONDS):
                raise Partial(f"{endpoint.done} of {stored} notifications were handled, then no more came")
            bar.show(endpoint.done)
