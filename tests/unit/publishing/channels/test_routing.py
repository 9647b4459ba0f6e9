import logging
import pathlib
import re
from collections.abc import Callable, Iterator, Sequence

import pytest
from oslo_config import cfg

from notifier_kafka.errors import ConfigurationError, DeliveryFailed, EncodeError
from notifier_kafka.notification import Notification
from notifier_kafka.publishing import ordering_keys
from notifier_kafka.publishing.channels import channel, routing, test
from notifier_kafka.publishing.delivery_waiter import DeliveryWaiter
from notifier_kafka.publishing.transport import get_notification_transport
from tests.shared.checkout import ROOT

HOW = channel.Sending(retry=-1, key=ordering_keys.load("none"))

Make = Callable[[str], channel.Channel]


@pytest.fixture
def make(tmp_path: pathlib.Path) -> Iterator[Make]:
    transports = []

    def make_channel(text: str) -> channel.Channel:
        path = tmp_path / "routing.yaml"
        path.write_text(text)
        conf = cfg.ConfigOpts()
        conf([], default_config_files=[])
        transport = get_notification_transport(conf, "sqlite://")
        transports.append(transport)
        conf.set_override("routing_config", str(path), group="notifications")
        return routing.RoutingChannel(conf, ["notifications"], transport)

    test.reset()
    yield make_channel
    test.reset()
    for transport in transports:
        transport.cleanup()


def notification(event_type: str | None, priority: str = "INFO", payload: object = None) -> Notification:
    return Notification("m", "host1", event_type, priority, payload, "2026-01-01 00:00:00", {})


def arrived(chosen: channel.Channel, *notifications: Notification) -> list[tuple[str | None, str]]:
    test.reset()
    chosen.send(notifications, HOW)
    return [(message["event_type"], priority) for _, message, priority, _ in test.NOTIFICATIONS]


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ("{}", ["a.b/INFO", "a.c/WARN", "None/ERROR"]),
        ("", ["a.b/INFO", "a.c/WARN", "None/ERROR"]),
        ("{accepted_events: [a.*]}", ["a.b/INFO", "a.c/WARN"]),
        ("{accepted_events: ['*']}", ["a.b/INFO", "a.c/WARN", "None/ERROR"]),
        ("{accepted_events: [x, '*.c']}", ["a.c/WARN"]),
        ("{accepted_events: []}", []),
        ("{accepted_priorities: [Info, ERROR]}", ["a.b/INFO", "None/ERROR"]),
        ("{accepted_priorities: [warning]}", ["a.c/WARN"]),
        ("{accepted_priorities: ['*r*']}", ["a.c/WARN", "None/ERROR"]),
        ("{accepted_events: [a.*], accepted_priorities: [error]}", []),
        ("{accepted_events: [a.*], accepted_priorities: [warn]}", ["a.c/WARN"]),
    ],
)
def test_events_and_priorities_decide(make: Make, rules: str, expected: list[str]) -> None:
    chosen = make(f"group:\n  test: {rules}\n")
    got = arrived(chosen, notification("a.b"), notification("a.c", "WARN"), notification(None, "ERROR"))
    assert [f"{event}/{priority}" for event, priority in got] == expected


def test_a_channel_in_several_groups_gets_a_notification_once(make: Make) -> None:
    chosen = make("one:\n  test: {accepted_events: [a.*]}\ntwo:\n  test: {accepted_priorities: [info]}\n")
    assert arrived(chosen, notification("a.b"), notification("x", "WARN"), notification("x")) == [
        ("a.b", "INFO"),
        ("x", "INFO"),
    ]


@pytest.mark.parametrize("name", ["messaging", "messagingv2", "cloudevents", "log", "noop", "test"])
def test_every_built_in_channel_loads_through_routing(make: Make, name: str) -> None:
    chosen = make(f"group:\n  {name}:\n    accepted_events: ['*']\n")
    chosen.send([notification("a.b")], HOW)
    assert chosen.transport.flush(30) == 0


def test_what_messaging_gets_is_on_the_bus(make: Make) -> None:
    chosen = make("group:\n  messaging: {accepted_events: [a.*]}\n")
    chosen.send([notification("a.b"), notification("x")], HOW)
    assert chosen.transport.flush(30) == 0
    spans = chosen.transport.driver.spans(["notifications.info"])
    assert sum(span.stop - span.start for span in spans) == 1


def test_one_channel_that_refuses_does_not_stop_the_others(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    chosen = make("group:\n  log: {}\n  test: {}\n")
    with pytest.raises(EncodeError):
        chosen.send([notification("a.b", payload=object())], HOW)
    assert len(test.NOTIFICATIONS) == 1


class Broken(channel.Channel):
    """A third party's channel with a bug."""

    def send(self, notifications: Sequence[Notification], how: channel.Sending) -> None:
        raise OSError


def test_a_channel_that_raises_costs_the_others_nothing_and_who_waits_hears_of_it(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    chosen = make("group:\n  log: {}\n  test: {}\n")
    assert isinstance(chosen, routing.RoutingChannel)
    chosen._channels["log"] = Broken(chosen.conf, [], chosen.transport)
    assert arrived(chosen, notification("a.b")) == [("a.b", "INFO")]
    assert "The channel log failed" in caplog.text
    with pytest.raises(DeliveryFailed, match="the channel log raised OSError"):
        chosen.send([notification("a.b")], HOW._replace(waiter=DeliveryWaiter()))
    assert len(test.NOTIFICATIONS) == 2


def test_an_empty_file_sends_nothing(make: Make) -> None:
    assert arrived(make(""), notification("a.b")) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("group: [1", ["not valid YAML"]),
        ("a: &a !!python/object:os.system {}", ["not valid YAML"]),
        ("group: 2026-99-99", ["not valid YAML", "month"]),
        ("[1]", ["groups are needed here, not list"]),
        ("group: 5", ["group 'group'", "channels are needed here, not int"]),
        ("group: {log: 5}", ["channel 'log'", "rules are needed here, not int"]),
        ("group: {mesaging: {}}", ["channel 'mesaging'", "did you mean messaging? known are", "noop"]),
        ("group: {routing: {}}", ["channel 'routing'", "known are"]),
        ("group: {5: {}}", ["channel 5", "known are"]),
        (
            "group: {log: {accepted_event: [a]}}",
            ["channel 'log'", "unknown key 'accepted_event'", "did you mean accepted_events?"],
        ),
        ("group: {log: {accepted_events: a}}", ["accepted_events", "a list of patterns"]),
        ("group: {log: {accepted_events: [5]}}", ["accepted_events", "a list of patterns"]),
        (
            "group: {log: {accepted_priorities: [inf]}}",
            ["accepted_priorities", "'inf'", "did you mean info?", "known are audit"],
        ),
        ("- " * 1_000 + "x", ["nested too deeply"]),
        ("group: {log: {}, log: {accepted_events: [a]}}", ["not valid YAML: 'log' occurs twice", "line 1"]),
    ],
)
def test_a_wrong_file_is_one_line_that_says_where(make: Make, text: str, words: list[str]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        make(text)
    said = str(caught.value)
    assert "\n" not in said
    assert "routing.yaml" in said
    assert all(word in said for word in words), said


def test_bytes_that_are_no_text_are_refused(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "routing.yaml"
    path.write_bytes(b"group: \xff")
    with pytest.raises(ConfigurationError, match=r"routing\.yaml: not valid YAML: .*utf-8"):
        routing.read_routes(str(path))


def test_the_sample_is_readable() -> None:
    sample = ROOT / "etc" / "notifier_kafka" / "routing.yaml.sample"
    assert routing.read_routes(str(sample))


def test_a_missing_file_is_named() -> None:
    with pytest.raises(ConfigurationError, match=r"/nowhere/routing\.yaml: .*No such file"):
        routing.read_routes("/nowhere/routing.yaml")


def test_an_error_about_the_file_names_the_option_too(make: Make, tmp_path: pathlib.Path) -> None:
    chosen = make("")
    (tmp_path / "app.conf").write_text("[notifications]\nrouting_config = /nowhere/routing.yaml\n")
    conf = cfg.ConfigOpts()
    conf(["--config-file", str(tmp_path / "app.conf")], default_config_dirs=[])
    said = re.escape(
        f"{tmp_path}/app.conf, [notifications] routing_config: /nowhere/routing.yaml: No such file"
    )
    with pytest.raises(ConfigurationError, match=f"^{said}"):
        routing.RoutingChannel(conf, ["notifications"], chosen.transport)


def test_without_a_file_the_option_is_named() -> None:
    with pytest.raises(ConfigurationError, match="routing_config is not set"):
        routing.read_routes("")


@pytest.mark.parametrize(("other", "expected"), [("log", False), ("messagingv2", True)])
def test_it_publishes_if_one_of_its_channels_does(make: Make, other: str, expected: object) -> None:
    assert make(f"g: {{test: {{}}, {other}: {{}}}}").publishes is expected
