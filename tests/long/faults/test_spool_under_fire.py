"""The spool on a real broker that is killed, under real processes that are killed, on a disk that is full.

Judged from the journals of the processes and of a plain consumer that knows nothing of this package.
"""

import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from faults import checker
from faults.history import Journal
from faults.topology.small_disk import mounted
from faults.workload.spool_publisher import CHUNK, Plan
from notifier_kafka.testing.clusters import ClusterMaker
from tests.shared.checkout import ROOT

SOAK = bool(os.environ.get("NOTIFIER_KAFKA_SOAK"))
COUNT = 500_000 if SOAK else 30_000  # of each of two publishers
PATIENCE = 1_800.0 if SOAK else 120.0
# What a process that is killed may send again: what its forwarder had under way, and what
# the bus's client had taken without a word from the broker.
REPEATS = 2_000 + CHUNK


def until(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.02)


@dataclasses.dataclass
class Scene:
    """A directory for journals, a spool, a topic and a broker; the processes that use them."""

    home: pathlib.Path
    cluster: Any
    client: str
    topic: str
    processes: list[subprocess.Popen[bytes]] = dataclasses.field(default_factory=list)

    @property
    def spool(self) -> pathlib.Path:
        return self.home / "spool"

    def plan(self, name: str, count: int, **more: Any) -> Plan:
        settings = {"spool_dir": str(self.spool), "spool_after": 0.5} | more.pop("settings", {})
        url = f"{self.cluster.url}/?client={self.client}&topic_partitions=4"
        return Plan(url, str(self.journal(name)), name, self.topic, count, settings, **more)

    def journal(self, name: str) -> pathlib.Path:
        return self.home / f"{name}.journal"

    def publish(self, plan: Plan) -> subprocess.Popen[bytes]:
        argument = json.dumps(dataclasses.asdict(plan))
        self.processes.append(
            subprocess.Popen([sys.executable, "-m", "faults.workload.spool_publisher", argument], cwd=ROOT)
        )
        return self.processes[-1]

    def acknowledged(self, name: str) -> int:
        path = self.journal(name)
        return path.read_bytes().count(b'"acknowledged"') if path.exists() else 0

    def flush(self) -> int:
        """Run the command that sends what processes left."""
        url = f"{self.cluster.url}/?client={self.client}"
        command = [sys.executable, "-m", "notifier_kafka.cli.main", "--transport-url", url]
        argv = [*command, "spool", "flush", "--directory", str(self.spool), "--timeout", str(PATIENCE)]
        return subprocess.run(argv, check=False).returncode

    def judge(self, repeats: int) -> checker.Verdict:
        _consume(self.cluster.bootstrap, f"{self.topic}.info", Journal(self.journal("plain")))
        return checker.check(self.home, {"plain": repeats})


@pytest.fixture(params=["confluent-kafka", "kafka-python"])
def client(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def scene(tmp_path: pathlib.Path, make_kafka_cluster: ClusterMaker, client: str) -> Iterator[Scene]:
    made = Scene(tmp_path, make_kafka_cluster(), client, f"spool-{uuid.uuid4().hex[:8]}")
    yield made
    for process in made.processes:
        process.kill()
        process.wait()


def test_broker_and_publisher_are_killed_and_what_was_acknowledged_arrives_in_order(scene: Scene) -> None:
    plans = [scene.plan(name, COUNT, linger=PATIENCE) for name in ("ann", "ben")]
    ann, ben = (scene.publish(plan) for plan in plans)
    until(lambda: scene.acknowledged("ann") > COUNT // 6, "the publishers' start")
    scene.cluster.kill_node(1)
    until(lambda: scene.acknowledged("ann") > COUNT // 2, "publishing into the spool")
    ann.kill()
    assert ann.wait() == -signal.SIGKILL
    before = scene.acknowledged("ann")
    assert before < COUNT, "the publisher was killed too late to prove anything"
    ann = scene.publish(plans[0])
    until(lambda: scene.acknowledged("ann") > before, "the publisher's second life")
    scene.cluster.start()
    assert [ann.wait(PATIENCE), ben.wait(PATIENCE)] == [0, 0]
    assert scene.flush() == 0
    assert list(scene.spool.iterdir()) == []
    verdict = scene.judge(REPEATS)
    assert verdict.faultless, str(verdict)
    assert verdict.acknowledged > 2 * COUNT - 2 * CHUNK
    assert verdict.failed == 0


def test_a_disk_that_is_full_costs_what_is_told_and_nothing_else(scene: Scene) -> None:
    count = 20_000
    settings = {"exit_timeout": 1.0}
    with mounted(scene.spool) as largest:
        scene.cluster.kill_node(1)
        plan = scene.plan("cid", count, chunk=2_000, padding=400, patience=0.5, settings=settings)
        process = scene.publish(dataclasses.replace(plan, largest_file=largest))
        assert process.wait(PATIENCE) == 0
        scene.cluster.start()
        assert scene.flush() == 0
    verdict = scene.judge(0)
    assert verdict.faultless, str(verdict)
    assert verdict.failed > 0
    assert verdict.handled > 1_000
    # Each is either on the topic or was given back to the program, and none is both.
    assert verdict.handled + verdict.failed == count


def _consume(bootstrap: str, topic: str, journal: Journal) -> None:
    """Read a topic from beginning to end."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "plain", "enable.auto.commit": False})
    partitions = consumer.list_topics(topic, 30.0).topics[topic].partitions
    ends = {n: consumer.get_watermark_offsets(TopicPartition(topic, n), 30.0)[1] for n in partitions}
    consumer.assign([TopicPartition(topic, n, 0) for n in partitions])
    left = {number for number, end in ends.items() if end}
    silent = 0
    while left:
        lines = []
        for message in consumer.consume(10_000, 1.0):
            assert not message.error(), message.error()
            notification = json.loads(json.loads(message.value())["oslo.message"])
            payload = {name: notification["payload"][name] for name in ("id", "key", "number")}
            place = {"partition": message.partition(), "offset": message.offset()}
            lines.append({"pool": "plain", "message_id": notification["message_id"], **payload, **place})
            if message.offset() + 1 >= ends[message.partition()]:
                left.discard(message.partition())
        silent = 0 if lines else silent + 1
        assert silent < PATIENCE, f"partitions {left} did not come to an end"
        journal.write_all("handled", lines)
    consumer.close()
