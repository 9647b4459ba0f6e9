"""The policies that all drivers share: overflow, counting losses, the end of a process."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from oslo_config import cfg

from notifier_kafka.config import options
from notifier_kafka.errors import DeliveryFailed, DriverNotFound, OutboxFull
from notifier_kafka.publishing import notifier, transport
from notifier_kafka.publishing.lost_notifications import OnLoss
from notifier_kafka.wire import codec
from tests.shared.log_lock import locked


def make(log: Path, on_failure: OnLoss | None = None, **overrides: object) -> transport.NotificationTransport:
    conf = cfg.ConfigOpts()
    options.register(conf)
    for name, value in overrides.items():
        conf.set_override(name, value, group="notifications")
    url = f"sqlite:///{log}?busy_timeout=0.1&partitions=1"
    return transport.get_notification_transport(conf, url, on_failure=on_failure)


def warm(bus: transport.NotificationTransport) -> notifier.Notifier:
    sender = notifier.Notifier(bus, driver="messagingv2")
    sender.prepare(wait=True).info({}, "warm.up", 0)
    return sender


def payloads(bus: transport.NotificationTransport) -> list[object]:
    spans = bus.driver.spans(["notifications.info"])
    return [codec.decode(found.record).payload for span in spans for found in bus.driver.read(span)]


def count(bus: transport.NotificationTransport) -> int:
    return sum(span.stop - span.start for span in bus.driver.spans(["notifications.info"]))


def test_a_full_outbox_stalls_one_call_for_its_timeout_and_drops_are_counted(tmp_path: Path) -> None:
    bus = make(tmp_path / "bus.db", outbox_records=100, block_timeout=0.3)
    sender = warm(bus)
    begin = time.monotonic()
    with locked(tmp_path / "bus.db"):
        for number in range(1_000):
            sender.info({}, "e", number)
    # Each of 900 for itself would have taken 270 seconds.
    assert 0.3 <= time.monotonic() - begin < 90
    assert bus.flush(30) == 0
    lost = bus.counters.counts()["lost.OutboxFull"]
    assert count(bus) == 1 + 1_000 - lost
    assert lost == 900
    bus.cleanup()


def test_a_call_waits_again_once_there_was_room(tmp_path: Path) -> None:
    bus = make(tmp_path / "bus.db", outbox_records=10, block_timeout=30.0)
    sender = warm(bus)
    for number in range(1_000):
        sender.info({}, "e", number)
    assert bus.flush(30) == 0
    assert count(bus) == 1_001
    assert bus.counters.counts() == {}
    bus.cleanup()


def test_raise_gives_the_caller_the_overflow(tmp_path: Path) -> None:
    bus = make(tmp_path / "bus.db", outbox_records=5, on_full="raise")
    sender = warm(bus)
    with locked(tmp_path / "bus.db"):
        for number in range(5):
            sender.info({}, "e", number)
        with pytest.raises(OutboxFull):
            sender.info({}, "e", 5)
        # What the caller was told to keep was not accepted.
        assert bus.stats().accepted == 6
    assert bus.flush(30) == 0
    assert count(bus) == 6
    bus.cleanup()


def test_waiting_callers_hear_of_an_overflow_whatever_the_policy(tmp_path: Path) -> None:
    bus = make(tmp_path / "bus.db", outbox_records=5, on_full="drop_newest")
    sender = warm(bus)
    with locked(tmp_path / "bus.db"):
        for number in range(5):
            sender.info({}, "e", number)
        with pytest.raises(OutboxFull):
            sender.prepare(wait=True).info({}, "e", 5)
    assert bus.flush(30) == 0
    assert bus.counters.counts() == {}
    bus.cleanup()


def test_flush_returns_in_time_with_what_is_left(tmp_path: Path) -> None:
    bus = make(tmp_path / "bus.db")
    sender = warm(bus)
    with locked(tmp_path / "bus.db"):
        sender.send_many({}, "info", [("e", 1)] * 7)
        assert sender.flush(0.2) == 7
    assert sender.flush(30) == 0
    bus.cleanup()


def test_retry_zero_gives_up_what_retry_for_ever_keeps(tmp_path: Path) -> None:
    bus = make(tmp_path / "bus.db")
    sender = warm(bus)
    with locked(tmp_path / "bus.db"):
        with pytest.raises(DeliveryFailed):
            sender.prepare(retry=0, wait=True).info({}, "e", "given up")
        sender.info({}, "e", "kept")
    assert bus.flush(30) == 0
    assert count(bus) == 2
    bus.cleanup()


def test_after_cleanup_publishing_says_so(tmp_path: Path) -> None:
    bus = make(tmp_path / "bus.db")
    sender = warm(bus)
    bus.cleanup()
    with pytest.raises(DeliveryFailed, match="cleaned up"):
        sender.info({}, "e", 1)


def test_an_unknown_scheme_names_the_installed_drivers() -> None:
    with pytest.raises(DriverNotFound, match="did you mean sqlite"):
        transport.get_notification_transport(cfg.ConfigOpts(), "sqlight://")


def test_a_program_that_just_ends_delivers_what_it_sent(tmp_path: Path) -> None:
    script = f"""
from oslo_config import cfg
from notifier_kafka.publishing import notifier, transport
bus = transport.get_notification_transport(cfg.ConfigOpts(), "sqlite:///{tmp_path}/bus.db")
notifier.Notifier(bus, driver="messagingv2").send_many({{}}, "info", [("e", n) for n in range(1000)])
"""
    subprocess.run([sys.executable, "-c", script], check=True)
    bus = make(tmp_path / "bus.db")
    assert count(bus) == 1_000
    bus.cleanup()


def test_a_program_that_ends_while_the_log_is_away_says_what_is_left(tmp_path: Path) -> None:
    warm(made := make(tmp_path / "bus.db"))
    made.cleanup()
    script = f"""
from oslo_config import cfg
from notifier_kafka.config import options
from notifier_kafka.publishing import notifier, transport
conf = cfg.ConfigOpts()
options.register(conf)
conf.set_override("exit_timeout", 0.3, group="notifications")
bus = transport.get_notification_transport(conf, "sqlite:///{tmp_path}/bus.db?busy_timeout=0.1")
notifier.Notifier(bus, driver="messagingv2").send_many({{}}, "info", [("e", n) for n in range(7)])
"""
    with locked(tmp_path / "bus.db"):
        ended = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert "7 notifications were not delivered within exit_timeout" in ended.stderr


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_child_of_multiprocessing_delivers_what_it_sent(tmp_path: Path, method: str) -> None:
    script = tmp_path / "program.py"
    script.write_text(f"""
import multiprocessing, sys
from oslo_config import cfg
from notifier_kafka.publishing import notifier, transport

def connect():
    bus = transport.get_notification_transport(cfg.ConfigOpts(), "sqlite:///{tmp_path}/bus.db")
    return notifier.Notifier(bus, driver="messagingv2")

def work(sender):
    (sender or connect()).send_many({{}}, "info", [("e", n) for n in range(1000)])

if __name__ == "__main__":
    context = multiprocessing.get_context("{method}")
    inherited = connect()
    inherited.info({{}}, "e", 0)
    inherited.flush(30)
    for sender in ([inherited, None] if "{method}" == "fork" else [None, None]):
        child = context.Process(target=work, args=(sender,))
        child.start()
        child.join()
        assert child.exitcode == 0
""")
    subprocess.run([sys.executable, str(script)], check=True)
    bus = make(tmp_path / "bus.db")
    assert count(bus) == 2_001
    bus.cleanup()


def test_drop_oldest_keeps_the_newest_in_order(tmp_path: Path) -> None:
    told: list[object] = []
    bus = make(
        tmp_path / "bus.db",
        outbox_records=100,
        on_full="drop_oldest",
        on_failure=lambda one, _: told.append(one.payload),
    )
    sender = warm(bus)
    with locked(tmp_path / "bus.db"):
        for number in range(1_000):
            sender.info({}, "e", number)
    assert bus.flush(30) == 0
    # Half of the room is the log's client's, which has the first of them.
    kept = [*range(50), *range(950, 1_000)]
    assert payloads(bus) == [0, *kept]
    assert told == list(range(50, 950))
    assert bus.stats().lost == {"OutboxFull": 900}
    bus.cleanup()


def test_stats_tell_what_became_of_everything(tmp_path: Path) -> None:
    bus = make(tmp_path / "bus.db", outbox_records=5, on_full="drop_newest")
    sender = warm(bus)
    with locked(tmp_path / "bus.db"):
        for number in range(8):
            sender.info({}, "e", number)
        assert sender.stats() == (9, 5, 0, 0, 0, {"OutboxFull": 3})
    assert bus.flush(30) == 0
    assert sender.stats() == (9, 0, 0, 0, 0, {"OutboxFull": 3})
    lines = sender.stats().prometheus().splitlines()
    assert [line for line in lines if not line.startswith("#")] == [
        "notifier_kafka_accepted_total 9",
        "notifier_kafka_pending 0",
        "notifier_kafka_spooled_total 0",
        "notifier_kafka_forwarded_total 0",
        "notifier_kafka_waiting 0",
        'notifier_kafka_lost_total{reason="OutboxFull"} 3',
    ]
    bus.cleanup()
