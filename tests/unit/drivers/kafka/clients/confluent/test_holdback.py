"""What waits in front of a producer of confluent-kafka: all of it goes on, once and in order."""

import threading
import time
from typing import Any

import pytest

from notifier_kafka.errors import DeliveryFailed, MessagingException, OutboxFull
from notifier_kafka_drivers.kafka.clients.confluent.holdback import MUTE_SECONDS, HoldbackQueue
from notifier_kafka_drivers.kafka.clients.confluent.in_flight import InFlight

RECORDS, KIB = 100, 64
CONFIG = {
    "queue.buffering.max.messages": RECORDS,
    "queue.buffering.max.kbytes": KIB,
    "delivery.timeout.ms": "0",
    "enable.idempotence": "true",
    "linger.ms": "0",
}


class Producing:
    """A front, what went on from it, and what was refused; ``room`` is for so many."""

    def __init__(self, room: int, **config: Any) -> None:
        self.front = HoldbackQueue(
            CONFIG | config, self.produce, lambda entry, _: self.failed.append(entry.number)
        )
        self.room = room
        self.produced: list[tuple[str, int]] = []
        self.failed: list[int] = []

    def produce(self, entry: InFlight) -> None:
        if entry.topic == "bad":
            raise DeliveryFailed("refused")
        if len(self.produced) >= self.room:
            raise OutboxFull("full")
        self.produced.append((entry.topic, entry.number))

    def offer(self, number: int, topic: str = "t", size: int = 1) -> None:
        entry = InFlight(lambda *_: None, number, topic, b"x" * size, None, (), 0, None)
        if not (self.front.active and self.front.hold_back(entry)):
            self.produce(entry)


def test_of_many_threads_each_keeps_its_order() -> None:
    count, names = 10_000, "abcd"
    producing = Producing(len(names) * count)
    front = producing.front

    def offer_all(name: str) -> None:
        for number in range(count):
            while True:
                try:
                    producing.offer(number, name, size=number % 100)
                except OutboxFull:
                    continue
                break

    threads = [threading.Thread(target=offer_all, args=(name,)) for name in names]
    front.gather(MUTE_SECONDS, 0)
    for each in threads:
        each.start()
    gathered = 0
    while any(each.is_alive() for each in threads):
        time.sleep(0.001)
        gathered += len(front)
        front.release()
        front.gather(MUTE_SECONDS, 0)
    front.release()
    assert gathered
    assert len(front) == 0
    for name in names:
        assert [number for topic, number in producing.produced if topic == name] == list(range(count))


def test_what_finds_no_room_stays_and_no_more_is_taken() -> None:
    producing = Producing(3)
    producing.front.gather(MUTE_SECONDS, 0)
    for number in range(5):
        producing.offer(number)
    producing.front.release()
    assert len(producing.front) == 2
    with pytest.raises(OutboxFull):
        producing.offer(5)
    producing.room = 6
    producing.front.release()
    producing.offer(5)
    assert producing.produced == [("t", number) for number in range(6)]
    assert producing.failed == []


def test_the_records_that_wait_are_as_many_as_there_is_room_for() -> None:
    producing = Producing(RECORDS)
    producing.front.gather(MUTE_SECONDS, RECORDS - 10)
    for number in range(10):
        producing.offer(number)
    with pytest.raises(OutboxFull):
        producing.offer(10)


def test_the_bytes_that_wait_are_a_quarter_of_the_outbox_s() -> None:
    producing = Producing(10 * RECORDS)
    producing.front.gather(MUTE_SECONDS, 0)
    for number in range(KIB // 4):
        producing.offer(number, size=1024)
    with pytest.raises(OutboxFull):
        producing.offer(KIB)
    producing.front.release()
    producing.offer(KIB)
    assert [number for _, number in producing.produced] == [*range(KIB // 4), KIB]


def test_one_that_is_refused_fails_and_those_behind_it_go_on() -> None:
    producing = Producing(RECORDS)
    producing.front.gather(MUTE_SECONDS, 0)
    producing.offer(0, "bad")
    producing.offer(1)
    assert (len(producing.front), producing.failed) == (2, [])
    producing.front.release()
    assert (producing.failed, producing.produced) == ([0], [("t", 1)])


def test_an_offer_in_the_middle_of_another_one_waits_behind_it() -> None:
    producing = Producing(RECORDS)
    inner: list[MessagingException | None] = []
    produce = producing.produce

    def interrupted(entry: InFlight) -> None:
        if not inner:
            inner.append(None)
            producing.offer(2)
        produce(entry)

    producing.front = HoldbackQueue(CONFIG, interrupted, lambda *_: None)
    producing.front.gather(MUTE_SECONDS, 0)
    producing.offer(0)
    producing.offer(1)
    producing.front.release()
    assert producing.produced == [("t", 0), ("t", 1), ("t", 2)]


@pytest.mark.parametrize("other", [{"delivery.timeout.ms": "5000"}, {"enable.idempotence": "false"}])
def test_one_that_has_its_time_or_may_sleep_gets_all_at_once(other: dict[str, str]) -> None:
    producing = Producing(RECORDS, **other)
    producing.front.gather(MUTE_SECONDS, 0)
    assert not producing.front.active


def test_one_that_never_fits_is_refused() -> None:
    producing = Producing(RECORDS)
    producing.front.gather(MUTE_SECONDS, 0)
    with pytest.raises(OutboxFull):
        producing.offer(0, size=KIB * 1024 + 1)


def test_what_waits_for_its_batch_is_no_silence() -> None:
    producing = Producing(RECORDS, **{"linger.ms": "2000"})
    producing.front.gather(MUTE_SECONDS + 1.9, 0)
    assert not producing.front.active
    producing.front.gather(MUTE_SECONDS + 2.0, 0)
    assert producing.front.active
