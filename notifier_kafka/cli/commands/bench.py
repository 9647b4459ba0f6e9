"""``notifier-kafka bench``: how fast the configured log is from this machine."""

import argparse
import contextlib
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
BATCH = 1_000
PATIENCE = 60.0  # seconds without any progress after which a step has failed
_MOST_ACKNOWLEDGED = 500


class Bench(Lister):
    """Measure how fast notifications are published to the log and listened to.

    On topics of its own, which it deletes. Rates are until all is durable, or handled and
    committed; CPU is that of this process alone. For figures to compare with, see
    'python -m benchmarks' in a checkout.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add = parser.add_argument
        add(
            "--count",
            type=arguments.positive,
            default=20_000,
            metavar="N",
            help="In a step. Default: %(default)s.",
        )
        add(
            "--size",
            type=arguments.positive,
            default=200,
            metavar="BYTES",
            help="Text in each payload. Default: %(default)s.",
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
    # Who comes first finds the topic made and the connection open.
    sender.prepare(wait=True).info({}, EVENT_TYPE, payload)
    sure, few = sender.prepare(wait=True), min(count, _MOST_ACKNOWLEDGED)
    try:
        yield _calls("publish one by one", count, lambda: sender.info({}, EVENT_TYPE, payload), transport)
        yield _step("publish many", count, lambda _bar: _send_many(sender, transport, count, payload))
        yield _calls("publish and wait", few, lambda: sure.info({}, EVENT_TYPE, payload), transport)
        held = 1 + 2 * count + few
        for step, batch in (("listen one by one", False), ("listen in batches", True)):
            yield _step(step, held, lambda bar, batch=batch: _listen(transport, name, held, bar, batch=batch))  # type: ignore[misc]
    finally:
        sandbox.delete_topics(transport, name)


def _step(step: str, count: int, work: Callable[[Bar], object]) -> list[Any]:
    bar = Bar(step, count)
    began, used = time.perf_counter(), time.process_time()
    work(bar)
    seconds, used = time.perf_counter() - began, time.process_time() - used
    bar.end(f"{count:,}")
    return [step, count, round(count / seconds), round(1e6 * used / count, 1), None, None]


def _calls(step: str, count: int, call: Callable[[], object], transport: NotificationTransport) -> list[Any]:
    """Measure each call as well, as its caller sees it."""
    took = []

    def work(bar: Bar) -> None:
        for number in range(count):
            before = time.perf_counter()
            call()
            took.append(time.perf_counter() - before)
            if number % BATCH == 0:
                bar.show(number)
        _flush(transport)

    found = _step(step, count, work)
    took.sort()
    return [*found[:-2], *(round(1e3 * took[int(share * (count - 1))], 3) for share in (0.5, 0.99))]


def _send_many(sender: notifier.Notifier, transport: NotificationTransport, count: int, payload: Any) -> None:
    for start in range(0, count, BATCH):
        sender.send_many({}, "info", [(EVENT_TYPE, payload)] * min(BATCH, count - start))
    _flush(transport)


def _flush(transport: NotificationTransport) -> None:
    if left := transport.flush(PATIENCE):
        raise Partial(f"{left} notifications were not on the log after {PATIENCE:g} s")


class _Each:
    """An endpoint that counts."""

    def __init__(self) -> None:
        self.done, self.moved = 0, threading.Event()

    def info(self, _ctxt: Any, _publisher_id: str, _event_type: str, _payload: Any, _metadata: Any) -> None:
        self.done += 1
        self.moved.set()


class _Many(_Each):
    def info(self, messages: list[Any]) -> None:  # type: ignore[override]
        self.done += len(messages)
        self.moved.set()


def _listen(transport: NotificationTransport, name: str, held: int, bar: Bar, *, batch: bool) -> None:
    """Have a new pool handle all that there is."""
    endpoint: _Each = _Many() if batch else _Each()
    targets, pool = [target.Target(topic=name)], f"{name}-{'many' if batch else 'each'}"
    with contextlib.ExitStack() as stack:
        if batch:
            made = listener.get_batch_notification_listener(
                transport, targets, [endpoint], pool=pool, batch_size=BATCH
            )
        else:
            made = listener.get_notification_listener(transport, targets, [endpoint], pool=pool)
        made.start_from("earliest")
        stack.enter_context(made)
        while endpoint.done < held:
            endpoint.moved.clear()
            if endpoint.done < held and not endpoint.moved.wait(PATIENCE):
                raise Partial(f"{endpoint.done} of {held} notifications were handled, then no more came")
            bar.show(endpoint.done)
