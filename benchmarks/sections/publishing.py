"""Publishing over Kafka until the broker has acknowledged all, beside every alternative."""

from contextlib import ExitStack, closing

from benchmarks import child_protocol, measure, peers, rows, workload
from benchmarks.bare_clients import CLIENTS, Bare
from benchmarks.environment import Environment
from benchmarks.rows import Goal, Row
from benchmarks.sections import java_tools

ONE, MANY = "one by one", "send_many"
OSLO = "oslo.messaging"
PEERS = {OSLO: "oslo_messaging", "aiokafka": "aiokafka", "FastStream (confluent)": "faststream"}
SINGLE_THREAD_RATE = 165_000
"""The rate of one publishing thread in the first comparison of this project, on an idle machine."""


def publish(environment: Environment) -> list[Row]:
    """Publish with both client libraries."""
    found = []
    for client, bare in CLIENTS.items():
        with ExitStack() as stack:
            bus, topic = stack.enter_context(environment.bus(client)), environment.create_topic()
            notifier = workload.connected_notifier(bus, topic)
            loop = stack.enter_context(closing(bare(environment.cluster.bootstrap)))
            contestants = [
                measure.Contestant(ONE, lambda count, to=notifier: workload.one_by_one(to, count)),  # type: ignore[misc]
                measure.Contestant(MANY, lambda count, to=notifier: workload.send_many(to, count)),  # type: ignore[misc]
                _bare(client, loop, f"{topic}.info"),
            ]
            if client == "confluent-kafka":
                contestants += _others(environment, stack, topic)
            if environment.size.rounds > 1:
                measure.compare(contestants, environment.size.each // 10, 1)  # warms the broker's JVM up
            rates = measure.compare(contestants, environment.size.each, environment.size.rounds)
        found += _rows(client, rates)
    return found


def _bare(client: str, loop: Bare, topic: str) -> measure.Contestant:
    loop.publish_to(topic)
    return measure.Contestant(
        f"bare {client}", lambda count: loop.publish(topic, child_protocol.encode, count)
    )


def _others(environment: Environment, stack: ExitStack, topic: str) -> list[measure.Contestant]:
    bootstrap, found = environment.cluster.bootstrap, []
    if environment.peers:
        for name, peer in PEERS.items():
            child = stack.enter_context(peers.start(peer, "publish", bootstrap, topic))
            found.append(peers.contestant(name, child))
    return [*found, java_tools.producer(bootstrap, f"{topic}.info")]


def _rows(client: str, rates: measure.Rounds) -> list[Row]:
    group, bare = f"publish over Kafka, {client}", f"bare {client}"
    found = [
        rows.make_ratio_row(group, rates, ONE, bare, Goal("≥", 0.9)),
        rows.make_ratio_row(group, rates, MANY, ONE, Goal("≥", 1.3)),
    ]
    if client == "confluent-kafka":
        found.insert(1, rows.make_row(group, rates, ONE, Goal(">", SINGLE_THREAD_RATE)))
    if OSLO in rates:
        found.insert(1, rows.make_ratio_row(group, rates, ONE, OSLO, Goal("≥", 5)))
    found += [
        rows.make_ratio_row(group, rates, name, bare) for name in rates if name not in (ONE, MANY, bare)
    ]
    return [*found, rows.make_row(group, rates, bare)]
