"""What the cases share. Runs under both interpreters, so it imports nothing of ours by name."""

import importlib
import sys
import time
from collections.abc import Callable
from typing import Any

from oslo_config import cfg

OURS = "notifier_kafka" in sys.modules
URL = "sqlite://" if OURS else "fake://"

# compat_run has put notifier_kafka in this place when it is our turn.
oslo_messaging: Any = importlib.import_module("oslo_messaging")


def make_conf(**notifications: Any) -> cfg.ConfigOpts:
    """Make a configuration with options of [oslo_messaging_notifications] overridden."""
    conf = cfg.ConfigOpts()
    conf([], project="compat", default_config_files=[])
    oslo_messaging.get_notification_transport(conf, URL).cleanup()  # registers the options
    for name, value in notifications.items():
        conf.set_override(name, value, group="oslo_messaging_notifications")
    return conf


def make_transport(conf: cfg.ConfigOpts) -> Any:
    return oslo_messaging.get_notification_transport(conf, URL)


def part(theirs: str, ours: str) -> Any:
    """Import what has no public name in oslo.messaging's face: ``module:object``."""
    module, _, name = (ours if OURS else theirs).partition(":")
    return getattr(importlib.import_module(module), name) if name else importlib.import_module(module)


def recorded() -> list[list[Any]]:
    """Return what the channel test recorded, as lists, and forget it."""
    module = part("oslo_messaging.notify._impl_test", "notifier_kafka.publishing.channels.test")
    found = [list(one) for one in module.NOTIFICATIONS]
    module.reset()
    return found


def outcome(call: Callable[[], Any]) -> Any:
    """Return what ``call`` returns, or how it raises."""
    try:
        return call()
    except Exception as error:  # noqa: BLE001 - the case compares it
        return f"raises {type(error).__name__}"


def wait_until(condition: Callable[[], bool], seconds: float = 60) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
