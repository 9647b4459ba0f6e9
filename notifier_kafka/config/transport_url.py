"""Transport URLs: ``driver://[user:pass@]host:port[,host:port...]/virtual_host?query``."""

import re
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any
from urllib import parse

from oslo_config import cfg

from notifier_kafka.config import options, reading
from notifier_kafka.contract.secret_masking import mask_transport_url
from notifier_kafka.contract.url import DriverURL, TransportHost
from notifier_kafka.errors import InvalidTransportURL

_BEGINNING = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(//|/?$)")
_ENCODE = "in a name, password or path, write / ? # @ , : and [ ] as %2F %3F %23 %40 %2C %3A %5B %5D"


class TransportURL(DriverURL):
    """A transport URL, parsed from text or made from its parts."""

    @classmethod
    def parse(cls, conf: cfg.ConfigOpts, url: str | None = None) -> "TransportURL":
        """Parse ``url``, or else the URL in the configuration."""
        text = url or options.transport_url(conf)
        with options.blame(conf, "transport_url", given=url or None):
            return cls._parse(conf, text)

    @classmethod
    def _parse(cls, conf: cfg.ConfigOpts, text: object) -> "TransportURL":
        if not isinstance(text, str):
            raise InvalidTransportURL(type(text).__name__, "a URL must be text")
        if not _is_unicode(text):
            raise InvalidTransportURL(mask_transport_url(text), "not Unicode text")
        if not _BEGINNING.match(text):
            raise InvalidTransportURL(
                mask_transport_url(text), "it names no driver; it must begin like kafka:// or sqlite://"
            )
        try:
            parts = _split(text)
        except ValueError:
            # Python's message quotes the whole login.
            raise InvalidTransportURL(
                mask_transport_url(text), f"the hosts are not valid; {_ENCODE}"
            ) from None
        _refuse_stray(text, parts)
        query = {k: ",".join(v) for k, v in parse.parse_qs(parts.query, keep_blank_values=True).items()}
        hosts = [_parse_host(text, host) for host in parts.netloc.split(",") if host]
        return cls(conf, parts.scheme, parse.unquote(parts.path[1:]) or None, hosts, query)

    def settings(
        self, group: str, opts: Sequence[cfg.Opt], kind: Callable[..., Any] = SimpleNamespace
    ) -> Any:
        return kind(**reading.read_group(self.conf, group, opts, overrides=self.query))


def _is_unicode(text: str) -> bool:
    # A shell argument that is not UTF-8 arrives with lone surrogates.
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _split(text: str) -> parse.SplitResult:
    """Split a URL. Any host may have brackets; newer Pythons allow them in the first host only."""
    for stray in "\t\r\n":  # as Python does with any URL
        text = text.replace(stray, "")
    scheme, mark, rest = text.partition("://")
    if not mark:
        return parse.urlsplit(text)
    netloc = re.split("[/?#]", rest, maxsplit=1)[0]
    for host in netloc.split(","):
        parse.urlsplit(f"//{host}")
    return parse.urlsplit(f"{scheme}://{rest[len(netloc) :]}")._replace(netloc=netloc)


def _refuse_stray(text: str, parts: parse.SplitResult) -> None:
    """Refuse a URL in which a password with a bare / ? # or comma spilled into other parts."""
    logins = ["@" in host for host in parts.netloc.split(",")]
    stray = parts.netloc and ("@" in parts.path + parts.query or (any(logins) and not logins[0]))
    if parts.fragment or stray:
        raise InvalidTransportURL(mask_transport_url(text), f"a # or @ in the wrong place; {_ENCODE}")


def _parse_host(url: str, text: str) -> TransportHost:
    login, _, address = text.rpartition("@")
    username, colon, password = login.partition(":")
    try:
        parts = parse.urlsplit(f"//{address}")
        hostname, port = parts.hostname, parts.port
    except ValueError:
        raise InvalidTransportURL(
            mask_transport_url(url), f"a port must be a number up to 65535; {_ENCODE}"
        ) from None
    if hostname is None and address:
        raise InvalidTransportURL(mask_transport_url(url), "a port without a host name")
    # urlsplit changes the name to lower case; logs should show it as it was written.
    start = address.lower().find(hostname or "")
    return TransportHost(
        hostname=address[start : start + len(hostname or "")] or None,
        port=port,
        username=parse.unquote(username) if login else None,
        password=parse.unquote(password) if colon else None,
    )
