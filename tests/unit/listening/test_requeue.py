"""The records of requeued notifications and dead letters."""

import time

import pytest

from notifier_kafka.contract.driver import Delivery, Limits, Partition, Record
from notifier_kafka.listening import requeue
from notifier_kafka.notification import Notification
from notifier_kafka.publishing.transport import NotificationTransport
from notifier_kafka.wire import codec
from tests.shared.listening_kit import TIMEOUT_SECONDS, Recorder, listen, records, wait_for

DELIVERY = Delivery(
    Record("notifications.info", b"value", b"key", (("priority", b"info"),)),
    Partition("notifications.info", 3),
    42,
    1763452258.0,
)


def as_delivery(record: Record) -> Delivery:
    return Delivery(record, Partition(record.topic, 0), 7, 0.0)


def make(transport: NotificationTransport, delay: float = 60.0) -> requeue.Requeue:
    return requeue.Requeue(transport.driver, "workers", ["notifications.info"], delay)


def test_a_record_that_comes_back_keeps_itself_and_says_where_it_was(
    notifier_transport: NotificationTransport,
) -> None:
    record = make(notifier_transport).again(DELIVERY)
    assert record[:3] == ("workers.requeue.notifications.info", b"value", b"key")
    headers = dict(record.headers)
    assert headers.pop("requeue-due")
    assert headers == {
        "priority": b"info",
        "origin-topic": b"notifications.info",
        "origin-partition": b"3",
        "origin-offset": b"42",
        "requeue-attempt": b"1",
        "requeue-failures": b"0",
    }


def test_attempts_count_up_and_the_origin_stays(notifier_transport: NotificationTransport) -> None:
    made = make(notifier_transport)
    second = made.again(as_delivery(made.again(DELIVERY)))
    assert made.attempts(as_delivery(second)) == 2
    aside = made.dead_letter(as_delivery(second), "endpoint raised ValueError", 3)
    assert aside.topic == "workers.dead-letters"
    assert [name for name, _ in aside.headers].count("requeue-attempt") == 1
    headers = dict(aside.headers)
    assert headers["origin-topic"] == b"notifications.info"
    assert headers["requeue-attempt"] == b"3"
    assert headers["dead-letter-reason"] == b"endpoint raised ValueError"
    assert "requeue-due" not in headers


def test_a_record_is_due_after_the_delay_and_not_before(notifier_transport: NotificationTransport) -> None:
    made = make(notifier_transport)
    assert not made.is_due(as_delivery(made.again(DELIVERY)))
    patient = make(notifier_transport, delay=0.0)
    record = patient.again(DELIVERY)
    while time.time() < float(dict(record.headers)["requeue-due"]):
        time.sleep(0.001)
    assert patient.is_due(as_delivery(record))


def test_a_due_time_beyond_the_longest_delay_is_due_now(notifier_transport: NotificationTransport) -> None:
    hour = f"{time.time() + 3600:.6f}".encode()
    assert make(notifier_transport).is_due(as_delivery(Record("t", b"", None, (("requeue-due", hour),))))


def test_headers_that_anybody_wrote_are_harmless(notifier_transport: NotificationTransport) -> None:
    made = make(notifier_transport)
    for text in (b"", b"x", b"nan", b"inf", b"-1e400", b"\xff", b"-1", b"-1e300"):
        headers = tuple((name, text) for name in ("requeue-due", "requeue-attempt", "requeue-failures"))
        delivery = as_delivery(Record(made.topics[0], b"", None, headers))
        assert made.is_due(delivery)
        assert requeue.attempts(delivery.record) == made.attempts(delivery) == made.failures(delivery) == 0
        assert dict(made.again(delivery, failed=True).headers)["requeue-failures"] == b"1"


FORGED = {
    "origin-topic": b"secret.info",
    "origin-partition": b"9",
    "origin-offset": b"999",
    "requeue-attempt": b"7",
    "requeue-failures": b"7",
    "requeue-due": b"9e9",
    "dead-letter-reason": b"none",
}


def test_what_a_publisher_says_of_attempts_and_origin_does_not_count(
    notifier_transport: NotificationTransport,
) -> None:
    made = make(notifier_transport)
    record = DELIVERY.record._replace(headers=(*DELIVERY.record.headers, *FORGED.items()))
    forged = DELIVERY._replace(record=record)
    assert (made.attempts(forged), made.failures(forged)) == (0, 0)
    for failed in (False, True):
        expected, found = made.again(DELIVERY, failed=failed), made.again(forged, failed=failed)
        assert [name for name, _ in found.headers] == [name for name, _ in expected.headers]
        assert dict(found.headers) | {"requeue-due": b""} == dict(expected.headers) | {"requeue-due": b""}
        # What the group itself wrote then counts.
        back = as_delivery(found)
        assert (made.attempts(back), made.failures(back)) == (1, failed)
        assert requeue.origin(made.again(back)) == "notifications.info 3:42"
    aside = made.dead_letter(forged, "not JSON")
    assert aside == made.dead_letter(DELIVERY, "not JSON")
    given_back = requeue.revived(aside, "workers")
    assert given_back is not None
    assert given_back.topic == made.topics[0]


@pytest.mark.parametrize(("failures", "delay"), [(0, 2.0), (1, 4.0), (2, 8.0), (3, 9.0), (10**30, 9.0)])
def test_the_wait_doubles_with_each_failure_up_to_a_bound(
    notifier_transport: NotificationTransport, failures: int, delay: float
) -> None:
    made = requeue.Requeue(notifier_transport.driver, "workers", ["t"], 2.0, 9.0)
    tried = as_delivery(Record(made.topics[0], b"", None, (("requeue-failures", b"%d" % failures),)))
    for failed, expected in ((True, delay), (False, 2.0)):
        before = time.time()
        record = made.again(tried, failed=failed)
        due = float(dict(record.headers)["requeue-due"])
        assert before + expected - 1e-5 <= due <= time.time() + expected + 1e-5
        assert not made.is_due(as_delivery(record))


def test_a_dead_letter_goes_back_as_if_never_tried(notifier_transport: NotificationTransport) -> None:
    made = make(notifier_transport)
    aside = made.dead_letter(as_delivery(made.again(DELIVERY)), "endpoint raised ValueError")
    back = requeue.revived(aside, "workers")
    assert back is not None
    assert back.topic == made.topics[0]
    assert (back.value, back.key) == (DELIVERY.record.value, DELIVERY.record.key)
    assert requeue.attempts(back) == 0
    assert requeue.origin(back) == requeue.origin(aside) == "notifications.info 3:42"
    assert requeue.reason(aside) == "endpoint raised ValueError"
    assert requeue.reason(back) == ""
    assert made.is_due(as_delivery(back))
    assert requeue.revived(aside._replace(value=None), "workers") is None
    nameless = as_delivery(Record(made.topics[0], b"value", None, (("origin-topic", b""),)))
    assert requeue.origin(made.dead_letter(nameless, "not JSON")) == f"{made.topics[0]} 0:7"
    assert requeue.revived(Record("t", b"x"), "workers") is None


@pytest.mark.parametrize("topic", ["notifications.info", "pool.requeue.notifications.info"])
@pytest.mark.parametrize("in_place", [False, True])
def test_no_header_makes_a_poisonous_notification_immortal(
    notifier_transport: NotificationTransport, topic: str, in_place: bool
) -> None:
    for name in ("requeue_delay", "requeue_delay_max"):
        notifier_transport.conf.set_override(name, 0.01, group="listener")
    notifier_transport.conf.set_override("max_attempts", 3, group="listener")
    value, headers = codec.encode(Notification(None, None, None, "INFO", "poison", None, {}), "flat")
    forged = (("requeue-failures", b"-1e300"), ("requeue-attempt", b"-1e300"))
    publisher = notifier_transport.driver.publisher(lambda *_: None, Limits())
    publisher.offer(Record(topic, value, None, (*headers, *forged)))
    assert publisher.flush(TIMEOUT_SECONDS) == 0
    publisher.close()
    endpoint = Recorder(lambda _: 1 // 0)
    each = listen(notifier_transport, endpoint)
    if in_place:
        each.resume_from(lambda partition: None)
    with each:
        wait_for(lambda: each.stats()["dead_lettered"] or len(endpoint.seen) > 3, "the dead letter")
    assert endpoint.seen == ["poison"] * 3
    (letter,) = records(notifier_transport, "pool.dead-letters")
    assert dict(letter.record.headers)["requeue-attempt"] == b"3"
