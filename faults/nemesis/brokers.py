"""Faults of brokers, and changes of a topic in use by administrators."""

import signal
import time
from collections.abc import Callable, Sequence

from faults.fault import Fault
from faults.processes import SESSION_SECONDS, wait_until
from faults.run import Run
from faults.topology import disks
from faults.workload import publisher
from notifier_kafka.wire import topic_names

THREE = ("three-brokers",)
DISKS = ("separate-disks",)
ALL_NODES = (1, 2, 3)
ChooseNodes = Callable[[Run], Sequence[int]]


def leader(run: Run) -> Sequence[int]:
    return [run.topology.leader(run.case.bus, run.case.topic)]


def controller(run: Run) -> Sequence[int]:
    return [run.topology.controller()]


def two(run: Run) -> Sequence[int]:
    first = leader(run)[0]
    return [first, first % 3 + 1]


def everyone(_run: Run) -> Sequence[int]:
    return ALL_NODES


def killed(choose: ChooseNodes) -> Callable[[Run], None]:
    """Kill brokers and start them again; two of three have to go on without the third."""

    def inject(run: Run) -> None:
        numbers = choose(run)
        with run.disruption():
            for number in numbers:
                run.cluster.kill_node(number)
            if len(numbers) == 1:
                run.mark_repaired()
                run.wait_for_progress()
            else:
                time.sleep(SESSION_SECONDS)
        for number in numbers:
            run.cluster.kill_node(number)
        run.cluster.start()
        run.mark_repaired()

    return inject


def stopped(choose: ChooseNodes) -> Callable[[Run], None]:
    """Stop brokers for longer than a session, so that the others declare them dead, and continue them."""

    def inject(run: Run) -> None:
        numbers = choose(run)
        with run.disruption():  # noqa: SIM117
            with run.topology.suspended(numbers):
                if len(numbers) == 1:
                    run.mark_repaired()
                    run.wait_for_progress()
                time.sleep(SESSION_SECONDS + 2.0)

    return inject


def rolling_restart(run: Run) -> None:
    for number in ALL_NODES:
        with run.disruption():
            run.cluster.stop_node(number)
            run.cluster.start_node(number)
        run.wait_for_progress()


def partitions_added(run: Run) -> None:
    """Kafka moves keys to other partitions then, so the order of a key across that is not promised."""
    from confluent_kafka import admin

    login = run.cluster.options()
    settings = {"bootstrap.servers": run.cluster.bootstrap, "security.protocol": login["security_protocol"]}
    settings |= {name.replace("_", "."): text for name, text in login.items() if name.startswith("sasl_")}
    client = admin.AdminClient(settings)
    topic = topic_names.bus_topic(run.case.topic, "info")
    with run.disruption():
        count = len(client.list_topics(topic, 30.0).topics[topic].partitions)
        client.create_partitions([admin.NewPartitions(topic, count + 2)])[topic].result(60.0)


def topic_deleted(run: Run) -> None:
    bus = publisher.connect(run.case.bus.url, {})
    with run.disruption():
        bus.driver.admin().delete_topic(topic_names.bus_topic(run.case.topic, "info"))
        # What the brokers accepted a moment ago may still be deleted with the topic.
        time.sleep(3.0)
    run.mark_erased()
    # Clients ask for the ids of topics every 5 s; what waited until then comes at once.
    run.allow_rereading(10.0)
    bus.cleanup()


def retention(run: Run) -> None:
    """Delete what stopped listeners have not read."""
    bus = publisher.connect(run.case.bus.url, {})
    with run.disruption():
        for each in run.listeners:
            run.case.pause(each)
        time.sleep(2.0)
        bus.driver.admin().purge_topic(topic_names.bus_topic(run.case.topic, "info"))
        run.mark_erased()
        for each in run.listeners:
            each.send_signal(signal.SIGCONT)
    bus.cleanup()


def disk_full(run: Run) -> None:
    """Fill the disk of a leader: it ends itself, and the others take over."""
    (number,) = leader(run)
    node = run.cluster.node(number)
    with run.disruption():  # noqa: SIM117
        with run.topology.disks[number].full():
            wait_until(lambda: not node.is_alive(), "the broker's end")
            run.mark_repaired()
            run.wait_for_progress()
    run.cluster.start()
    run.mark_repaired()


def disk_slow(run: Run) -> None:
    (number,) = leader(run)
    process = run.cluster.node(number).process.pid
    with run.disruption(), run.topology.disks[number].slow(process):
        time.sleep(SESSION_SECONDS)
        run.wait_for_progress()


FAULTS = [
    Fault(
        "leader-killed",
        "SIGKILL of the leader of a partition, which starts again later",
        killed(leader),
        THREE,
    ),
    Fault("leader-stopped", "SIGSTOP of a leader for longer than a session", stopped(leader), THREE),
    Fault("controller-killed", "SIGKILL of the active controller", killed(controller), THREE),
    Fault("controller-stopped", "SIGSTOP of the active controller", stopped(controller), THREE),
    Fault("two-killed", "SIGKILL of two of three, the leader among them", killed(two), THREE),
    Fault("two-stopped", "SIGSTOP of two of three", stopped(two), THREE),
    Fault("all-killed", "SIGKILL of all three at once: an unclean shutdown", killed(everyone), THREE),
    Fault("all-stopped", "SIGSTOP of all three for longer than a session", stopped(everyone), THREE),
    Fault(
        "broker-disk-full",
        "the disk of a leader is full, so it ends itself",
        disk_full,
        DISKS,
        requires=disks.MOUNT_RIGHTS,
    ),
    Fault(
        "broker-disk-slow", "the disk of a leader is slow", disk_slow, DISKS, requires=disks.THROTTLE_RIGHTS
    ),
    Fault("rolling-restart", "stop and start one broker after the other", rolling_restart, THREE),
    Fault(
        "partitions-added",
        "the topic in use gets two more partitions",
        partitions_added,
        THREE,
        tolerates=frozenset({"reordered"}),
    ),
    Fault("topic-deleted", "the topic is deleted in use and is created again", topic_deleted, THREE),
    Fault(
        "retention",
        "records are deleted before a stopped listener has read them",
        retention,
        (*THREE, "sqlite"),
    ),
]
