"""A broker that is killed, hangs or restarts under publishers and listeners; a leader of three."""

import contextlib
import pathlib
import signal
import time
from collections.abc import Callable, Iterator

from faults import rows, timings
from faults.harness import Case
from faults.processes import BATCH_RECORDS, SESSION_SECONDS, SOAK_FACTOR, Bus, kafka_bus
from faults.workload import publisher
from notifier_kafka.wire import topic_names
from notifier_kafka_drivers.kafka.local.cluster import Cluster

COUNT = 3_000 * SOAK_FACTOR
POLL_INTERVAL = 6.0
OpenCase = Callable[[Bus], Case]


def run_under_fault(case: Case, fault: contextlib.AbstractContextManager[None]) -> None:
    """Publish in both modes, listen with two members, inject a fault meanwhile, and judge."""
    listeners = [case.listen(name, "main", work_seconds=0.001) for name in ("one", "two")]
    waits = case.publish("waiting", COUNT // 2, mode="chunk", rate=COUNT / 20)
    streams = case.publish("streaming", COUNT // 2, mode="stream", rate=COUNT / 20)
    waits.wait_for("acknowledged", COUNT // 10)
    listeners[0].wait_for("handled", 1)
    with fault:
        assert waits.count("offered") < COUNT // 2, "too late to prove anything"
        assert streams.count("offered") < COUNT // 2, "too late to prove anything"
    # Both members may lose their partitions twice: when the broker goes and when it is back.
    verdict = case.finish({"main": 2 * 2 * BATCH_RECORDS})
    assert verdict.is_valid, verdict
    assert (verdict.acknowledged, verdict.failed) == (COUNT, 0)


def run_beside_controls(
    case: Case, fault: contextlib.AbstractContextManager[None], directory: pathlib.Path
) -> None:
    """Run it; no call of the publisher that does not wait may have waited for a broker."""
    case.start_controls()
    run_under_fault(case, fault)
    found = timings.measure(directory)
    assert found.calls >= COUNT // 2 - 1
    said = rows.broken_limits(found, rows.allowed_growth({}, COUNT))
    # The 99th percentile needs a machine without other load: ``python -m faults`` judges it.
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
    time.sleep(SESSION_SECONDS + 2.0)  # the fault itself: the sessions of all members run out
    cluster.kill_node(number, signal.SIGCONT)


@contextlib.contextmanager
def away(cluster: Cluster, number: int) -> Iterator[None]:
    cluster.kill_node(number)
    yield
    time.sleep(2.0 * POLL_INTERVAL)  # the fault itself: a commit hangs, and no poll takes place
    cluster.start_node(number)


def test_killed_and_started_again(fragile: Cluster, client: str, open_case: OpenCase) -> None:
    run_under_fault(open_case(kafka_bus(fragile.url, client)), killed(fragile, 1))


def test_away_for_longer_than_the_poll_interval(fragile: Cluster, client: str, open_case: OpenCase) -> None:
    run_under_fault(open_case(kafka_bus(fragile.url, client, poll_interval=POLL_INTERVAL)), away(fragile, 1))


def test_hangs_for_longer_than_a_session(
    fragile: Cluster, client: str, open_case: OpenCase, tmp_path: pathlib.Path
) -> None:
    run_beside_controls(open_case(kafka_bus(fragile.url, client)), hung(fragile, 1), tmp_path)


def test_the_leader_of_three_is_killed(
    trio: Cluster, client: str, open_case: OpenCase, tmp_path: pathlib.Path
) -> None:
    case = open_case(kafka_bus(trio.url, client, topic_replication=3))
    run_beside_controls(case, _leader_killed(trio, case), tmp_path)


@contextlib.contextmanager
def _leader_killed(cluster: Cluster, case: Case) -> Iterator[None]:
    bus = publisher.connect(case.bus.url, {})
    details = bus.driver.admin().describe_topic(topic_names.bus_topic(case.topic, "info")).details
    bus.cleanup()
    with killed(cluster, int(details["partition 0"].split()[1].rstrip(";"))):
        yield
