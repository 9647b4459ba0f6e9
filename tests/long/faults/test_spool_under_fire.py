"""The spool, with a broker and publishers that are killed and with a full disk.

Judged from the histories of the processes and of a plain consumer that knows nothing of this package.
"""

import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from faults import checker
from faults.history import History
from faults.processes import wait_until
from faults.topology.small_disk import mounted
from faults.workload.spool_publisher import CHUNK_RECORDS, SpoolPlan
from notifier_kafka.testing.clusters import ClusterMaker
from tests.shared.checkout import ROOT

SOAK = bool(os.environ.get("NOTIFIER_KAFKA_SOAK"))
COUNT = 500_000 if SOAK else 30_000  # of each of two publishers
TIMEOUT_SECONDS = 1_800.0 if SOAK else 120.0
# What a process that is killed may send again: what its forwarder had under way, and what
# the bus's client had taken without a word from the broker.
REPEATS = 2_000 + CHUNK_RECORDS


@dataclasses.dataclass
class SpoolCase:
    """A directory for histories, a spool, a topic and a broker; the processes that use them."""

    home: pathlib.Path
    cluster: Any
    client: str
    topic: str
    processes: list[subprocess.Popen[bytes]] = dataclasses.field(default_factory=list)

    @property
    def spool(self) -> pathlib.Path:
        return self.home / "spool"

    def plan(self, name: str, count: int, **more: Any) -> SpoolPlan:
        settings = {"spool_dir": str(self.spool), "spool_after": 0.5} | more.pop("settings", {})
        url = f"{self.cluster.url}/?client={self.client}&topic_partitions=4"
        return SpoolPlan(url, str(self.history(name)), name, self.topic, count, settings, **more)

    def history(self, name: str) -> pathlib.Path:
        return self.home / f"{name}.history"

    def publish(self, plan: SpoolPlan) -> subprocess.Popen[bytes]:
        argument = json.dumps(dataclasses.asdict(plan))
        self.processes.append(
            subprocess.Popen([sys.executable, "-m", "faults.workload.spool_publisher", argument], cwd=ROOT)
        )
        return self.processes[-1]

    def acknowledged(self, name: str) -> int:
        path = self.history(name)
        return path.read_bytes().count(b'"acknowledged"') if path.exists() else 0

    def flush(self) -> int:
        """Run the command that sends what processes left in the spool."""
        url = f"{self.cluster.url}/?client={self.client}"
        command = [sys.executable, "-m", "notifier_kafka.cli.main", "--transport-url", url]
        argv = [*command, "spool", "flush", "--directory", str(self.spool), "--timeout", str(TIMEOUT_SECONDS)]
        return subprocess.run(argv, check=False).returncode

    def judge(self, repeats: int) -> checker.Verdict:
        _consume(self.cluster.bootstrap, f"{self.topic}.info", History(self.history("plain")))
        return checker.check(self.home, {"plain": repeats})


@pytest.fixture(params=["confluent-kafka", "kafka-python"])
def client(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def case(tmp_path: pathlib.Path, make_kafka_cluster: ClusterMaker, client: str) -> Iterator[SpoolCase]:
    made = SpoolCase(tmp_path, make_kafka_cluster(), client, f"spool-{uuid.uuid4().hex[:8]}")
    yield made
    for process in made.processes:
        process.kill()
        process.wait()


def test_broker_and_publisher_are_killed_and_what_was_acknowledged_arrives_in_order(case: SpoolCase) -> None:
    plans = [case.plan(name, COUNT, linger=TIMEOUT_SECONDS) for name in ("ann", "ben")]
    ann, ben = (case.publish(plan) for plan in plans)
    wait_until(lambda: case.acknowledged("ann") > COUNT // 6, "the publishers' start")
    case.cluster.kill_node(1)
    wait_until(lambda: case.acknowledged("ann") > COUNT // 2, "publishing into the spool")
    ann.kill()
    assert ann.wait() == -signal.SIGKILL
    before = case.acknowledged("ann")
    assert before < COUNT, "the publisher was killed too late to prove anything"
    ann = case.publish(plans[0])
    wait_until(lambda: case.acknowledged("ann") > before, "the publisher's second process")
    case.cluster.start()
    assert [ann.wait(TIMEOUT_SECONDS), ben.wait(TIMEOUT_SECONDS)] == [0, 0]
    assert case.flush() == 0
    assert list(case.spool.iterdir()) == []
    verdict = case.judge(REPEATS)
    assert verdict.is_valid, str(verdict)
    assert verdict.acknowledged > 2 * COUNT - 2 * CHUNK_RECORDS
    assert verdict.failed == 0


def test_a_disk_that_is_full_costs_what_is_told_and_nothing_else(case: SpoolCase) -> None:
    count = 20_000
    settings = {"exit_timeout": 1.0}
    with mounted(case.spool) as largest:
        case.cluster.kill_node(1)
        plan = case.plan("cid", count, chunk=2_000, padding=400, flush_timeout=0.5, settings=settings)
        process = case.publish(dataclasses.replace(plan, max_file_bytes=largest))
        assert process.wait(TIMEOUT_SECONDS) == 0
        case.cluster.start()
        assert case.flush() == 0
    verdict = case.judge(0)
    assert verdict.is_valid, str(verdict)
    assert verdict.failed > 0
    assert verdict.handled > 1_000
    # Each is either on the topic or reported as failed, and none is both.
    assert verdict.handled + verdict.failed == count


def _consume(bootstrap: str, topic: str, history: History) -> None:
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
            location = {"partition": message.partition(), "offset": message.offset()}
            lines.append({"pool": "plain", "message_id": notification["message_id"], **payload, **location})
            if message.offset() + 1 >= ends[message.partition()]:
                left.discard(message.partition())
        silent = 0 if lines else silent + 1
        assert silent < TIMEOUT_SECONDS, f"partitions {left} did not come to an end"
        history.write_all("handled", lines)
    consumer.close()
