"""oslo.messaging's fixture for tests that override options."""

import contextlib
import functools
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from oslo_config import cfg

from notifier_kafka.config import options

# Names from before oslo.messaging 2.0, which old tests still override.
_OLD_NAMES = {
    "notification_driver": "driver",
    "notification_transport_url": "transport_url",
    "notification_topics": "topics",
}


class ConfFixture:
    """Overrides options for a test, and restores them after it.

    Works with ``useFixture`` of testtools and fixtures, which need not be installed, or alone::

        with ConfFixture(conf, "sqlite://"):
            ...
    """

    def __init__(self, conf: cfg.ConfigOpts, transport_url: str | None = None) -> None:
        self.conf = conf
        self._cleanups = contextlib.ExitStack()
        options.register(conf)
        if transport_url is not None:
            self.transport_url = transport_url

    @property
    def transport_url(self) -> str | None:
        """The transport URL of the program."""
        url: str | None = self.conf.transport_url
        return url

    @transport_url.setter
    def transport_url(self, value: str | None) -> None:
        self.conf.set_override("transport_url", value)

    def setUp(self) -> None:
        """Begin. ``cleanUp`` will restore every option that is overridden from now on."""
        self.addCleanup(self.conf.reset)
        for name in ("set_override", "clear_override"):
            plain = getattr(self.conf, name)
            setattr(self.conf, name, functools.partial(_with_old_names, plain))
            self.addCleanup(setattr, self.conf, name, plain)

    def cleanUp(self) -> None:  # noqa: N802 - the protocol of fixtures
        """Run the clean-ups, the last one first. Calling it again is harmless."""
        self._cleanups.close()

    def addCleanup(self, function: Callable[..., object], *args: Any, **kwargs: Any) -> None:  # noqa: N802
        """Call ``function`` when the fixture ends."""
        self._cleanups.callback(function, *args, **kwargs)

    def getDetails(self) -> dict[str, Any]:  # noqa: N802 - the protocol of fixtures
        """Report nothing about a failed test."""
        return {}

    def reset(self) -> None:
        """Clean up and begin again."""
        self.cleanUp()
        self.setUp()

    def __enter__(self) -> Self:
        self.setUp()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.cleanUp()


def _with_old_names(plain: Callable[..., Any], name: str, *args: Any, **kwargs: Any) -> Any:
    if name in _OLD_NAMES:
        return plain(_OLD_NAMES[name], *args, **kwargs | {"group": options.OSLO_NOTIFICATIONS})
    return plain(name, *args, **kwargs)
