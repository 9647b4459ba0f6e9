"""Every error that a client library can raise has its place in the tables."""

import inspect
from typing import Any

import pytest

from notifier_kafka.errors import (
    CommitRefused,
    DeliveryFailed,
    MessagingException,
    TopicNotFound,
    TransportUnavailable,
)
from notifier_kafka_drivers.kafka import errors
from notifier_kafka_drivers.kafka.clients import loading

NOT_ERRORS = {"NO_ERROR", "_NO_ERROR", "_END", "_BEGIN"}


def confluent_codes() -> dict[str, int]:
    from confluent_kafka import KafkaError

    found = {name: getattr(KafkaError, name) for name in dir(KafkaError) if name == name.upper()}
    return {n: code for n, code in found.items() if isinstance(code, int) and n not in NOT_ERRORS and code}


@pytest.fixture(scope="module")
def confluent_link() -> Any:
    from notifier_kafka_drivers.kafka.clients.confluent import connection

    return connection


@pytest.fixture(scope="module")
def kafka_python_errors() -> Any:
    loading.load("kafka-python")
    from notifier_kafka_drivers.kafka.clients.kafka_python import errors

    return errors


def test_every_error_that_librdkafka_knows_of_brokers_is_in_the_table() -> None:
    known = {name: code for name, code in confluent_codes().items() if code >= -1}
    assert len(known) > 100
    assert {name for name, code in known.items() if code not in errors.BROKER} == set()


def test_every_error_of_librdkafka_itself_is_in_its_table(confluent_link: Any) -> None:
    own = {name: code for name, code in confluent_codes().items() if code < -1}
    assert len(own) > 55
    assert {name for name, code in own.items() if code not in confluent_link.LOCAL} == set()


def test_every_error_that_kafka_python_knows_of_brokers_is_in_the_table(kafka_python_errors: Any) -> None:
    from kafka.errors import kafka_errors

    assert len(kafka_errors) > 120
    assert {code for code in kafka_errors if isinstance(code, int) and code} - set(errors.BROKER) == set()


def test_every_error_of_kafka_python_itself_has_a_meaning_nearer_than_any_error(
    kafka_python_errors: Any,
) -> None:
    from kafka import errors as theirs

    own = [
        kind for _, kind in inspect.getmembers(theirs, inspect.isclass) if issubclass(kind, theirs.KafkaError)
    ]
    assert len(own) > 130
    vague = {
        kind
        for kind in own
        if kind is not theirs.KafkaError
        and next(base for base in kind.__mro__ if base in kafka_python_errors.LOCAL) is theirs.KafkaError
    }
    assert vague == set()


@pytest.mark.parametrize(
    ("code", "meaning"),
    [
        (3, TopicNotFound),
        (6, TransportUnavailable),
        (10, DeliveryFailed),
        (22, CommitRefused),
        (25, CommitRefused),
        (27, CommitRefused),
        (29, errors.AccessDenied),
        (36, errors.TopicExists),
        (58, errors.LoginRefused),
        (82, CommitRefused),
    ],
)
def test_both_clients_give_a_broker_s_error_the_same_meaning(
    code: int, meaning: type[MessagingException], confluent_link: Any, kafka_python_errors: Any
) -> None:
    from confluent_kafka import KafkaError
    from kafka.errors import for_code

    assert type(confluent_link.translate(KafkaError(code), "asked")) is meaning
    assert type(kafka_python_errors.translate(for_code(code)("told"), "asked")) is meaning


def test_an_error_is_one_line_that_says_what_was_asked_and_what_to_do() -> None:
    error = errors.broker_error(29, "topic audit", "Not\nauthorized")
    assert str(error).startswith("topic audit: the user lacks an ACL on the topic")
    assert "\n" not in str(error)


def test_an_error_newer_than_the_table_is_not_tried_for_ever() -> None:
    error = errors.broker_error(9999, "topic audit")
    assert not error.retriable
    assert str(error) == "topic audit: error 9999"


@pytest.mark.parametrize(
    ("error", "retriable"),
    [(TransportUnavailable("away"), True), (errors.AccessDenied("no"), False), (TopicNotFound("t"), False)],
)
def test_a_record_waits_for_brokers_and_not_for_permission(
    error: MessagingException, retriable: bool
) -> None:
    reported = errors.for_record(error)
    assert reported.retriable is retriable
    assert retriable or isinstance(reported, DeliveryFailed)
    assert str(reported) == str(error)
