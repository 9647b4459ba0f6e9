"""Publishing over Kafka, until the broker acknowledged all, beside every alternative."""

from contextlib import ExitStack, closing

from benchmarks import child_protocol, measure, peers, rows, workload
from benchmarks.bare_clients import CLIENTS, Bare
from benchmarks.environment import Scene
from benchmarks.rows import Row, Target
from benchmarks.sections import java_tools

ONE, MANY = "one by one", "send_many"
OSLO = "oslo.messaging"
PEERS = {OSLO: "oslo_messaging", "aiokafka": "aiokafka", "FastStream (confluent)": "faststream"}
LONE_RATE = 165_000
"""What one publishing thread of the comparison that this project began with did on an idle machine."""


def publish(scene: Scene) -> list[Row]:
    """Publish with both client libraries."""
    found = []
    for client, bare in CLIENTS.items():
        with ExitStack() as stack:
            bus, topic = stack.enter_context(scene.bus(client)), scene.topic()
            through = workload.sender(bus, topic)
            loop = stack.enter_context(closing(bare(scene.cluster.bootstrap)))
            contestants = [
                measure.Contestant(ONE, lambda count, to=through: workload.one_by_one(to, count)),  # type: ignore[misc]
                measure.Contestant(MANY, lambda count, to=through: workload.send_many(to, count)),  # type: ignore[misc]
                _bare(client, loop, f"{topic}.info"),
            ]
            if client == "confluent-kafka":
                contestants += _others(scene, stack, topic)
            if scene.size.rounds > 1:
                measure.compare(contestants, scene.size.each // 10, 1)  # the broker's Java gets warm
            rates = measure.compare(contestants, scene.size.each, scene.size.rounds)
        found += _rows(client, rates)
    return found


def _bare(client: str, loop: Bare, topic: str) -> measure.Contestant:
    loop.publish_to(topic)
    return measure.Contestant(
        f"bare {client}", lambda count: loop.publish(topic, child_protocol.message, count)
    )


def _others(scene: Scene, stack: ExitStack, topic: str) -> list[measure.Contestant]:
    bootstrap, found = scene.cluster.bootstrap, []
    if scene.peers:
        for name, peer in PEERS.items():
            child = stack.enter_context(peers.start(peer, "publish", bootstrap, topic))
            found.append(peers.contestant(name, child))
    return [*found, java_tools.producer(bootstrap, f"{topic}.info")]


def _rows(client: str, rates: measure.Rounds) -> list[Row]:
    group, bare = f"publish over Kafka, {client}", f"bare {client}"
    found = [
        rows.beside(group, rates, ONE, bare, Target("≥", 0.9)),
        rows.beside(group, rates, MANY, ONE, Target("≥", 1.3)),
    ]
    if client == "confluent-kafka":
        found.insert(1, rows.alone(group, rates, ONE, Target(">", LONE_RATE)))
    if OSLO in rates:
        found.insert(1, rows.beside(group, rates, ONE, OSLO, Target("≥", 5)))
    found += [rows.beside(group, rates, name, bare) for name in rates if name not in (ONE, MANY, bare)]
    return [*found, rows.alone(group, rates, bare)]
