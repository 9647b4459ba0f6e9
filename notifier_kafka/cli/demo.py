"""``notifier-kafka demo``: publish a day, listen to it, and see that the counts agree."""

import argparse
import collections
import contextlib
import sys
import time
import uuid
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from notifier_kafka import listener, notifier, target, topics
from notifier_kafka.cli import day, text
from notifier_kafka.cli.arguments import positive
from notifier_kafka.cli.command import Lister
from notifier_kafka.cli.exits import Partial
from notifier_kafka.driver import Limits, Receipt, Record
from notifier_kafka.errors import MessagingException, TopicNotFound
from notifier_kafka.transport import NotificationTransport

COLUMNS = ("event_type", "published", "handled")
LISTENERS = 2
STEP = 5_000
PATIENCE = 60.0  # seconds without any progress after which the demonstration gives up
PRIORITIES = ("audit", "info", "sample", "error")
MALFORMED = (
    b"not JSON",
    b"\xff\xfe\x00",
    b'["a", "list"]',
    b'{"oslo.version": "9.9", "oslo.message": "{}"}',
    None,
)


class Demo(Lister):
    """Publish a day of notifications, listen to them and reconcile the counts.

    Runs on a log of its own that is gone afterwards, or with --transport-url on topics of
    its own on that log. Ends with exit code 0 only if every notification was handled and
    every malformed record among them was set aside.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--count", type=positive, default=20_000, metavar="N", help="Notifications; 20000 without it."
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Iterable[Any]]:
        events = day.events(parsed_args.count)
        with self.program.transport(url="sqlite://") as transport:
            self._outcome = _Run(transport).run(events)
        published = collections.Counter(event.event_type for event in events)
        types = sorted(published | self._outcome.handled)
        return COLUMNS, [(each, published[each], self._outcome.handled[each]) for each in types]

    def run(self, parsed_args: argparse.Namespace) -> int:
        result = super().run(parsed_args)
        line = self._outcome.line()
        # Beside a table it belongs to what a person reads; JSON or CSV it would spoil.
        print(line, file=sys.stdout if parsed_args.formatter == "table" else sys.stderr)
        if not self._outcome.agrees():
            raise Partial("the counts do not agree")
        return result


class Outcome(NamedTuple):
    """The sums on both sides. ``handled`` counts each notification once."""

    published: int
    lost: int
    malformed: int
    handled: collections.Counter[str]
    again: int
    set_aside: int

    def agrees(self) -> bool:
        complete = self.published == self.handled.total() and not self.lost
        return complete and self.malformed == self.set_aside

    def line(self) -> str:
        handled = self.handled.total()
        sums = (
            f"published {self.published} {_sign(self.published, handled + self.lost)} "
            f"handled {handled} + lost {self.lost}",
            f"malformed {self.malformed} {_sign(self.malformed, self.set_aside)} set aside {self.set_aside}",
            f"delivered again {self.again}",
        )
        return "; ".join(sums)


def _sign(left: int, right: int) -> str:
    return "=" if left == right else "is not"


class _Tally:
    """An endpoint that counts each notification once. Belongs to one listener's thread."""

    def __init__(self) -> None:
        self.types: dict[str, str] = {}
        self.calls = 0

    def info(self, _ctxt: Any, _publisher_id: str, event_type: str, _payload: Any, metadata: Any) -> None:
        self.types[metadata["message_id"]] = event_type
        self.calls += 1

    audit = sample = error = info


class _Run:
    """One run on topics and with a pool that nobody else uses."""

    def __init__(self, transport: NotificationTransport) -> None:
        self._transport = transport
        self._name = f"notifier-kafka-demo-{uuid.uuid4().hex[:8]}"
        self._tallies = [_Tally() for _ in range(LISTENERS)]
        self._listeners = [
            listener.get_notification_listener(
                transport, [target.Target(topic=self._name)], [tally], pool=self._name
            )
            for tally in self._tallies
        ]

    def run(self, events: Sequence[day.Event]) -> Outcome:
        with contextlib.ExitStack() as stack:
            stack.callback(self._delete_topics)
            for each in self._listeners:
                stack.enter_context(each)
            malformed = self._publish(events)
            self._wait(len(events), malformed)
        types = {id_: type_ for tally in self._tallies for id_, type_ in tally.types.items()}
        return Outcome(
            published=len(events),
            lost=self._lost(),
            malformed=malformed,
            handled=collections.Counter(types.values()),
            again=sum(tally.calls for tally in self._tallies) - len(types),
            set_aside=sum(each.stats()["malformed"] for each in self._listeners),
        )

    def _publish(self, events: Sequence[day.Event]) -> int:
        first = notifier.Notifier(self._transport, driver="messagingv2", topics=[self._name])
        by_publisher = {name: first.prepare(publisher_id=name) for name in {e.publisher_id for e in events}}
        malformed = 0
        for start in range(0, len(events), STEP):
            for event in events[start : start + STEP]:
                send = getattr(by_publisher[event.publisher_id], event.priority)
                send({}, event.event_type, event.payload)
            if not malformed:
                malformed = self._publish_malformed()
            first.flush(PATIENCE)
            _progress(f"published {min(start + STEP, len(events)):,} of {len(events):,}")
        return malformed

    def _publish_malformed(self) -> int:
        name = topics.bus_topic(self._name, "info", self._transport.driver.virtual_host)
        fates: list[Receipt | MessagingException] = []
        publisher = self._transport.driver.publisher(lambda _record, error: fates.append(error), Limits())
        for value in MALFORMED:
            publisher.offer(Record(name, value), fates.append)
        publisher.flush(PATIENCE)
        publisher.close()
        text.note(f"{len(MALFORMED)} malformed records lie among the notifications; warnings tell of them")
        return sum(isinstance(fate, Receipt) for fate in fates)

    def _wait(self, published: int, malformed: int) -> None:
        expected = published - self._lost() + malformed
        done, moved = 0, time.monotonic()
        while done < expected and time.monotonic() - moved < PATIENCE:
            time.sleep(0.05)
            before, done = done, self._done()
            if done != before:
                moved = time.monotonic()
                _progress(f"handled {done:,} of {expected:,}")
        _progress("")

    def _done(self) -> int:
        handled = sum(len(tally.types) for tally in self._tallies)
        return handled + sum(each.stats()["malformed"] for each in self._listeners)

    def _lost(self) -> int:
        counts = self._transport.accounts.counts()
        return sum(count for name, count in counts.items() if name.startswith("lost."))

    def _delete_topics(self) -> None:
        admin, host = self._transport.driver.admin(), self._transport.driver.virtual_host
        names = [topics.bus_topic(self._name, priority, host) for priority in PRIORITIES]
        returns = [topics.requeue_topic(self._name, name) for name in names]
        for name in (*names, *returns, topics.dead_letter_topic(self._name)):
            with contextlib.suppress(TopicNotFound):
                admin.delete_topic(name)


def _progress(words: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{words}")
        sys.stderr.flush()
