"""What a stranger chose is data: no SQL, no path, no further line of a log or of OpenMetrics' text."""

import contextlib
import logging
import pathlib
import re

import pytest

from notifier_kafka.contract.driver import Limits, Record
from notifier_kafka.errors import DecodeError, DeliveryFailed, MessagingException
from notifier_kafka.notification import Notification
from notifier_kafka.publishing import transport
from notifier_kafka.wire import codec, topic_names
from spark_sinks.outputs import openmetrics

HOSTILE = [
    "'; DROP TABLE records; --",
    '" OR 1=1; --',
    "../../../../tmp/evil",
    "/etc/passwd",
    "a\r\nERROR forged",
    "\x1b[2J\u202e",
    "%s%n{0.__class__}${jndi:ldap://x}",
    "<script>alert(1)</script>",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_keys_headers_and_values_come_back_as_they_are_or_are_refused(
    name: str, notifier_transport: transport.NotificationTransport, tmp_path: pathlib.Path
) -> None:
    driver = notifier_transport.driver
    text = name.encode()
    failures: list[MessagingException] = []
    publisher = driver.publisher(lambda _, error: failures.append(error), Limits())
    publisher.offer(Record("t", text, text, ((name, text),)))
    with contextlib.suppress(DeliveryFailed):
        publisher.offer(Record(name, text, text))
    assert publisher.flush(30) == 0
    assert [str(each) for each in failures if not str(each).isprintable()] == []
    found = [delivery.record.topic for span in driver.spans([name]) for delivery in driver.read(span)]
    assert found in ([], [name])
    ((delivery,),) = [list(driver.read(span)) for span in driver.spans(["t"]) if span.stop]
    assert delivery.record == Record("t", text, text, ((name, text),))
    member = driver.subscribe(["t"], name, "earliest")
    assert [each.record.value for each in member.poll(10, 20.0)] == [text]
    member.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", HOSTILE)
def test_topics_made_of_the_name_of_a_group_are_legal(name: str) -> None:
    for topic in (topic_names.requeue_topic(name, "t.info"), topic_names.dead_letter_topic(name)):
        assert re.fullmatch(r"[A-Za-z0-9._-]{1,249}", topic)


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_notification_is_not_quoted(name: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for value in (name, f'{{"priority": "{name}"}}', f'{{"oslo.version": "{name}"}}'):
        with pytest.raises(DecodeError) as caught:
            codec.decode(Record("t", value.encode()))
        assert name not in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_notification_survives_whatever_its_members_are(name: str) -> None:
    sent = Notification(name, name, name, "INFO", {name: name}, "2026-01-01 00:00:00.000000", {name: name})
    encoded = codec.encode(sent, "envelope", None)
    assert codec.decode(Record("t", encoded.value, None, encoded.headers)) == sent


@pytest.mark.parametrize("name", [*HOSTILE, "5xx", "__name__"])
def test_openmetrics_get_no_line_from_a_name(name: str) -> None:
    row = [{"event_type": f'{name}"}} 1\n# EOF\nforged{{a="\\', name: "x"}, 1.0]
    unit = {"metric": name, "unit": name, "start": 0, "width": 60, "rows": [row]}
    kind, text, sample, end = openmetrics.exposition({"one": unit}).removesuffix("\n").split("\n")
    assert re.fullmatch(r"# TYPE [a-zA-Z_:][a-zA-Z0-9_:]* gauge", kind)
    assert text.startswith("# HELP ")
    label = r'(?!__)[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*"'
    assert re.fullmatch(rf"[a-zA-Z_:][a-zA-Z0-9_:]*\{{{label}(?:,{label})*\}} 1\.0", sample), sample
    assert end == "# EOF"
