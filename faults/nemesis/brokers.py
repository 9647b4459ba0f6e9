"""What happens to brokers and to what administrators do with a topic in use."""

import signal
import time
from collections.abc import Callable, Sequence

from faults.harness import SESSION, until
from faults.run import Fault, Play
from faults.topology import disks
from faults.workload import publisher
from notifier_kafka.wire import topic_names

THREE = ("three",)
DISKS = ("disks",)
ALL = (1, 2, 3)
Chosen = Callable[[Play], Sequence[int]]


def leader(play: Play) -> Sequence[int]:
    return [play.place.leader(play.scene.bus, play.scene.topic)]


def controller(play: Play) -> Sequence[int]:
    return [play.place.controller()]


def two(play: Play) -> Sequence[int]:
    first = leader(play)[0]
    return [first, first % 3 + 1]


def everyone(_play: Play) -> Sequence[int]:
    return ALL


def killed(choose: Chosen) -> Callable[[Play], None]:
    """Kill brokers and start them again; what is left has to go on without one of three."""

    def strike(play: Play) -> None:
        numbers = choose(play)
        with play.hit():
            for number in numbers:
                play.cluster.kill_node(number)
            if len(numbers) == 1:
                play.mark()
                play.flow()
            else:
                time.sleep(SESSION)
        for number in numbers:
            play.cluster.kill_node(number)
        play.cluster.start()
        play.mark()

    return strike


def stopped(choose: Chosen) -> Callable[[Play], None]:
    """Stop brokers for longer than a session, so that they are taken for dead and come back."""

    def strike(play: Play) -> None:
        numbers = choose(play)
        with play.hit():  # noqa: SIM117
            with play.place.suspended(numbers):
                if len(numbers) == 1:
                    play.mark()
                    play.flow()
                time.sleep(SESSION + 2.0)

    return strike


def rolling_restart(play: Play) -> None:
    for number in ALL:
        with play.hit():
            play.cluster.stop_node(number)
            play.cluster.start_node(number)
        play.flow()


def partitions_added(play: Play) -> None:
    """Kafka gives a key another partition then, so that it may be overtaken by itself: that is no promise."""
    from confluent_kafka import admin

    login = play.cluster.options()
    told = {"bootstrap.servers": play.cluster.bootstrap, "security.protocol": login["security_protocol"]}
    told |= {name.replace("_", "."): text for name, text in login.items() if name.startswith("sasl_")}
    client = admin.AdminClient(told)
    topic = topic_names.bus_topic(play.scene.topic, "info")
    with play.hit():
        count = len(client.list_topics(topic, 30.0).topics[topic].partitions)
        client.create_partitions([admin.NewPartitions(topic, count + 2)])[topic].result(60.0)


def topic_deleted(play: Play) -> None:
    bus = publisher.connect(play.scene.bus.url, {})
    with play.hit():
        bus.driver.admin().delete_topic(topic_names.bus_topic(play.scene.topic, "info"))
        # What the brokers took a moment ago may still go down with the topic.
        time.sleep(3.0)
    play.erase()
    # Brokers are asked for the ids of topics every 5 s, and what waited meanwhile comes at once.
    play.reread(10.0)
    bus.cleanup()


def retention(play: Play) -> None:
    """Delete what a listener that is stopped has not read."""
    bus = publisher.connect(play.scene.bus.url, {})
    with play.hit():
        for each in play.listeners:
            play.scene.pause(each)
        time.sleep(2.0)
        bus.driver.admin().purge_topic(topic_names.bus_topic(play.scene.topic, "info"))
        play.erase()
        for each in play.listeners:
            each.send(signal.SIGCONT)
    bus.cleanup()


def disk_full(play: Play) -> None:
    """A leader finds no room: it ends itself, and the others lead."""
    (number,) = leader(play)
    node = play.cluster.node(number)
    with play.hit():  # noqa: SIM117
        with play.place.disks[number].full():
            until(lambda: not node.is_alive(), "the broker to end itself")
            play.mark()
            play.flow()
    play.cluster.start()
    play.mark()


def disk_slow(play: Play) -> None:
    (number,) = leader(play)
    process = play.cluster.node(number).process.pid
    with play.hit(), play.place.disks[number].slow(process):
        time.sleep(SESSION)
        play.flow()


FAULTS = [
    Fault(
        "leader-killed", "SIGKILL of the leader of a partition; later it starts again", killed(leader), THREE
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
        "the disk of a leader fills up, so that it ends itself",
        disk_full,
        DISKS,
        needs=disks.MOUNTED,
    ),
    Fault("broker-disk-slow", "the disk of a leader is slow", disk_slow, DISKS, needs=disks.SLOWED),
    Fault("rolling-restart", "one broker after the other is stopped and started", rolling_restart, THREE),
    Fault(
        "partitions-added",
        "two partitions more for the topic, in use",
        partitions_added,
        THREE,
        forgives=frozenset({"reordered"}),
    ),
    Fault("topic-deleted", "the topic is deleted in use and comes back by itself", topic_deleted, THREE),
    Fault(
        "retention",
        "records are deleted before a listener that hangs has read them",
        retention,
        (*THREE, "sqlite"),
    ),
]
