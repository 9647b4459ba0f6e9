import http.client
import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any
from wsgiref import simple_server, util, validate

import pytest
from oslo_config import cfg

from notifier_kafka.config import options
from notifier_kafka.integrations.wsgi import RequestNotifier, mask_url
from notifier_kafka.publishing.channels import test

Make = Callable[..., RequestNotifier]
BODY = [b"hello"]


@pytest.fixture
def make() -> Iterator[Make]:
    made: list[RequestNotifier] = []

    def make_middleware(app: Any, drivers: tuple[str, ...] = ("test",), **settings: str) -> RequestNotifier:
        conf = cfg.ConfigOpts()
        conf([], default_config_files=[])
        options.register(conf)
        conf.set_override("driver", list(drivers), group="notifications")
        own: Any = type("Own", (RequestNotifier,), {"CONF": conf})
        made.append(own(app, url="sqlite://", **settings))
        return made[-1]

    test.reset()
    yield make_middleware
    test.reset()
    for one in made:
        one.notifier.transport.cleanup()


def sent() -> dict[str, Any]:
    """Map the sent event types to their payloads; fail if one was sent twice."""
    types = [message["event_type"] for _, message, _, _ in test.NOTIFICATIONS]
    assert len(types) == len(set(types)), types
    return {message["event_type"]: message["payload"] for _, message, _, _ in test.NOTIFICATIONS}


def call(app: Any, **environ: Any) -> tuple[str, list[tuple[str, str]], bytes]:
    """Serve one request, with the validator of wsgiref on both sides."""
    answers: list[tuple[str, list[tuple[str, str]]]] = []

    def start_response(status: str, headers: Any, exc_info: Any = None) -> Callable[[bytes], object]:
        answers.append((status, headers))
        return lambda data: None

    util.setup_testing_defaults(environ)
    environ.setdefault("QUERY_STRING", "")
    body: Any = validate.validator(app)(environ, start_response)
    try:
        content = b"".join(body)
    finally:
        body.close()
    return *answers[-1], content


def plain(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    start_response("200 OK", [("Content-Type", "text/plain")])
    return BODY


def lazy(environ: dict[str, Any], start_response: Any) -> Iterator[bytes]:
    start_response("201 Created", [("Content-Type", "text/plain")])
    yield b"hel"
    yield b"lo"


@pytest.mark.parametrize(("app", "status"), [(plain, "200 OK"), (lazy, "201 Created")])
def test_a_request_and_its_response_are_told(make: Make, app: Any, status: str) -> None:
    middleware = make(validate.validator(app), service_name="compute", publisher_id="api.host1")
    assert call(middleware, REQUEST_METHOD="GET") == (status, [("Content-Type", "text/plain")], b"hello")
    payloads = sent()
    assert list(payloads) == ["http.request", "http.response"]
    request = payloads["http.request"]["request"]
    assert (request["REQUEST_METHOD"], request["PATH_INFO"]) == ("GET", "/")
    assert request["HTTP_X_SERVICE_NAME"] == "compute"
    assert all(name.isupper() for name in request)
    assert payloads["http.response"] == {
        "request": request,
        "response": {"status": status, "headers": {"Content-Type": "text/plain"}},
    }
    assert {message["publisher_id"] for _, message, _, _ in test.NOTIFICATIONS} == {"api.host1"}
    assert {priority for _, _, priority, _ in test.NOTIFICATIONS} == {"INFO"}


def test_the_application_sees_the_service_name_or_the_host(make: Make) -> None:
    seen = []

    def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        seen.append(environ["HTTP_X_SERVICE_NAME"])
        return plain(environ, start_response)

    call(make(app, service_name="compute"))
    test.reset()
    call(make(app), HTTP_HOST="api.example:8080")
    assert seen == ["compute", "api.example:8080"]


def test_the_response_is_told_as_soon_as_it_is_known(make: Make) -> None:
    middleware = make(plain)
    environ: dict[str, Any] = {}
    util.setup_testing_defaults(environ)
    body = middleware(environ, lambda status, headers: lambda data: None)
    assert body is BODY  # untouched, so that a server can send a file as one
    assert list(sent()) == ["http.request", "http.response"]


def test_ignored_methods_pass_through(make: Make) -> None:
    middleware = make(plain, ignore_req_list="get, Head")
    assert call(middleware, REQUEST_METHOD="GET")[2] == b"hello"
    assert sent() == {}
    call(middleware, REQUEST_METHOD="POST", CONTENT_LENGTH="0")
    assert list(sent()) == ["http.request", "http.response"]


def test_credentials_stay_here(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        headers = [
            ("Content-Type", "text/plain"),
            ("Set-Cookie", "session=s3cret"),
            ("X-Subject-Token", "s3cret"),
            ("Location", "http://me:s3cret@host/?code=1&access_token=s3cret#token=s3cret"),
            ("Warning", "a"),
            ("Warning", "b"),
        ]
        start_response("200 OK", headers)
        return BODY

    monkeypatch.setenv("SERVICE_ENVIRONMENT", "s3cret")
    secret = [
        *("HTTP_AUTHORIZATION", "HTTP_PROXY_AUTHORIZATION", "HTTP_COOKIE", "HTTP_X_AUTH_TOKEN"),
        *("HTTP_X_SERVICE_TOKEN", "HTTP_X_API_KEY", "HTTP_X_PASSWORD", "HTTP_X_CLIENT_SECRET"),
        *("HTTP_X_CREDENTIAL_ID", "HTTP_X_SESSION", "HTTP_X_STORAGE_PASS", "SERVICE_ENVIRONMENT"),
    ]
    _, headers, _ = call(
        make(app),
        QUERY_STRING="name=a&token=s3cret&X-Amz-Signature=s3cret&api%5Fkey=s3cret&b=1;token=s3cret",
        HTTP_REFERER="http://me:s3cret@host/?password=s3cret&page=2",
        REMOTE_USER="me",
        **dict.fromkeys(secret, "s3cret"),
    )
    assert ("Set-Cookie", "session=s3cret") in headers  # the client still gets it
    payloads = sent()
    assert "s3cret" not in repr(payloads)
    request = payloads["http.request"]["request"]
    assert request["QUERY_STRING"] == "name=a&token=***&X-Amz-Signature=***&api%5Fkey=***&b=1;token=***"
    assert request["HTTP_REFERER"] == "http://***@host/?password=***&page=2"
    assert request["REMOTE_USER"] == "me"
    assert not set(secret) & set(request)
    response = payloads["http.response"]["response"]["headers"]
    assert set(response) == {"Content-Type", "Location", "Warning"}
    assert response["Warning"] == "a, b"


def failing_early(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    raise ValueError("password=s3cret")


def failing_late(environ: dict[str, Any], start_response: Any) -> Iterator[bytes]:
    raise ValueError("password=s3cret")
    yield b""


@pytest.mark.parametrize("app", [failing_early, failing_late])
def test_an_exception_is_told_and_raised(make: Make, app: Any) -> None:
    with pytest.raises(ValueError, match="s3cret"):
        call(make(app))
    response = sent()["http.response"]
    assert set(response) == {"request", "exception"}
    assert response["exception"]["value"] == "ValueError('password=***')"
    assert app.__name__ in response["exception"]["traceback"][-1]


def test_an_exception_without_a_repr_harms_nobody(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    class Unspeakable(ValueError):
        def __repr__(self) -> str:
            raise TypeError("no words")

    def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        raise Unspeakable

    with pytest.raises(Unspeakable):
        call(make(app))
    assert list(sent()) == ["http.request"]
    assert "http.response of a request could not be sent" in caplog.text


def test_a_failing_bus_does_not_touch_the_request(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    middleware = make(plain, drivers=("messaging",))
    middleware.notifier.transport.cleanup()
    assert call(middleware)[2] == b"hello"
    assert [record.levelno for record in caplog.records] == [logging.ERROR, logging.ERROR]


class Closing:
    """A body that starts its response when bytes are read, and counts how often it is closed."""

    def __init__(self, start_response: Any) -> None:
        self.closed = 0
        self.start_response = start_response

    def __iter__(self) -> Iterator[bytes]:
        self.start_response("200 OK", [("Content-Type", "text/plain")])
        yield from (b"a", b"b")

    def close(self) -> None:
        self.closed += 1


@pytest.mark.parametrize("taken", [0, 1, 2])
def test_a_body_is_closed_once_however_much_of_it_is_taken(make: Make, taken: int) -> None:
    bodies: list[Closing] = []

    def app(environ: dict[str, Any], start_response: Any) -> Closing:
        bodies.append(Closing(start_response))
        return bodies[-1]

    environ: dict[str, Any] = {}
    util.setup_testing_defaults(environ)
    body: Any = make(app)(environ, lambda status, headers: lambda data: None)
    assert b"".join(next(body) for _ in range(taken)) == b"ab"[:taken]
    body.close()
    assert bodies[0].closed == 1
    assert ("response" in sent()["http.response"]) is (taken > 0)


def test_an_application_may_change_its_mind_and_use_write(make: Make) -> None:
    written: list[bytes] = []
    reasons: list[Any] = []

    def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        start_response("200 OK", [])
        write = start_response("500 Oops", [], exc_info=(ValueError, ValueError("x"), None))
        write(b"data")
        return []

    def start_response(status: str, headers: Any, exc_info: Any = None) -> Callable[[bytes], object]:
        reasons.append(exc_info and exc_info[0])
        return written.append

    environ: dict[str, Any] = {}
    util.setup_testing_defaults(environ)
    list(make(app)(environ, start_response))
    assert written == [b"data"]
    assert reasons == [None, ValueError]
    assert sent()["http.response"]["response"]["status"] == "500 Oops"


def test_behind_a_real_server_the_environment_of_the_process_stays_here(make: Make) -> None:
    class Quiet(simple_server.WSGIRequestHandler):
        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
            pass

    with simple_server.make_server("127.0.0.1", 0, make(plain), handler_class=Quiet) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
        connection.request("GET", "/servers?limit=5", headers={"X-Auth-Token": "s3cret"})
        response = connection.getresponse()
        assert (response.status, response.read()) == (200, b"hello")
        thread.join()
        connection.close()
    request = sent()["http.request"]["request"]
    assert "PATH" not in request
    assert (request["PATH_INFO"], request["QUERY_STRING"]) == ("/servers", "limit=5")
    assert "s3cret" not in repr(test.NOTIFICATIONS)


def test_paste_gets_a_filter(make: Make) -> None:
    own: Any = type(make(plain))
    wrap = own.factory({"url": "sqlite://", "service_name": "global"}, service_name="local")
    middleware = wrap(plain)
    assert call(middleware)[2] == b"hello"
    assert sent()["http.request"]["request"]["HTTP_X_SERVICE_NAME"] == "local"
    middleware.notifier.transport.cleanup()


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://host/a?b=1", "http://host/a?b=1"),
        ("http://host/a?token=1#c", "http://host/a?token=***#c"),
        ("/a?token&secret=", "/a?token&secret=***"),
        ("/a?b=1;access_token=s3cret;c=2&d=3", "/a?b=1;access_token=***;c=2&d=3"),
        ("/a?b;api%5Fkey=s3cret;;c", "/a?b;api%5Fkey=***"),
        ("/a?token=s3;cr=et;&b=1", "/a?token=***&b=1"),
        ("", ""),
    ],
)
def test_queries_of_urls_are_masked(url: str, expected: str) -> None:
    assert mask_url(url) == expected
