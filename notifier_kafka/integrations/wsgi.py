"""WSGI middleware that sends notifications about requests and responses."""

import logging
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, Self

from oslo_config import cfg

from notifier_kafka.contract import secret_masking
from notifier_kafka.publishing.notifier import Notifier
from notifier_kafka.publishing.transport import get_notification_transport

LOG = logging.getLogger(__name__)

Environ = dict[str, Any]
Payload = dict[str, Any]
Headers = list[tuple[str, str]]
StartResponse = Callable[..., Callable[[bytes], object]]
Application = Callable[[Environ, StartResponse], Iterable[bytes]]

# Wider than for payloads: a header like X-Auth-Key or X-Session is a credential.
_SECRET_HEADER = re.compile(r"key|session|auth$", re.IGNORECASE)
# What a gateway may set in the process's environment. All other variables there belong to the
# service, not to the request; wsgiref copies them all.
_GATEWAY_VARIABLES = frozenset(
    {
        *("AUTH_TYPE", "CONTENT_LENGTH", "CONTENT_TYPE", "GATEWAY_INTERFACE", "PATH_INFO"),
        *("PATH_TRANSLATED", "QUERY_STRING", "REMOTE_ADDR", "REMOTE_HOST", "REMOTE_PORT", "REMOTE_USER"),
        *("REQUEST_METHOD", "REQUEST_SCHEME", "REQUEST_URI", "SCRIPT_NAME", "SERVER_NAME"),
        *("SERVER_PORT", "SERVER_PROTOCOL", "SERVER_SOFTWARE"),
    }
)
_WITH_QUERY = frozenset({"HTTP_REFERER", "RAW_URI", "REQUEST_URI", "HTTP_X_ORIGINAL_URL"})


class RequestNotifier:
    """Sends ``http.request`` before a request is served and ``http.response`` after it.

    ``conf`` takes ``url``, ``publisher_id``, ``service_name`` and ``ignore_req_list``
    (methods, separated by commas). Notifications contain no credentials. If sending a
    notification fails, the request goes on.

    ``http.response`` is sent once the application has given its status, or its first bytes if
    the status comes that late. Errors after that are not reported.
    """

    # The global ConfigOpts, because Paste's configuration files cannot pass an object.
    CONF: cfg.ConfigOpts = cfg.CONF

    @classmethod
    def factory(
        cls, global_conf: Mapping[str, str], **local_conf: str
    ) -> "Callable[[Application], RequestNotifier]":
        """Make a filter for paste.deploy."""
        conf = {**global_conf, **local_conf}

        def wrap(app: Application) -> RequestNotifier:
            return cls(app, **conf)

        return wrap

    def __init__(self, app: Application, **conf: str) -> None:
        self.application = app
        self.service_name = conf.get("service_name")
        self.ignore_req_list = [
            method.upper().strip() for method in conf.get("ignore_req_list", "").split(",")
        ]
        self.notifier = Notifier(
            get_notification_transport(self.CONF, conf.get("url")),
            publisher_id=conf.get("publisher_id", os.path.basename(sys.argv[0])),
        )

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        if environ.get("REQUEST_METHOD", "").upper() in self.ignore_req_list:
            return self.application(environ, start_response)
        environ["HTTP_X_SERVICE_NAME"] = self.service_name or _host(environ)
        self._notify("http.request", lambda: {"request": _describe_environ(environ)})
        exchange = _Exchange(self._notify, environ, start_response)
        try:
            body = self.application(environ, exchange.start_response)
        except Exception as error:
            exchange.report(error)
            raise
        if exchange.status is not None:
            exchange.report()
            # The application's own object: a server may be able to send it as a file.
            return body
        return _Body(body, exchange)

    def _notify(self, event_type: str, describe: Callable[[], Payload]) -> None:
        # Describing may fail as well: the repr of an exception is the program's code.
        try:
            self.notifier.info({}, event_type, describe())
        except Exception:
            LOG.exception("The notification %s of a request could not be sent", event_type)


class _Exchange:
    """One request and what is known of its response."""

    def __init__(
        self,
        notify: Callable[[str, Callable[[], Payload]], None],
        environ: Environ,
        start_response: StartResponse,
    ) -> None:
        self.status: str | None = None
        self._headers: Headers = []
        self._notify = notify
        self._environ = environ
        self._start_response = start_response
        self._reported = False

    def start_response(
        self, status: str, headers: Headers, exc_info: Any = None
    ) -> Callable[[bytes], object]:
        self.status, self._headers = status, headers
        given = () if exc_info is None else (exc_info,)
        return self._start_response(status, headers, *given)

    def report(self, error: Exception | None = None) -> None:
        """Send the notification about the response, once."""
        if self._reported:
            return
        self._reported = True
        self._notify("http.response", lambda: self._describe(error))

    def _describe(self, error: Exception | None) -> Payload:
        payload: Payload = {"request": _describe_environ(self._environ)}
        if error is not None:
            payload["exception"] = _describe_error(error)
        elif self.status is not None:
            payload["response"] = {"status": self.status, "headers": _describe_headers(self._headers)}
        return payload


class _Body:
    """The body of an application that gives its status only with its first bytes."""

    def __init__(self, body: Iterable[bytes], exchange: _Exchange) -> None:
        self._body = body
        self._exchange = exchange
        self._parts: Iterator[bytes] | None = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> bytes:
        try:
            if self._parts is None:
                self._parts = iter(self._body)
            part = next(self._parts)
        except StopIteration:
            self._exchange.report()
            raise
        except Exception as error:
            self._exchange.report(error)
            raise
        if self._exchange.status is not None:
            self._exchange.report()
        return part

    def close(self) -> None:
        try:
            self._exchange.report()
        finally:
            close = getattr(self._body, "close", None)
            if close is not None:
                close()


def _host(environ: Environ) -> str:
    return environ.get("HTTP_HOST") or f"{environ.get('SERVER_NAME')}:{environ.get('SERVER_PORT')}"


def _describe_environ(environ: Environ) -> dict[str, Any]:
    # Upper-case names belong to the request. The gateway's own objects have lower-case names.
    return {
        name: _clean(name, value)
        for name, value in environ.items()
        if name.isupper()
        and isinstance(value, str | int | float)
        and not _is_credential(name)
        and (name in _GATEWAY_VARIABLES or name not in os.environ)
    }


def _describe_headers(headers: Headers) -> dict[str, str]:
    described: dict[str, str] = {}
    for name, value in headers:
        if not _is_credential(name):
            clean = mask_url(value) if name.lower() in ("location", "content-location") else value
            clean = secret_masking.mask_text(clean)
            described[name] = f"{described[name]}, {clean}" if name in described else clean
    return described


def _describe_error(error: Exception) -> dict[str, Any]:
    frames: TracebackType | None = error.__traceback__
    return {
        "value": secret_masking.mask_text(repr(error)),
        "traceback": [secret_masking.mask_text(line) for line in traceback.format_tb(frames)],
    }


def _is_credential(name: str) -> bool:
    return secret_masking.is_secret(name) or _SECRET_HEADER.search(name) is not None


def _clean(name: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if name == "QUERY_STRING":
        return secret_masking.mask_query(value, _is_credential)
    return secret_masking.mask_text(mask_url(value) if name in _WITH_QUERY else value)


def mask_url(url: str) -> str:
    """Mask what looks like a secret in the query of a URL."""
    return secret_masking.mask_query_of(url, _is_credential)
