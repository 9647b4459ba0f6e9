"""Dead letters of a real listener: counted, shown and requeued."""

import csv
import time
from collections.abc import Callable
from typing import Any

import pytest

from notifier_kafka.contract.driver import Delivery, Record
from notifier_kafka.listening import listener
from notifier_kafka.publishing import notifier
from notifier_kafka.target import Target
from tests.unit.cli.cli_runner import TIMEOUT_SECONDS, CliRunner

HOSTILE = b"\x1b[2Jevil\xff"


class FailingEndpoint:
    """Raises for odd numbers until it is repaired."""

    def __init__(self) -> None:
        self.repaired = False
        self.handled: list[int] = []

    def info(self, _ctxt: Any, _publisher: Any, _event: Any, payload: int, _metadata: Any) -> None:
        if payload % 2 and not self.repaired:
            raise KeyError(payload)
        self.handled.append(payload)


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def listen(cli: CliRunner, endpoint: FailingEndpoint) -> listener.Listener:
    cli.transport.conf.set_override("max_attempts", 1, group="listener")
    return listener.get_notification_listener(
        cli.transport, [Target(topic="orders")], [endpoint], pool="mail"
    )


@pytest.fixture
def endpoint(cli: CliRunner) -> FailingEndpoint:
    """Have the pool ``mail`` set aside two notifications and a malformed record."""
    made = FailingEndpoint()
    sender = notifier.Notifier(cli.transport, "till.3", "messagingv2", topics=["orders"])
    for number in range(4):
        sender.prepare(wait=True).info({}, "order.paid", number)
    cli.put(Record("orders.info", HOSTILE, b"till.3"))
    with listen(cli, made) as each:
        wait_for(lambda: each.stats()["dead_lettered"] == 2 and each.stats()["malformed"] == 1)
    assert made.handled == [0, 2]
    return made


def records(cli: CliRunner, topic: str) -> list[Delivery]:
    return [delivery for span in cli.driver.spans([topic]) for delivery in cli.driver.read(span)]


@pytest.mark.usefixtures("endpoint")
def test_they_are_counted_by_reason(cli: CliRunner) -> None:
    found = cli.json("dead-letters", "list")
    assert [(row["topic"], row["reason"], row["letters"], row["new"]) for row in found] == [
        ("mail.dead-letters", "endpoint raised KeyError in attempt 1", 2, 2),
        ("mail.dead-letters", "not Unicode text", 1, 1),
    ]
    assert cli.json("dead-letters", "list", "mail") == found


@pytest.mark.usefixtures("endpoint")
def test_each_is_shown_with_why_from_where_and_how_often(cli: CliRunner) -> None:
    first, second, malformed = cli.json("dead-letters", "show", "mail")
    assert first["origin"].startswith("orders.info ")
    assert first["origin"].endswith(":1")
    assert (first["attempts"], first["reason"]) == (1, "endpoint raised KeyError in attempt 1")
    assert first["notification"]["payload"] == 1
    assert first["notification"]["publisher_id"] == "till.3"
    assert malformed["notification"] == r"\x1b[2Jevil\xff"
    assert cli.json("dead-letters", "show", "mail", second["place"]) == [second]
    assert cli.json("dead-letters", "show", "mail", "--max", "1") == [first]
    code, out, _ = cli.run("dead-letters", "show", "mail")
    assert code == 0
    assert r"\x1b[2Jevil\xff" in out
    assert "payload = 1" in out
    assert "\x1b" not in out


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "\uff1d"])
def test_csv_has_no_formula_of_a_stranger(cli: CliRunner, sign: str) -> None:
    formula = f"{sign}cmd()"
    headers = (("origin-topic", formula.encode()), ("dead-letter-reason", formula.encode()))
    cli.put(Record("mail.dead-letters", formula.encode(), None, headers))
    for command in (("show", "mail"), ("list",)):
        code, out, _ = cli.run("dead-letters", *command, "-f", "csv")
        header, row = csv.reader(out.splitlines())
        found = dict(zip(header, row, strict=True))
        assert (code, found["reason"]) == (0, f"'{formula}")
        assert (found.get("notification"), found.get("origin")) in (
            (None, None),
            (f"'{formula}", f"'{formula} :"),
        )
        assert not [cell for cell in row if cell.startswith(sign)]


def test_all_are_given_back_once_and_only_on_demand(cli: CliRunner, endpoint: FailingEndpoint) -> None:
    returns = "mail.requeue.orders.info"
    code, out, err = cli.run("dead-letters", "requeue", "mail", "--all", "--json")
    assert (code, err) == (0, "notifier-kafka: a dry run: nothing was changed; --execute requeues them\n")
    assert returns in out
    assert records(cli, returns) == []

    done = cli.json("dead-letters", "requeue", "mail", "--all", "--execute")
    assert done == [{"topic": returns, "letters": 3}]
    assert cli.json("dead-letters", "requeue", "mail", "--all", "--execute") == []
    assert {row["new"] for row in cli.json("dead-letters", "list")} == {0}
    assert len(records(cli, returns)) == 3

    endpoint.repaired = True
    with listen(cli, endpoint) as each:
        wait_for(lambda: len(endpoint.handled) == 4 and each.stats()["malformed"] == 1)
    assert sorted(endpoint.handled) == [0, 1, 2, 3]
    cli.run("topics", "list")  # takes what the listener logged meanwhile
    # The malformed one was delivered again, and is set aside again with its first origin.
    assert [row["new"] for row in cli.json("dead-letters", "list") if "Unicode" in row["reason"]] == [1]
    again = cli.json("dead-letters", "show", "mail")[-1]
    assert again["origin"].startswith("orders.info ")
    assert again["attempts"] == 0, "no endpoint got it"


def test_one_is_given_back_by_its_place(cli: CliRunner, endpoint: FailingEndpoint) -> None:
    place = cli.json("dead-letters", "show", "mail")[1]["place"]
    cli.json("dead-letters", "requeue", "mail", place, "--execute")
    endpoint.repaired = True
    with listen(cli, endpoint):
        wait_for(lambda: len(endpoint.handled) == 3)
    assert endpoint.handled == [0, 2, 3]


def test_what_has_no_value_or_origin_is_left_and_said(cli: CliRunner) -> None:
    cli.put(
        Record("mail.dead-letters", None, None, (("origin-topic", b"orders.info"),)),
        Record("mail.dead-letters", b"{}", None),
        Record("mail.dead-letters", b"{}", None, (("origin-topic", b"orders.info"),)),
    )
    code, out, err = cli.run("dead-letters", "requeue", "mail", "--all", "--execute", "-f", "value")
    assert (code, out) == (4, "mail.requeue.orders.info 1\n")
    assert err == "notifier-kafka: 2 without a value or an origin cannot be requeued\n"


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("show", "nobody"), "there is no topic 'nobody.dead-letters'"),
        (("list", "nobody"), "there is no topic 'nobody.dead-letters'"),
        (("show", "mail", "9:9"), "has no record at 9:9"),
        (("show", "mail", "x"), "is not PARTITION:OFFSET"),
        (("requeue", "mail"), "say which"),
        (("requeue", "mail", "0:0", "--all"), "say which"),
    ],
)
@pytest.mark.usefixtures("endpoint")
def test_what_makes_no_sense_is_refused(cli: CliRunner, argv: tuple[str, ...], words: str) -> None:
    code, said = cli.refused("dead-letters", *argv)
    assert code == 2
    assert words in said
