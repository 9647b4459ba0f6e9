"""The transport URL as a driver sees it.

The classes keep oslo.messaging's names and attributes. ``str()`` returns the whole URL,
because programs store it and pass it on. ``repr()`` and ``masked()`` hide passwords; this
package uses only these in logs and errors.
"""

import abc
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import TypeVar, overload
from urllib import parse

from oslo_config import cfg

from notifier_kafka.contract.secret_masking import MASK, is_secret_option

Settings = TypeVar("Settings")


class TransportHost:
    """One host of a transport URL."""

    def __init__(
        self,
        hostname: str | None = None,
        port: int | None = None,
        username: str | None = None,
        password: str | None = None,
    ) -> None:
        self.hostname = hostname
        self.port = port
        self.username = username
        self.password = password

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TransportHost) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self.hostname, self.port, self.username, self.password))

    def __repr__(self) -> str:
        shown = vars(self) | ({"password": MASK} if self.password else {})
        return f"<TransportHost {', '.join(f'{k}={v!r}' for k, v in shown.items() if v)}>"

    def netloc(self, password: str | None) -> str:
        """Return the host as it stands in a URL, with ``password`` in place of its own."""
        login = ""
        if self.username is not None or password is not None:
            login = parse.quote(self.username or "", "")
            login += "@" if password is None else f":{password}@"
        name = self.hostname or ""
        return login + (f"[{name}]" if ":" in name else name) + (f":{self.port}" if self.port else "")


class DriverURL(abc.ABC):
    """A parsed transport URL, with the configuration that its driver reads.

    The class that users have is ``notifier_kafka.TransportURL``, which can also parse one.
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        transport: str | None = None,
        virtual_host: str | None = None,
        hosts: list[TransportHost] | None = None,
        query: dict[str, str] | None = None,
    ) -> None:
        self.conf = conf
        self.transport = transport
        self.virtual_host = virtual_host
        self.hosts = hosts or []
        self.query = query or {}

    @overload
    def settings(self, group: str, opts: Sequence[cfg.Opt]) -> SimpleNamespace: ...

    @overload
    def settings(self, group: str, opts: Sequence[cfg.Opt], kind: Callable[..., Settings]) -> Settings: ...

    @abc.abstractmethod
    def settings(
        self, group: str, opts: Sequence[cfg.Opt], kind: Callable[..., object] = SimpleNamespace
    ) -> object:
        """Read a group of options; those in the URL's query win.

        ``kind``, such as a dataclass, is called with a keyword argument for each option.
        """

    def masked(self) -> str:
        """Return the URL as text with its passwords masked."""
        return self._spell([host.netloc(MASK if host.password else None) for host in self.hosts], MASK)

    def __str__(self) -> str:
        def netloc(host: TransportHost) -> str:
            return host.netloc(None if host.password is None else parse.quote(host.password, ""))

        return self._spell([netloc(host) for host in self.hosts], None)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.masked()}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DriverURL) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash((tuple(self.hosts), self.transport, self.virtual_host))

    def _identity(self) -> tuple[object, ...]:
        # oslo.messaging leaves out the query. For us, URLs that differ in it are different.
        return self.transport, self.virtual_host, self.hosts, self.query

    def _spell(self, netlocs: list[str], secret: str | None) -> str:
        text = f"{self.transport}://{','.join(netlocs)}/{parse.quote(self.virtual_host or '')}"
        if self.query:
            shown = {k: secret if secret and is_secret_option(k) else v for k, v in self.query.items()}
            text += "?" + parse.urlencode(shown, safe="*")
        return text
