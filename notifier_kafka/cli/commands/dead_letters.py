"""``notifier-kafka dead-letters ...``: count, show and requeue the dead letters of a group."""

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

DEFAULT_MAX = 20
# The names made by ``topic_names.dead_letter_topic``; a group with unusual characters adds a checksum.
TOPIC_PATTERN = re.compile(r".*\.dead-letters(-[0-9a-f]{8})?", re.DOTALL)
POSITION_PATTERN = re.compile(r"([0-9]{1,9}):([0-9]{1,18})", re.ASCII)
PLACE_HELP = "A dead letter: PARTITION:OFFSET, as 'dead-letters show' prints it; repeatable."

Position = tuple[int, int]


class ListDeadLetters(Lister):
    """Count dead letters (notifications that a listener set aside), by topic and reason.

    'letters' is how many there are, 'new' how many of them came after the last
    'dead-letters requeue --all', and 'example' the place of the last one.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "group", metavar="GROUP", nargs="?", help="Only the dead letters of this group (pool)."
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        with self.program.transport() as transport:
            driver = transport.driver
            names = driver.admin().list_topics()
            if parsed_args.group is None:
                names = sorted(name for name in names if TOPIC_PATTERN.fullmatch(name))
            else:
                names = [_dead_letter_topic(names, parsed_args.group)]
            rows = [row for name in names for row in _count_by_reason(driver, name)]
        return ("topic", "reason", "letters", "new", "example"), rows


class ShowDeadLetters(Lister):
    """Show dead letters with their reason, origin and number of attempts.

    A malformed record is shown as text, with escapes for what is not printable.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = _add_group(super().get_parser(prog_name))
        add = parser.add_argument
        add("place", metavar="PLACE", nargs="*", type=_position, help=PLACE_HELP)
        add(
            "--max",
            type=arguments.positive,
            metavar="N",
            default=DEFAULT_MAX,
            help="Show at most N. Default: %(default)s.",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        columns = ("place", "recorded_at", "origin", "attempts", "reason", "notification")
        with self.program.transport() as transport:
            driver = transport.driver
            topic = _dead_letter_topic(driver.admin().list_topics(), parsed_args.group)
            letters = _letters(driver, topic, parsed_args.place)
            return columns, [
                _letter_row(letter) for letter, _ in zip(letters, range(parsed_args.max), strict=False)
            ]


class RequeueDeadLetters(Lister):
    """Requeue dead letters, so that the group receives them again.

    Their attempts are counted from zero again. --all requeues the dead letters that came after
    the last requeue with --all. The topic of dead letters keeps them; 'topics purge' deletes
    them. A record without a value cannot be requeued. Without --execute this is a dry run.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = _add_group(super().get_parser(prog_name))
        add = parser.add_argument
        add("place", metavar="PLACE", nargs="*", type=_position, help=PLACE_HELP)
        add("--all", action="store_true", help="Requeue all new ones.")
        add("--execute", action="store_true", help="Requeue them. Without it, a dry run.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        if bool(parsed_args.place) == parsed_args.all:
            raise UsageError("dead-letters requeue: say which, with PLACE or --all")
        self._executed = parsed_args.execute
        self._skipped = 0
        moved: collections.Counter[str] = collections.Counter()
        with self.program.transport() as transport:
            driver = transport.driver
            topic = _dead_letter_topic(driver.admin().list_topics(), parsed_args.group)
            spans = _new_spans(driver, topic) if parsed_args.all else None
            records = self._requeued_records(
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
            text.note("a dry run: nothing was changed; --execute requeues them")
        if self._skipped:
            raise Partial(f"{self._skipped} without a value or an origin cannot be requeued")
        return result

    def _requeued_records(
        self, letters: Iterable[Delivery], group: str, moved: collections.Counter[str]
    ) -> Iterator[Record]:
        for letter in letters:
            record = requeue.revived(letter.record, group)
            if record is None:
                self._skipped += 1
            else:
                moved[record.topic] += 1
                yield record


class _Content(Cell):
    """The content of a dead letter: an object for a program, one field a line for a person."""

    def human_readable(self) -> str:
        if not isinstance(self._value, Mapping):
            return str(self._value)
        return "\n".join(f"{name} = {text.json_line(value)}" for name, value in self._value.items())


def _add_group(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument("group", metavar="GROUP", help="The group (pool) that has the dead letters.")
    return parser


def _position(argument: str) -> Position:
    match = POSITION_PATTERN.fullmatch(argument)
    if match is None:
        raise argparse.ArgumentTypeError(f"{argument!r} is not PARTITION:OFFSET such as 0:17")
    return int(match[1]), int(match[2])


def _dead_letter_topic(topics: Sequence[str], group: str) -> str:
    topic = topic_names.dead_letter_topic(group)
    if topic not in topics:
        raise UsageError(f"group {group!r} has no dead letters: there is no topic {topic!r}")
    return topic


def _new_spans(driver: Driver, topic: str) -> list[Span]:
    """Find what came after the last ``requeue --all``. A group with the topic's name holds that position."""
    requeued = driver.admin().describe_group(topic).positions
    return [
        span._replace(start=min(max(span.start, requeued.get(span.partition, 0)), span.stop))
        for span in driver.spans([topic])
    ]


def _letters(
    driver: Driver, topic: str, positions: Sequence[Position], spans: Sequence[Span] | None = None
) -> Iterator[Delivery]:
    existing = driver.spans([topic]) if spans is None else spans
    if not positions:
        for span in existing:
            yield from driver.read(span)
    for number, offset in positions:
        partition = Partition(topic, number)
        letter = None
        if any(s.partition == partition and s.start <= offset < s.stop for s in existing):
            letter = next(driver.read(Span(partition, offset, offset + 1)), None)
        if letter is None:
            raise UsageError(f"{topic} has no record at {number}:{offset}; see 'dead-letters show'")
        yield letter


def _count_by_reason(driver: Driver, topic: str) -> Iterator[Sequence[Any]]:
    starts = {span.partition: span.start for span in _new_spans(driver, topic)}
    counts: collections.Counter[str] = collections.Counter()
    new: collections.Counter[str] = collections.Counter()
    last: dict[str, str] = {}
    for letter in _letters(driver, topic, ()):
        reason = _reason(letter.record)
        counts[reason] += 1
        new[reason] += letter.offset >= starts.get(letter.partition, 0)
        last[reason] = _position_text(letter)
    for reason, count in counts.most_common():
        yield text.visible(topic), reason, count, new[reason], last[reason]


def _letter_row(letter: Delivery) -> Sequence[Any]:
    record = letter.record
    origin = requeue.origin(record)
    return (
        _position_text(letter),
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
    # Some JSON can be decoded but not encoded: nested too deeply, or a number with too many digits.
    except (DecodeError, ValueError, RecursionError):
        return text.visible((record.value or b"").decode("utf-8", "backslashreplace"))
    return members


def _reason(record: Record) -> str:
    return text.visible(requeue.reason(record))


def _position_text(letter: Delivery) -> str:
    return f"{letter.partition.number}:{letter.offset}"
