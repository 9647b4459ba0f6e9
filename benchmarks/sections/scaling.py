"""How publishing scales with processes, the payload, partitions and topics, and what options cost.

Rates count all notifications together, published one by one with the confluent client. Ratios
are to the first row of each table.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import cycle, islice

from benchmarks import child_protocol, measure, rows, workload
from benchmarks.environment import Environment
from benchmarks.peers import Child
from benchmarks.rows import Row
from notifier_kafka import Notifier

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
MEAN_RECORD_BYTES = 500  # rounds of larger payloads have fewer records, so that they move as many bytes


def measure_scaling(environment: Environment) -> list[Row]:
    """Measure one table after the other."""
    found: list[Row] = []
    for title, make in _TABLES.items():
        with ExitStack() as stack:
            contestants = list(make(environment, stack))
            rates = measure.compare(contestants, environment.size.each, environment.size.growth_rounds)
        environment.delete_topics()
        found += rows.make_scaling_rows(f"publish, {title}", rates)
    return found


def _processes(environment: Environment, stack: ExitStack) -> Iterator[measure.Contestant]:
    url, topic = f"{environment.cluster.url}/?client={CLIENT}", environment.create_topic()
    numbers = _upto(PROCESSES, environment)
    children = [stack.enter_context(Child("publisher", url, topic)) for _ in range(numbers[-1])]

    def publish(number: int) -> Callable[[int], None]:
        def run(count: int) -> None:
            for child in children[:number]:
                child.send("work", max(1, count // number))
            for child in children[:number]:
                child.receive()

        return run

    for number in numbers:
        name = f"{number} process{'es' * (number > 1)}"
        yield measure.Contestant(name, publish(number), cpu=lambda: sum(child.cpu() for child in children))


def _payloads(environment: Environment, stack: ExitStack) -> Iterator[measure.Contestant]:
    bus = stack.enter_context(environment.bus(CLIENT))
    notifier = workload.connected_notifier(bus, environment.create_topic())

    count = environment.size.each
    for kilobytes in KILOBYTES:
        size = kilobytes * 1000
        payload, fewer = (
            {"text": "x" * round(size - 11)},
            max(1, min(count, round(count * MEAN_RECORD_BYTES / size))),
        )
        yield _fewer(f"{kilobytes:g} KB", notifier, payload, (count, fewer))


def _fewer(
    name: str, notifier: Notifier, payload: dict[str, str], sizes: tuple[int, int]
) -> measure.Contestant:
    """Publish fewer than the others in a round, and scale the times up."""
    count, fewer = sizes

    def run(_count: int) -> float:
        begin = time.perf_counter()
        workload.one_by_one(notifier, fewer, payload)
        return (time.perf_counter() - begin) * count / fewer

    return measure.Contestant(name, run, cpu=lambda: time.process_time() * count / fewer)


def _partitions(environment: Environment, stack: ExitStack) -> Iterator[measure.Contestant]:
    bus = stack.enter_context(environment.bus(CLIENT))
    for number in _upto(PARTITIONS, environment):
        notifier = workload.connected_notifier(bus, environment.create_topic(number))
        yield _publishing(f"{number} partition{'s' * (number > 1)}", [notifier])


def _topics(environment: Environment, stack: ExitStack) -> Iterator[measure.Contestant]:
    bus = stack.enter_context(environment.bus(CLIENT))
    senders: list[Notifier] = []
    for number in _upto(TOPICS, environment):
        measure.report_progress(f"making {number - len(senders)} topics")
        senders += [
            workload.connected_notifier(bus, environment.create_topic(1))
            for _ in range(number - len(senders))
        ]
        yield _publishing(f"{number:,} topic{'s' * (number > 1)} of 1 partition", senders[:number])


def _options(environment: Environment, stack: ExitStack) -> Iterator[measure.Contestant]:
    topic = environment.create_topic()
    for name in OPTIONS:
        bus = stack.enter_context(environment.bus(CLIENT, f"&{name}" if name else ""))
        yield _publishing(name or "defaults", [workload.connected_notifier(bus, topic)])


def _upto(numbers: Sequence[int], environment: Environment) -> list[int]:
    return [number for number in numbers if number <= environment.size.most]


def _publishing(name: str, senders: list[Notifier]) -> measure.Contestant:
    def run(count: int) -> None:
        for notifier in islice(cycle(senders), count):
            notifier.info({}, child_protocol.EVENT_TYPE, child_protocol.PAYLOAD)
        workload.flush_all(senders[0])

    return measure.Contestant(name, run)


_TABLES = {
    "growing processes": _processes,
    "growing payload": _payloads,
    "growing partitions": _partitions,
    "growing topics": _topics,
    "by option": _options,
}
