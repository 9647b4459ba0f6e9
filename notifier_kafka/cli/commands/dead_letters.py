"""``notifier-kafka dead-letters ...``: what the listeners of a group set aside, and giving it back."""

import argparse
import collections
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from notifier_kafka.cli import arguments, republish
from notifier_kafka.cli.command import Lister
from notifier_kafka.cli.exits import Partial, UsageError
from notifier_kafka.cli.output import text
from notifier_kafka.cli.output.cells import ABSENT, Cell
from notifier_kafka.contract.driver import Delivery, Driver, Partition, Record, Span
from notifier_kafka.errors import DecodeError
from notifier_kafka.listening import requeue
from notifier_kafka.wire import codec, topic_names

MOST = 20
# As ``topics.dead_letter_topic`` spells them; a group's name in odd characters adds a checksum.
SPELLED = re.compile(r".*\.dead-letters(-[0-9a-f]{8})?", re.DOTALL)
PLACE = re.compile(r"([0-9]{1,9}):([0-9]{1,18})", re.ASCII)
PLACE_HELP = "One of them as PARTITION:OFFSET, which is how 'dead-letters show' names it; repeatable."

Spot = tuple[int, int]


class ListDeadLetters(Lister):
    """Count the notifications that were set aside, by topic and reason.

    ``letters`` is how many there are, ``new`` how many of them came after the last
    'dead-letters requeue --all', and ``example`` the place of the last one.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("group", metavar="GROUP", nargs="?", help="Only those of this group (pool).")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        with self.program.transport() as transport:
            driver = transport.driver
            names = driver.admin().list_topics()
            if parsed_args.group is None:
                names = sorted(name for name in names if SPELLED.fullmatch(name))
            else:
                names = [_topic(names, parsed_args.group)]
            rows = [row for name in names for row in _counted(driver, name)]
        return ("topic", "reason", "letters", "new", "example"), rows


class ShowDeadLetters(Lister):
    """Show notifications that were set aside: why, where they came from and how often they were tried.

    The value of a record that is no notification is shown as text, with escapes for what is
    not printable.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = _add_group(super().get_parser(prog_name))
        add = parser.add_argument
        add("place", metavar="PLACE", nargs="*", type=_spot, help=PLACE_HELP)
        add("--max", type=arguments.positive, metavar="N", default=MOST, help=f"{MOST} without it.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        columns = ("place", "recorded_at", "origin", "attempts", "reason", "notification")
        with self.program.transport() as transport:
            driver = transport.driver
            topic = _topic(driver.admin().list_topics(), parsed_args.group)
            found = _letters(driver, topic, parsed_args.place)
            return columns, [_shown(letter) for letter, _ in zip(found, range(parsed_args.max), strict=False)]


class RequeueDeadLetters(Lister):
    """Give notifications that were set aside back to the group, which gets them as if for the first time.

    --all takes those that came after the last time that it was used. What stands there is
    left where it is: 'topics purge' deletes it. A record without a value cannot be given
    back. Nothing is done without --execute.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = _add_group(super().get_parser(prog_name))
        add = parser.add_argument
        add("place", metavar="PLACE", nargs="*", type=_spot, help=PLACE_HELP)
        add("--all", action="store_true", help="All that are new.")
        add("--execute", action="store_true", help="Do it.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        if bool(parsed_args.place) == parsed_args.all:
            raise UsageError("dead-letters requeue: say which, by PLACE or with --all")
        self._executed = parsed_args.execute
        self._left = 0
        moved: collections.Counter[str] = collections.Counter()
        with self.program.transport() as transport:
            driver = transport.driver
            topic = _topic(driver.admin().list_topics(), parsed_args.group)
            spans = _new(driver, topic) if parsed_args.all else None
            records = self._revived(
                _letters(driver, topic, parsed_args.place, spans), parsed_args.group, moved
            )
            if parsed_args.execute:
                republish.republish(driver, records)
                if spans:
                    driver.admin().reset_group(topic, {span.partition: span.stop for span in spans})
            else:
                collections.deque(records, maxlen=0)
        return ("topic", "letters"), [(text.visible(name), count) for name, count in sorted(moved.items())]

    def run(self, parsed_args: argparse.Namespace) -> int:
        result = super().run(parsed_args)
        self.app.stdout.flush()
        if not self._executed:
            text.note("a dry run: nothing was changed; --execute does it")
        if self._left:
            raise Partial(f"{self._left} without a value or an origin cannot be given back")
        return result

    def _revived(
        self, letters: Iterable[Delivery], group: str, moved: collections.Counter[str]
    ) -> Iterator[Record]:
        for letter in letters:
            record = requeue.revived(letter.record, group)
            if record is None:
                self._left += 1
            else:
                moved[record.topic] += 1
                yield record


class _Content(Cell):
    """What a letter holds: an object for a program, a line for each member for a person."""

    def human_readable(self) -> str:
        if not isinstance(self._value, Mapping):
            return str(self._value)
        return "\n".join(f"{name} = {text.json_line(value)}" for name, value in self._value.items())


def _add_group(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument("group", metavar="GROUP", help="The group (pool) whose listeners set them aside.")
    return parser


def _spot(argument: str) -> Spot:
    found = PLACE.fullmatch(argument)
    if found is None:
        raise argparse.ArgumentTypeError(f"{argument!r} is no PARTITION:OFFSET such as 0:17")
    return int(found[1]), int(found[2])


def _topic(there: Sequence[str], group: str) -> str:
    topic = topic_names.dead_letter_topic(group)
    if topic not in there:
        raise UsageError(f"group {group!r} has set nothing aside: there is no topic {topic!r}")
    return topic


def _new(driver: Driver, topic: str) -> list[Span]:
    """Find what came after the last requeueing of all; a group of the topic's name remembers it."""
    reached = driver.admin().describe_group(topic).positions
    return [
        span._replace(start=min(max(span.start, reached.get(span.partition, 0)), span.stop))
        for span in driver.spans([topic])
    ]


def _letters(
    driver: Driver, topic: str, spots: Sequence[Spot], spans: Sequence[Span] | None = None
) -> Iterator[Delivery]:
    there = driver.spans([topic]) if spans is None else spans
    if not spots:
        for span in there:
            yield from driver.read(span)
    for number, offset in spots:
        partition = Partition(topic, number)
        found = None
        if any(s.partition == partition and s.start <= offset < s.stop for s in there):
            found = next(driver.read(Span(partition, offset, offset + 1)), None)
        if found is None:
            raise UsageError(
                f"{topic} has nothing at {number}:{offset}; 'dead-letters show' says what it has"
            )
        yield found


def _counted(driver: Driver, topic: str) -> Iterator[Sequence[Any]]:
    starts = {span.partition: span.start for span in _new(driver, topic)}
    counts: collections.Counter[str] = collections.Counter()
    new: collections.Counter[str] = collections.Counter()
    last: dict[str, str] = {}
    for letter in _letters(driver, topic, ()):
        reason = _reason(letter.record)
        counts[reason] += 1
        new[reason] += letter.offset >= starts.get(letter.partition, 0)
        last[reason] = _place(letter)
    for reason, count in counts.most_common():
        yield text.visible(topic), reason, count, new[reason], last[reason]


def _shown(letter: Delivery) -> Sequence[Any]:
    record = letter.record
    origin = requeue.origin(record)
    return (
        _place(letter),
        text.iso(letter.timestamp),
        text.visible(origin) if origin else ABSENT,
        requeue.attempts(record),
        _reason(record),
        ABSENT if record.value is None else _Content(_content(record)),
    )


def _content(record: Record) -> Any:
    try:
        members = codec.decode(record)._asdict()
        text.json_line(members)
    # What can be read cannot always be written: nested too deeply, a number too long.
    except (DecodeError, ValueError, RecursionError):
        return text.visible((record.value or b"").decode("utf-8", "backslashreplace"))
    return members


def _reason(record: Record) -> str:
    return text.visible(requeue.reason(record))


def _place(letter: Delivery) -> str:
    return f"{letter.partition.number}:{letter.offset}"
