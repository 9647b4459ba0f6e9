"""Transport URLs: parsing, and that no password is shown."""

import pathlib

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from oslo_config import cfg

from notifier_kafka.errors import ConfigurationError, InvalidTransportURL
from notifier_kafka.url import TransportHost, TransportURL, mask

OPTS = [
    cfg.IntOpt("size", default=1, min=1),
    cfg.StrOpt("key_password", secret=True),
    cfg.FloatOpt("linger", deprecated_opts=[cfg.DeprecatedOpt("old_linger", group="elsewhere")]),
]

# Characters that a password should have encoded and people do not.
BARE = st.text(st.sampled_from("/?#@,:[]%&=; 'é℀\\"), max_size=3)


@pytest.fixture
def conf() -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    conf(args=[], default_config_files=[], default_config_dirs=[])
    return conf


def test_every_part_is_read(conf: cfg.ConfigOpts) -> None:
    url = TransportURL.parse(conf, "kafka://me:p%40ss@Broker1:9092,[2001:db8::1]:9093,third/v%2Fh?size=5")

    assert url.transport == "kafka"
    assert url.virtual_host == "v/h"
    assert url.query == {"size": "5"}
    assert url.hosts == [
        TransportHost("Broker1", 9092, "me", "p@ss"),
        TransportHost("2001:db8::1", 9093),
        TransportHost("third"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "kafka://me:p%40ss@broker1:9092,[2001:db8::1]:9093/vhost?size=5",
        "kafka://broker/",
        "sqlite:////var/lib/a%20b.db",
        "sqlite:///",
    ],
)
def test_text_of_a_url_parses_to_the_same(conf: cfg.ConfigOpts, text: str) -> None:
    url = TransportURL.parse(conf, text)

    assert TransportURL.parse(conf, str(url)) == url


@given(user=st.text(), password=st.text(), vhost=st.text())
def test_any_login_survives_the_way_through_text(user: str, password: str, vhost: str) -> None:
    conf = cfg.ConfigOpts()
    host = TransportHost("broker", 9092, user, password)
    try:
        url = TransportURL(conf, "kafka", vhost or None, [host])
        again = TransportURL.parse(conf, str(url))
    except UnicodeEncodeError:
        return  # a lone surrogate has no percent-encoding

    assert (again.hosts, again.virtual_host) == ([host], vhost or None)


def _leaks(text: str) -> bool:
    return "s3cr3t" in text or "h1dd3n" in text


@given(middle=BARE, before=BARE, after=BARE, tail=st.sampled_from(["@broker", "@broker:1,b2/v?size=2"]))
def test_no_password_in_an_error_or_a_repr(middle: str, before: str, after: str, tail: str) -> None:
    password = f"{before}s3cr3t{middle}h1dd3n{after}"
    # A bare @ with a comma after it is a good URL of two hosts, each with a login.
    assume("," not in password.partition("@")[2])
    text = f"kafka://me:{password}{tail}"
    assert not _leaks(mask(text))
    try:
        url = TransportURL.parse(cfg.ConfigOpts(), text)
        shown = f"{url!r} {url.masked()} {url.hosts!r}"
    except InvalidTransportURL as error:
        shown = f"{error} {error!r} {error.url} {error.__cause__}"

    assert not _leaks(shown)


def test_no_password_in_the_error_when_the_host_was_forgotten(conf: cfg.ConfigOpts) -> None:
    with pytest.raises(InvalidTransportURL, match="a port must be a number") as caught:
        TransportURL.parse(conf, "kafka://me:s3cr3t")

    assert not _leaks(str(caught.value))


@pytest.mark.parametrize(
    "text", ["log.db?a=1 sqlite:///password=hunter2/", "me:hunter2@broker:9092/vhost?more=kafka://me"]
)
def test_what_stands_before_a_driver_s_name_is_hidden_too(conf: cfg.ConfigOpts, text: str) -> None:
    with pytest.raises(InvalidTransportURL) as caught:
        TransportURL.parse(conf, text)

    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("password", ["12/34", "12#34", "12?34", "12,34"])
def test_password_that_looks_like_a_port_is_not_taken_for_one(conf: cfg.ConfigOpts, password: str) -> None:
    with pytest.raises(InvalidTransportURL, match="%2F") as caught:
        TransportURL.parse(conf, f"kafka://me:{password}@broker")

    assert "34" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nonsense", "it must begin like kafka://"),
        ("kafka:broker", "it must begin like kafka://"),
        ("kafka://broker:port", "a port must be a number"),
        ("kafka://broker:99999", "a port must be a number"),
        ("kafka://:9092", "without a host name"),
        ("kafka://[::1", "the hosts are not valid"),
        ("sqlite:////var/a#b.db", "%23"),
        ("sqlite:////var/\udcff.db", "not Unicode text"),
    ],
)
def test_bad_url_is_one_clear_line(conf: cfg.ConfigOpts, text: str, said: str) -> None:
    with pytest.raises(InvalidTransportURL, match=said) as caught:
        TransportURL.parse(conf, text)

    assert "\n" not in str(caught.value)


def test_secrets_in_the_query_are_masked(conf: cfg.ConfigOpts) -> None:
    url = TransportURL.parse(conf, "kafka://broker/?key_password=s3cr3t&size=3")

    assert "s3cr3t" not in repr(url)
    assert "size=3" in repr(url)
    assert "s3cr3t" in str(url)


def test_query_overrides_options(conf: cfg.ConfigOpts) -> None:
    settings = TransportURL.parse(conf, "kafka://broker/?size=7").settings("drivers_test", OPTS)

    assert settings.size == 7
    assert settings.linger is None


def test_query_takes_names_of_oslo_messaging(conf: cfg.ConfigOpts) -> None:
    settings = TransportURL.parse(conf, "kafka://broker/?old_linger=2").settings("drivers_test", OPTS)

    assert settings.linger == 2.0


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("sise=7", "unknown option 'sise': did you mean size"),
        ("size=abc", "size: 'abc' is not a whole number"),
        ("size=0", "size: Should be greater than or equal to 1"),
        ("linger=soon", "linger: 'soon' is not a number"),
    ],
)
def test_bad_query_names_the_option(conf: cfg.ConfigOpts, query: str, said: str) -> None:
    url = TransportURL.parse(conf, f"kafka://broker/?{query}")

    with pytest.raises(ConfigurationError, match=said):
        url.settings("drivers_test", OPTS)


def test_a_bad_url_of_a_file_is_known_by_its_option(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "app.conf"
    path.write_text("[DEFAULT]\ntransport_url = me:hunter2@broker\n")
    conf = cfg.ConfigOpts()
    conf(args=["--config-file", str(path)], default_config_dirs=[])
    with pytest.raises(InvalidTransportURL) as caught:
        TransportURL.parse(conf)
    assert str(caught.value).startswith(f"{path}, [DEFAULT] transport_url: transport URL ")
    assert "hunter2" not in str(caught.value)

    with pytest.raises(InvalidTransportURL) as caught:
        TransportURL.parse(conf, "just words")
    assert str(caught.value).startswith("transport URL 'just words'")
