"""How the cost of publishing grows: with processes, the payload, partitions and topics; and by option.

Rates are of all notifications together, published one by one with the confluent client;
ratios are to the first of each table.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import cycle, islice

from benchmarks import child_protocol, measure, rows, workload
from benchmarks.environment import Scene
from benchmarks.peers import Child
from benchmarks.rows import Row
from notifier_kafka.publishing import notifier

CLIENT = "confluent-kafka"
PROCESSES = (1, 2, 4, 8)
KILOBYTES = (0.1, 1, 10, 100)
PARTITIONS = (1, 2, 4, 8, 16, 32, 64)
TOPICS = (1, 10, 100, 1_000)
OPTIONS = (
    "",
    "linger=0",
    "linger=0.05",
    "batch_size=16384",
    "acks=1",
    "compression=lz4",
    "compression=zstd",
    "compression=gzip",
)
BYTES_EACH = 500  # a round of large payloads has fewer, so that it moves about as many bytes


def growth(scene: Scene) -> list[Row]:
    """Make a table of each."""
    found: list[Row] = []
    for title, make in _TABLES.items():
        with ExitStack() as stack:
            contestants = list(make(scene, stack))
            rates = measure.compare(contestants, scene.size.each, scene.size.growth_rounds)
        scene.clear()
        found += rows.growth(f"publish, {title}", rates)
    return found


def _processes(scene: Scene, stack: ExitStack) -> Iterator[measure.Contestant]:
    url, topic = f"{scene.cluster.url}/?client={CLIENT}", scene.topic()
    numbers = _upto(PROCESSES, scene)
    children = [stack.enter_context(Child("publisher", url, topic)) for _ in range(numbers[-1])]

    def publish(number: int) -> Callable[[int], None]:
        def run(count: int) -> None:
            for child in children[:number]:
                child.tell("work", max(1, count // number))
            for child in children[:number]:
                child.answer()

        return run

    for number in numbers:
        name = f"{number} process{'es' * (number > 1)}"
        yield measure.Contestant(name, publish(number), cpu=lambda: sum(child.cpu() for child in children))


def _payloads(scene: Scene, stack: ExitStack) -> Iterator[measure.Contestant]:
    bus = stack.enter_context(scene.bus(CLIENT))
    through = workload.sender(bus, scene.topic())

    count = scene.size.each
    for kilobytes in KILOBYTES:
        size = kilobytes * 1000
        payload, fewer = (
            {"text": "x" * round(size - 11)},
            max(1, min(count, round(count * BYTES_EACH / size))),
        )
        yield _fewer(f"{kilobytes:g} KB", through, payload, (count, fewer))


def _fewer(
    name: str, through: notifier.Notifier, payload: dict[str, str], sizes: tuple[int, int]
) -> measure.Contestant:
    """Publish fewer than the others of a round, and count times as if it had been as many."""
    count, fewer = sizes

    def run(_count: int) -> float:
        begin = time.perf_counter()
        workload.one_by_one(through, fewer, payload)
        return (time.perf_counter() - begin) * count / fewer

    return measure.Contestant(name, run, cpu=lambda: time.process_time() * count / fewer)


def _partitions(scene: Scene, stack: ExitStack) -> Iterator[measure.Contestant]:
    bus = stack.enter_context(scene.bus(CLIENT))
    for number in _upto(PARTITIONS, scene):
        through = workload.sender(bus, scene.topic(number))
        yield _publishing(f"{number} partition{'s' * (number > 1)}", [through])


def _topics(scene: Scene, stack: ExitStack) -> Iterator[measure.Contestant]:
    bus = stack.enter_context(scene.bus(CLIENT))
    senders: list[notifier.Notifier] = []
    for number in _upto(TOPICS, scene):
        measure.say(f"making {number - len(senders)} topics")
        senders += [workload.sender(bus, scene.topic(1)) for _ in range(number - len(senders))]
        yield _publishing(f"{number:,} topic{'s' * (number > 1)} of 1 partition", senders[:number])


def _options(scene: Scene, stack: ExitStack) -> Iterator[measure.Contestant]:
    topic = scene.topic()
    for name in OPTIONS:
        bus = stack.enter_context(scene.bus(CLIENT, f"&{name}" if name else ""))
        yield _publishing(name or "defaults", [workload.sender(bus, topic)])


def _upto(numbers: Sequence[int], scene: Scene) -> list[int]:
    return [number for number in numbers if number <= scene.size.most]


def _publishing(name: str, senders: list[notifier.Notifier]) -> measure.Contestant:
    def run(count: int) -> None:
        for through in islice(cycle(senders), count):
            through.info({}, child_protocol.EVENT, child_protocol.PAYLOAD)
        workload.expect_all_durable(senders[0])

    return measure.Contestant(name, run)


_TABLES = {
    "growing processes": _processes,
    "growing payload": _payloads,
    "growing partitions": _partitions,
    "growing topics": _topics,
    "by option": _options,
}
