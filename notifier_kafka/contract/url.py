"""Transport URLs: ``driver://[user:pass@]host:port[,host:port...]/virtual_host?query``.

The classes keep oslo.messaging's names and attributes. ``str()`` of a URL is the whole
URL, because programs store and pass it on; ``repr()`` and ``masked()`` hide passwords,
and nothing in this package logs or raises anything else.
"""

import re
from collections.abc import Sequence
from types import SimpleNamespace
from urllib import parse

from oslo_config import cfg

from notifier_kafka.config import options, reading
from notifier_kafka.errors import InvalidTransportURL

MASK = "***"

_BEGINNING = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(//|/?$)")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")
_ENCODE = "in a name, password or path, write / ? # @ , : and [ ] as %2F %3F %23 %40 %2C %3A %5B %5D"


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
        """Spell the host as in a URL, with ``password`` in the place of its own."""
        login = ""
        if self.username is not None or password is not None:
            login = parse.quote(self.username or "", "")
            login += "@" if password is None else f":{password}@"
        name = self.hostname or ""
        return login + (f"[{name}]" if ":" in name else name) + (f":{self.port}" if self.port else "")


class TransportURL:
    """A parsed transport URL, with the configuration that its driver reads."""

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

    @classmethod
    def parse(cls, conf: cfg.ConfigOpts, url: str | None = None) -> "TransportURL":
        """Parse ``url``, or the one that the configuration gives."""
        text = url or options.transport_url(conf)
        with options.blame(conf, "transport_url", given=url or None):
            return cls._parse(conf, text)

    @classmethod
    def _parse(cls, conf: cfg.ConfigOpts, text: object) -> "TransportURL":
        if not isinstance(text, str):
            raise InvalidTransportURL(type(text).__name__, "a URL is text")
        if not _is_unicode(text):
            raise InvalidTransportURL(mask(text), "no Unicode text")
        if not _BEGINNING.match(text):
            raise InvalidTransportURL(mask(text), "no driver named; it begins like kafka:// or sqlite://")
        try:
            parts = _split(text)
        except ValueError:
            # Python's reason quotes the whole login.
            raise InvalidTransportURL(mask(text), f"hosts that no URL has; {_ENCODE}") from None
        _refuse_stray(text, parts)
        query = {k: ",".join(v) for k, v in parse.parse_qs(parts.query, keep_blank_values=True).items()}
        hosts = [_parse_host(text, host) for host in parts.netloc.split(",") if host]
        return cls(conf, parts.scheme, parse.unquote(parts.path[1:]) or None, hosts, query)

    def settings(self, group: str, opts: Sequence[cfg.Opt]) -> SimpleNamespace:
        """Read a group of options, those in the URL's query first."""
        return reading.read_group(self.conf, group, opts, overrides=self.query)

    def masked(self) -> str:
        """Spell the URL without its passwords."""
        return self._spell([host.netloc(MASK if host.password else None) for host in self.hosts], MASK)

    def __str__(self) -> str:
        def netloc(host: TransportHost) -> str:
            return host.netloc(None if host.password is None else parse.quote(host.password, ""))

        return self._spell([netloc(host) for host in self.hosts], None)

    def __repr__(self) -> str:
        return f"<TransportURL {self.masked()}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TransportURL) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash((tuple(self.hosts), self.transport, self.virtual_host))

    def _identity(self) -> tuple[object, ...]:
        # oslo.messaging leaves the query out; two URLs that differ in it are not the same to us.
        return self.transport, self.virtual_host, self.hosts, self.query

    def _spell(self, netlocs: list[str], secret: str | None) -> str:
        text = f"{self.transport}://{','.join(netlocs)}/{parse.quote(self.virtual_host or '')}"
        if self.query:
            shown = {k: secret if secret and _is_secret(k) else v for k, v in self.query.items()}
            text += "?" + parse.urlencode(shown, safe="*")
        return text


def mask(text: str) -> str:
    """Hide whatever may be a password in a URL that could not be parsed.

    Rather too much than too little: a password with a character that should have been
    encoded can end up in any part.
    """
    scheme, mark, rest = text.partition("://")
    if not _SCHEME.fullmatch(scheme) or "://" in rest:
        scheme, mark, rest = "", "", text  # where the driver's name ends is anyone's guess
    login, at, place = rest.rpartition("@")
    base, question, _ = place.partition("?")
    base = re.sub(r":(?!\d*(?:[],/:]|$)).*", f":{MASK}", base.partition("#")[0])
    if at and "?" in login:
        base = ""  # an @ in the query: where the hosts end is anyone's guess
    return f"{scheme}{mark}{MASK + at if at else ''}{base}" + (f"?{MASK}" if question else "")


def _is_unicode(text: str) -> bool:
    # What a shell passes on that is no UTF-8 has halves of pairs in its place.
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _split(text: str) -> parse.SplitResult:
    """Split a URL whose hosts may all have brackets, which newer Pythons allow in the first alone."""
    for stray in "\t\r\n":  # which Python leaves out of any URL
        text = text.replace(stray, "")
    scheme, mark, rest = text.partition("://")
    if not mark:
        return parse.urlsplit(text)
    netloc = re.split("[/?#]", rest, maxsplit=1)[0]
    for host in netloc.split(","):
        parse.urlsplit(f"//{host}")
    return parse.urlsplit(f"{scheme}://{rest[len(netloc) :]}")._replace(netloc=netloc)


def _refuse_stray(text: str, parts: parse.SplitResult) -> None:
    """Refuse what a password with a bare / ? # or comma leaves in the other parts."""
    logins = ["@" in host for host in parts.netloc.split(",")]
    stray = parts.netloc and ("@" in parts.path + parts.query or (any(logins) and not logins[0]))
    if parts.fragment or stray:
        raise InvalidTransportURL(mask(text), f"a # or @ in the wrong place; {_ENCODE}")


def _is_secret(name: str) -> bool:
    return "password" in name or "secret" in name or "token" in name or name == "client_properties"


def _parse_host(url: str, text: str) -> TransportHost:
    login, _, address = text.rpartition("@")
    username, colon, password = login.partition(":")
    try:
        parts = parse.urlsplit(f"//{address}")
        hostname, port = parts.hostname, parts.port
    except ValueError:
        raise InvalidTransportURL(mask(url), f"a port is a number up to 65535; {_ENCODE}") from None
    if hostname is None and address:
        raise InvalidTransportURL(mask(url), "a port without a host name")
    # urlsplit lowers the name; the log of a broker's operator should show what was written.
    start = address.lower().find(hostname or "")
    return TransportHost(
        hostname=address[start : start + len(hostname or "")] or None,
        port=port,
        username=parse.unquote(username) if login else None,
        password=parse.unquote(password) if colon else None,
    )
