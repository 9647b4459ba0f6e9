"""The pytest fixtures for users' tests."""

import pathlib
import subprocess
import sys
from collections.abc import Callable

import pytest
from oslo_config import cfg

from notifier_kafka.notification import Notification
from notifier_kafka.publishing.notifier import Notifier
from notifier_kafka.publishing.transport import NotificationTransport

Captured = Callable[[], list[Notification]]


def test_what_was_published_can_be_read_back(
    notifier_transport: NotificationTransport, captured_notifications: Captured
) -> None:
    notifier = Notifier(notifier_transport, "compute.host1")
    notifier.info({}, "instance.create", {"size": 1})
    notifier.error({}, "instance.broken", {"why": "disk"})
    first, second = captured_notifications()
    assert (first.priority, first.publisher_id, first.event_type, first.payload) == (
        "INFO",
        "compute.host1",
        "instance.create",
        {"size": 1},
    )
    assert (second.priority, second.event_type) == ("ERROR", "instance.broken")
    notifier.warn({}, "instance.late", None)
    assert [n.event_type for n in captured_notifications()][2:] == ["instance.late"]


@pytest.mark.parametrize("_", range(2))
def test_every_test_has_a_log_of_its_own(
    _: int, notifier_transport: NotificationTransport, captured_notifications: Captured
) -> None:
    assert captured_notifications() == []
    Notifier(notifier_transport, "p").info({}, "event", {})
    assert len(captured_notifications()) == 1


def test_the_configuration_can_be_changed_before_use(notifier_conf: cfg.ConfigOpts) -> None:
    notifier_conf.set_override("topics", ["audits"], group="notifications")
    assert notifier_conf.notifications.topics == ["audits"]
    assert notifier_conf.notifications.driver == ["messagingv2"]


def test_several_transports_share_the_log(
    notifier_conf: cfg.ConfigOpts,
    notifier_transport: NotificationTransport,
    captured_notifications: Captured,
) -> None:
    Notifier(notifier_transport, "one").info({}, "event", 1)
    Notifier(notifier_transport, "two").info({}, "event", 2)
    assert [n.payload for n in captured_notifications()] == [1, 2]


def test_the_plugin_by_itself_imports_nothing_more() -> None:
    code = """if True:
        import sys, notifier_kafka, pytest
        before = set(sys.modules)
        import notifier_kafka.testing.plugin
        print(*sorted(name for name in set(sys.modules) - before if "notifier" in name or "oslo" in name))
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["notifier_kafka.testing", "notifier_kafka.testing.plugin"]


def test_the_log_may_be_in_a_directory_of_any_name(tmp_path: pathlib.Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "def test_it(notifier_transport):\n    notifier_transport.driver.admin().list_topics()\n"
    )
    base = tmp_path / "a#b?c=1%23"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--basetemp", str(base)]
    done = subprocess.run([*command, "test_it.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert (base / "notifier-kafka0" / "notifications.db").is_file()
