"""Options: where a value comes from, and the error for one that cannot be used."""

import os
import pathlib
from collections.abc import Callable
from types import ModuleType

import pytest
from oslo_config import cfg

from notifier_kafka.config import options, reading
from notifier_kafka.errors import ConfigurationError, DriverNotFound
from notifier_kafka.publishing import notifier, transport

Conf = Callable[..., cfg.ConfigOpts]


def test_nothing_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    conf = cfg.ConfigOpts()

    assert options.notifications(conf).driver == []
    assert options.notifications(conf).topics == ["notifications"]
    assert options.notifications(conf).retry == -1
    assert options.transport_url(conf) == "sqlite:////data/notifier-kafka/notifications.db"


def test_data_directory_without_xdg(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("HOME", "/home/me")

    assert options.data_directory() == pathlib.Path("/home/me/.local/share/notifier-kafka")


def test_the_embedded_log_is_in_the_data_directory_whatever_that_is_called(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "a#b?c=1%23 ü:@,[d];&+"
    monkeypatch.setenv("XDG_DATA_HOME", str(directory))
    bus = transport.get_notification_transport(cfg.ConfigOpts())
    notifier.Notifier(bus, driver="messagingv2").prepare(wait=True).info({}, "e", 1)
    bus.cleanup()

    assert (directory / "notifier-kafka" / "notifications.db").is_file()


def test_without_a_home_it_is_said_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    # As in a container whose user is a bare number.
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.delenv("HOME")
    monkeypatch.setattr(os, "getuid", lambda: 987_654_321)

    with pytest.raises(ConfigurationError, match=r"set \[DEFAULT\] transport_url, or XDG_DATA_HOME"):
        transport.get_notification_transport(cfg.ConfigOpts())


def test_file_written_for_oslo_messaging(read: Conf) -> None:
    conf = read(
        "[DEFAULT]\ntransport_url = kafka://rpc\n"
        "[oslo_messaging_notifications]\n"
        "driver = messagingv2\ndriver = log\ntransport_url = kafka://notify\ntopics = a, b\nretry = 3\n"
    )
    settings = options.notifications(conf)

    assert settings.driver == ["messagingv2", "log"]
    assert settings.topics == ["a", "b"]
    assert settings.retry == 3
    assert options.transport_url(conf) == "kafka://notify"


def test_our_group_wins_option_by_option(read: Conf) -> None:
    conf = read(
        "[notifications]\ndriver = noop\n"
        "[oslo_messaging_notifications]\ndriver = messagingv2\ntopics = theirs\n"
    )
    settings = options.notifications(conf)

    assert settings.driver == ["noop"]
    assert settings.topics == ["theirs"]


def test_override_written_for_oslo_messaging() -> None:
    conf = cfg.ConfigOpts()
    options.register(conf)
    conf.set_override("driver", ["test"], group="oslo_messaging_notifications")

    assert options.notifications(conf).driver == ["test"]


THEIRS = cfg.StrOpt("transport_url", default="rabbit://", help="oslo.messaging's own")


def test_options_registered_before_by_another_library() -> None:
    conf = cfg.ConfigOpts()
    conf.register_opt(THEIRS)
    options.register(conf)

    assert options.transport_url(conf) == "rabbit://"


def test_notification_options_registered_before_by_another_library() -> None:
    conf = cfg.ConfigOpts()
    theirs = [cfg.MultiStrOpt("driver", default=[], help="theirs"), cfg.IntOpt("retry", default=-1)]
    conf.register_opts(theirs, group="oslo_messaging_notifications")
    options.register(conf)
    conf.set_override("driver", ["log"], group="oslo_messaging_notifications")
    conf.set_override("key", "none", group="oslo_messaging_notifications")

    assert options.notifications(conf).driver == ["log"]
    assert options.notifications(conf).key == "none"


def test_options_registered_afterwards_by_another_library() -> None:
    conf = cfg.ConfigOpts()
    options.register(conf)
    conf.register_opt(THEIRS)
    conf.set_override("transport_url", "sqlite:///shared.db")

    assert options.transport_url(conf) == "sqlite:///shared.db"


def test_notification_options_registered_afterwards_by_another_library() -> None:
    conf = cfg.ConfigOpts()
    options.register(conf)
    theirs = [
        cfg.MultiStrOpt("driver", default=[], help="theirs"),
        cfg.StrOpt("transport_url", secret=True, help="theirs"),
        cfg.ListOpt("topics", default=["notifications"], help="theirs"),
        cfg.IntOpt("retry", default=-1, help="theirs"),
    ]
    conf.register_opts(theirs, group="oslo_messaging_notifications")
    conf.set_override("topics", ["theirs"], group="oslo_messaging_notifications")

    assert options.notifications(conf).topics == ["theirs"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[notifications]\nretry = abc\n", r"app.conf, \[notifications\] retry: 'abc' is not a whole number"),
        ("[notifications]\nblock_timeout = x\n", r"\[notifications\] block_timeout: 'x' is not a number"),
        ("[notifications]\nretry = -2\n", r"retry: .*greater than or equal to -1"),
        ("[notifications]\non_full = wait\n", r"on_full: .*block, drop_newest, drop_oldest, raise.*'wait'"),
        ("[notifications]\nenvelope = maybe\n", r"envelope: .*'maybe'"),
        (
            "[notifications]\ntopic = a\n",
            r"app.conf, \[notifications\]: unknown option 'topic': did you mean topics",
        ),
        ("[notifications]\non-full = raise\n", r"unknown option 'on-full': did you mean on_full"),
        ("[Notifications]\ntopic = a\n", r"unknown option 'topic'"),
        ("[notifications]\nkey = $no_such\n", r"\[notifications\] key: a \$ begins the name .* write \$\$"),
        (
            "[oslo_messaging_notifications]\nretry = x\n",
            r"\[oslo_messaging_notifications\] retry: 'x' is not",
        ),
    ],
)
def test_bad_value_names_file_and_option(read: Conf, text: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said) as caught:
        options.notifications(read(text))

    assert "\n" not in str(caught.value)


def test_empty_number_is_the_default(read: Conf) -> None:
    assert options.notifications(read("[notifications]\nretry =\n")).retry == -1


def test_dollar_in_a_secret_shows_nothing_of_it(read: Conf) -> None:
    conf = read("[DEFAULT]\ntransport_url = kafka://me:s3$cr3t@broker\n")

    with pytest.raises(ConfigurationError, match="transport_url: a \\$ begins the name") as caught:
        options.transport_url(conf)

    assert "cr3t" not in str(caught.value)


def test_the_file_that_is_wrong_is_named(tmp_path: pathlib.Path) -> None:
    good, bad = tmp_path / "good.conf", tmp_path / "bad.conf"
    good.write_text("[notifications]\ntopics = a\n")
    bad.write_text("[notifications]\nretry = abc\n")
    conf = cfg.ConfigOpts()
    conf(args=["--config-file", str(bad), "--config-file", str(good)], default_config_dirs=[])

    with pytest.raises(ConfigurationError) as caught:
        options.notifications(conf)

    assert str(caught.value).startswith(f"{bad}, [notifications] retry")


def test_config_dir_is_read_and_checked(tmp_path: pathlib.Path) -> None:
    (tmp_path / "one.conf").write_text("[listener]\nbatch_size = 7\n")
    conf = cfg.ConfigOpts()
    conf(args=["--config-dir", str(tmp_path)], default_config_files=[])
    assert options.listener(conf).batch_size == 7

    (tmp_path / "two.conf").write_text("[listener]\nbatchsize = 7\n")
    conf.reload_config_files()
    with pytest.raises(ConfigurationError, match=r"two.conf, \[listener\]: unknown option 'batchsize'"):
        options.listener(conf)


def test_value_from_the_environment(read: Conf, monkeypatch: pytest.MonkeyPatch) -> None:
    conf = read("")
    monkeypatch.setenv("OS_LISTENER__BATCH_SIZE", "9")
    assert options.listener(conf).batch_size == 9

    monkeypatch.setenv("OS_LISTENER__BATCH_SIZE", "many")
    with pytest.raises(ConfigurationError, match=r"environment.*batch_size: 'many' is not a whole number"):
        options.listener(conf)


def test_kafka_options_written_for_oslo_messaging(read: Conf, kafka: ModuleType) -> None:
    conf = read(
        "[oslo_messaging_kafka]\n"
        "kafka_max_fetch_bytes = 2048\nkafka_consumer_timeout = 2.5\nconsumer_group = theirs\n"
        "producer_batch_timeout = 0.25\nproducer_batch_size = 99\ncompression_codec = gzip\n"
        "enable_auto_commit = true\nmax_poll_records = 10\nsecurity_protocol = SASL_SSL\n"
        "sasl_mechanism = SCRAM-SHA-256\nssl_cafile = /ca.pem\nssl_client_cert_file = /cert.pem\n"
        "ssl_client_key_file = /key.pem\nssl_client_key_password = s3cr3t\n"
    )
    got = reading.read_group(conf, kafka.GROUP, kafka.OPTS)
    expected = {
        "max_fetch_bytes": 2048,
        "consumer_group": "theirs",
        "linger": 0.25,
        "batch_size": 99,
        "compression": "gzip",
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-256",
        "ssl_cafile": "/ca.pem",
        "ssl_client_cert_file": "/cert.pem",
        "ssl_client_key_file": "/key.pem",
        "ssl_client_key_password": "s3cr3t",
    }

    assert {name: got[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("group", "url", "wrong"),
    [
        ("drivers_sqlite", "sqlite:///log.db", "partitons"),
        ("drivers_kafka", "kafka://127.0.0.1:1", "lingr"),
    ],
)
def test_a_notifier_is_not_made_with_a_wrong_option_of_the_driver(
    read: Conf, group: str, url: str, wrong: str
) -> None:
    # Found out later, it would cost the notification that is in the background by then.
    files = read(f"[{group}]\n{wrong} = 3\n", "wrong.conf"), read("")
    for conf, each in zip(files, (url, f"{url}?{wrong}=3"), strict=True):
        bus = transport.get_notification_transport(conf, each)
        with pytest.raises(ConfigurationError, match=f"unknown option '{wrong}': did you mean"):
            notifier.Notifier(bus, driver="messagingv2")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[drivers_kafka]\ncompression_codec = gzip\n",
            "unknown option 'compression_codec': did you mean compr",
        ),
        (
            "[oslo_messaging_kafka]\ncompression_codec = zip\n",
            r"\[oslo_messaging_kafka\] compression_codec: .*gzip",
        ),
        (
            "[drivers_kafka]\nclient_properties = s3cr3t\n",
            r"\[drivers_kafka\] client_properties: .*not valid$",
        ),
    ],
)
def test_bad_kafka_option(read: Conf, kafka: ModuleType, text: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said) as caught:
        reading.read_group(read(text), kafka.GROUP, kafka.OPTS)

    assert "s3cr3t" not in str(caught.value)


def test_secrets_are_declared_secret(kafka: ModuleType) -> None:
    every = [*kafka.OPTS, *(opt for _, opts in options.list_opts() for opt in opts)]
    secret = {opt.name for opt in every if opt.secret}

    assert secret == {"transport_url", "sasl_password", "ssl_client_key_password", "client_properties"}
    assert all(opt.help for opt in every)


def test_set_transport_defaults() -> None:
    before = next(opt.default for opt in options.DEFAULT_OPTS if opt.name == "control_exchange")
    try:
        options.set_transport_defaults("nova")
        conf = cfg.ConfigOpts()
        options.register(conf)
        assert conf.control_exchange == "nova"
    finally:
        options.set_transport_defaults(before)


@pytest.mark.parametrize(
    ("text", "name", "origin"),
    [
        ("[notifications]\ndriver = x\n", "driver", "app.conf, [notifications] driver"),
        (
            "[oslo_messaging_notifications]\ndriver = x\n",
            "driver",
            "app.conf, [oslo_messaging_notifications] driver",
        ),
        ("[DEFAULT]\ntransport_url = x\n", "transport_url", "app.conf, [DEFAULT] transport_url"),
        (
            "[DEFAULT]\ntransport_url = x\n[notifications]\ntransport_url =\n",
            "transport_url",
            "app.conf, [DEFAULT] transport_url",
        ),
        (
            "[DEFAULT]\ntransport_url = x\n[notifications]\ntransport_url = y\n",
            "transport_url",
            "app.conf, [notifications] transport_url",
        ),
        ("", "key", "the default of [notifications] key"),
        ("", "transport_url", "the default of [DEFAULT] transport_url"),
    ],
)
def test_origin(read: Conf, tmp_path: pathlib.Path, text: str, name: str, origin: str) -> None:
    conf = read(text)
    options.notifications(conf)

    assert options.origin(conf, name).removeprefix(f"{tmp_path}/") == origin


def test_origin_of_an_override_is_not_the_file(read: Conf) -> None:
    conf = read("[notifications]\nkey = a\n")
    options.register(conf)
    conf.set_override("key", "b", group="notifications")

    assert options.origin(conf, "key") == "the environment or a call, [notifications] key"


def test_origin_of_what_several_files_add_to(read: Conf, tmp_path: pathlib.Path) -> None:
    read("[notifications]\ndriver = log\nkey = a\n", "one.conf")
    read("[notifications]\ndriver = noop\nkey = b\n", "two.conf")
    conf = cfg.ConfigOpts()
    conf(args=["--config-dir", str(tmp_path)], default_config_files=[])
    options.register(conf)

    both = f"{tmp_path}/one.conf and {tmp_path}/two.conf, [notifications] driver"
    assert options.origin(conf, "driver") == both
    assert options.origin(conf, "key") == f"{tmp_path}/two.conf, [notifications] key"


def test_blame_says_where_a_value_comes_from_unless_it_was_given(read: Conf, tmp_path: pathlib.Path) -> None:
    conf = read("[notifications]\ndriver = messagingv3\n")
    options.register(conf)
    error = DriverNotFound("messagingv3", "not found: did you mean messagingv2?")
    with pytest.raises(DriverNotFound) as caught, options.blame(conf, "driver", given="messagingv3"):
        raise error
    assert str(caught.value) == "messagingv3: not found: did you mean messagingv2?"

    with pytest.raises(DriverNotFound) as caught, options.blame(conf, "driver"):
        raise error
    assert str(caught.value) == (
        f"{tmp_path}/app.conf, [notifications] driver: messagingv3: not found: did you mean messagingv2?"
    )
    assert caught.value.driver == "messagingv3"
