"""A broker that is killed, hangs or restarts under publishers and listeners; a leader of three."""

import contextlib
import pathlib
import signal
import time
from collections.abc import Callable, Iterator

from faults import rows, timings
from faults.harness import BATCH, LOAD, SESSION, Bus, Scene, kafka
from faults.workload import publisher
from notifier_kafka.wire import topic_names
from notifier_kafka_drivers.kafka.local.cluster import Cluster

COUNT = 3_000 * LOAD
POLL_INTERVAL = 6.0
OpenScene = Callable[[Bus], Scene]


def play(scene: Scene, fault: contextlib.AbstractContextManager[None]) -> None:
    """Publish in both ways, listen with two members, have a fault under that load, and judge."""
    listeners = [scene.listen(name, "crew", work=0.001) for name in ("one", "two")]
    waits = scene.publish("waits", COUNT // 2, how="chunk", rate=COUNT / 20)
    streams = scene.publish("streams", COUNT // 2, how="stream", rate=COUNT / 20)
    waits.await_count("acknowledged", COUNT // 10)
    listeners[0].await_count("handled", 1)
    with fault:
        assert waits.count("offered") < COUNT // 2, "too late to prove anything"
        assert streams.count("offered") < COUNT // 2, "too late to prove anything"
    # Both lose their partitions at most when it goes and when it is back.
    verdict = scene.finish({"crew": 2 * 2 * BATCH})
    assert verdict.faultless, verdict
    assert (verdict.acknowledged, verdict.failed) == (COUNT, 0)


def played_beside_a_control(
    scene: Scene, fault: contextlib.AbstractContextManager[None], directory: pathlib.Path
) -> None:
    """Play it; no call of the publisher that does not wait may have waited for a broker."""
    scene.control()
    play(scene, fault)
    found = timings.measure(directory)
    assert found.calls >= COUNT // 2 - 1
    said = rows.late(found, rows.promised({}, COUNT))
    # The 99th percentile is for a machine that has less to do: ``python -m faults``.
    assert [each for each in said if not each.startswith("p99: ")] == []


@contextlib.contextmanager
def killed(cluster: Cluster, number: int) -> Iterator[None]:
    cluster.kill_node(number)
    yield
    cluster.start_node(number)


@contextlib.contextmanager
def hung(cluster: Cluster, number: int) -> Iterator[None]:
    cluster.kill_node(number, signal.SIGSTOP)
    yield
    time.sleep(SESSION + 2.0)  # the fault itself: the sessions of all members run out
    cluster.kill_node(number, signal.SIGCONT)


@contextlib.contextmanager
def away(cluster: Cluster, number: int) -> Iterator[None]:
    cluster.kill_node(number)
    yield
    time.sleep(2.0 * POLL_INTERVAL)  # the fault itself: a commit hangs, and nobody polls
    cluster.start_node(number)


def test_killed_and_started_again(fragile: Cluster, client: str, open_scene: OpenScene) -> None:
    play(open_scene(kafka(fragile.url, client)), killed(fragile, 1))


def test_away_for_longer_than_the_poll_interval(fragile: Cluster, client: str, open_scene: OpenScene) -> None:
    play(open_scene(kafka(fragile.url, client, poll_interval=POLL_INTERVAL)), away(fragile, 1))


def test_hangs_for_longer_than_a_session(
    fragile: Cluster, client: str, open_scene: OpenScene, tmp_path: pathlib.Path
) -> None:
    played_beside_a_control(open_scene(kafka(fragile.url, client)), hung(fragile, 1), tmp_path)


def test_the_leader_of_three_is_killed(
    trio: Cluster, client: str, open_scene: OpenScene, tmp_path: pathlib.Path
) -> None:
    scene = open_scene(kafka(trio.url, client, topic_replication=3))
    played_beside_a_control(scene, _leader_killed(trio, scene), tmp_path)


@contextlib.contextmanager
def _leader_killed(cluster: Cluster, scene: Scene) -> Iterator[None]:
    bus = publisher.connect(scene.bus.url, {})
    details = bus.driver.admin().describe_topic(topic_names.bus_topic(scene.topic, "info")).details
    bus.cleanup()
    with killed(cluster, int(details["partition 0"].split()[1].rstrip(";"))):
        yield
