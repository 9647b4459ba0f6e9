"""Target, TransportHost and TransportURL."""

import itertools
from typing import Any

from tests.compat import compat_kit as kit

TARGETS: list[dict[str, Any]] = [
    {},
    {"topic": "a"},
    {"topic": "b"},
    {"topic": "a", "exchange": "x"},
    {"topic": "a", "server": "s", "fanout": True},
    {"topic": "a", "namespace": "n", "version": "1.1"},
    {"topic": "a", "namespace": "n", "version": "1.1", "legacy_namespaces": ["m", None]},
    {"topic": "", "fanout": False},
]
URLS = [
    "kafka://host:9092/",
    "kafka://host:9092",
    "kafka://host",
    "kafka://HOST:9092/",
    "kafka://me:secret@host:9092/vhost",
    "kafka://me:p%40ss%2Fword%25@host:9092/v%2Fh",
    "kafka://me@host:9092/",
    "kafka://me:@host/",
    "kafka://@host/",
    "kafka://a@b:secret@host/",
    "kafka://a:1,b:2,c/v",
    "kafka://me:x@a:1,me:x@b:2/v",
    "kafka://me:x@a:1,b:2/v",
    "kafka://[::1]:9092/",
    "kafka://[2001:db8::7]/v",
    "kafka://me:x@[::1]:1,[::2]:2/",
    "kafka://host:9092/v?name=1&other=a%20b",
    "kafka://host:9092/?name=1&name=2",
    "kafka:///v",
    "kafka://",
    "fake:",
    "fake:/",
    "kafka+x://host/",
    "KAFKA://host/",
    "kafka://host//",
    "kafka://host/a/b",
    "kafka://,host,/",
    "kafka://host:x/",
    "kafka://host:99999/",
    "host:9092",
    "no-scheme",
    "//host",
]


def run() -> Any:
    conf = kit.make_conf()
    om = kit.oslo_messaging
    targets = [om.Target(**one) for one in TARGETS]
    equal = [om.Target(**one) for one in TARGETS]
    called = targets[4](topic="z", fanout=None)
    parsed = {}
    for url in URLS:
        parsed[url] = kit.outcome(lambda: describe(om.TransportURL.parse(conf, url)))  # noqa: B023 - called at once
    made = om.TransportURL(
        conf, "kafka", "v/h", [om.TransportHost("h", 1, "u", "p:w"), om.TransportHost("::1")], {"a": "b"}
    )
    usable = [url for url in URLS if not isinstance(parsed[url], str)]
    return {
        "targets": [repr(target) for target in targets],
        "target_vars": [vars(target) for target in targets],
        "target_equal": [[a == b, a != b] for a, b in itertools.product(targets, equal)],
        "target_call": [repr(called), vars(called)],
        "urls": parsed,
        "url_made": [describe(made), describe(om.TransportURL(conf))],
        "url_equal": {
            f"{a} {b}": om.TransportURL.parse(conf, a) == om.TransportURL.parse(conf, b)
            for a, b in itertools.combinations(usable, 2)
        },
        "url_again": {
            url: om.TransportURL.parse(conf, str(om.TransportURL.parse(conf, url)))
            == om.TransportURL.parse(conf, url)
            for url in usable
        },
        "hosts_equal": [
            om.TransportHost("a", 1) == om.TransportHost("a", 1),
            om.TransportHost("a", 1) == om.TransportHost("a", 2),
            om.TransportHost("a", 1) != om.TransportHost("a", 1),
        ],
        "url_type": kit.outcome(lambda: om.TransportURL.parse(conf, 5)),
    }


def describe(url: Any) -> Any:
    return {
        "transport": url.transport,
        "virtual_host": url.virtual_host,
        "hosts": [[host.hostname, host.port, host.username, host.password] for host in url.hosts],
        "query": url.query,
        "str": str(url),
    }
