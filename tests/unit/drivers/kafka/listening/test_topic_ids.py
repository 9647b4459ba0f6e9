"""A topic that was deleted and created again has another id, which is noticed once for each partition."""

from notifier_kafka.contract.driver import Partition
from notifier_kafka_drivers.kafka.listening.topic_ids import TopicIds

FIRST, SECOND = Partition("a", 0), Partition("a", 1)


def test_the_first_id_of_a_partition_is_taken_as_it_is() -> None:
    ids = TopicIds()
    assert ids.recreated({FIRST: "1"}) == set()
    assert ids.recreated({FIRST: "1", SECOND: "1"}) == set()


def test_another_id_is_told_once() -> None:
    ids = TopicIds()
    ids.recreated({FIRST: "1", SECOND: "1"})
    assert ids.recreated({FIRST: "2", SECOND: "2"}) == {FIRST, SECOND}
    assert ids.recreated({FIRST: "2", SECOND: "2"}) == set()


def test_without_an_answer_what_is_known_is_kept() -> None:
    ids = TopicIds()
    ids.recreated({FIRST: "1"})
    assert ids.recreated({}) == set()
    assert ids.recreated({FIRST: "2"}) == {FIRST}


def test_a_partition_gained_after_the_topic_was_recreated_is_not_told() -> None:
    ids = TopicIds()
    ids.recreated({FIRST: "1"})
    assert ids.recreated({FIRST: "2", SECOND: "2"}) == {FIRST}
