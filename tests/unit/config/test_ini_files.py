"""Configuration files: which file sets what, and warnings of misspelt sections and options."""

import logging
import pathlib
from collections.abc import Callable
from types import ModuleType

import pytest
from oslo_config import cfg

from notifier_kafka.config import options, reading
from notifier_kafka.errors import ConfigurationError

Conf = Callable[..., cfg.ConfigOpts]


def test_files_are_read_once(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "app.conf").write_text("[notifications]\ntopics = a\nretry = abc\n")
    monkeypatch.chdir(tmp_path)
    conf = cfg.ConfigOpts()
    conf(args=["--config-file", "app.conf"], default_config_dirs=[])
    options.register(conf)
    assert options.listener(conf).batch_size == 500

    monkeypatch.chdir("/")
    (tmp_path / "app.conf").unlink()
    with pytest.raises(ConfigurationError, match=r"^app.conf, \[notifications\] retry: 'abc'"):
        options.notifications(conf)


def test_a_file_that_was_removed_is_ignored(read: Conf, tmp_path: pathlib.Path) -> None:
    conf = read("[notifications]\ntopics = a\n")
    (tmp_path / "app.conf").unlink()

    assert options.notifications(conf).topics == ["a"]


def test_a_file_that_was_broken_later_is_ignored(read: Conf, tmp_path: pathlib.Path) -> None:
    conf = read("[notifications]\ntopics = a\n")
    (tmp_path / "app.conf").write_bytes(b"[notifications\n\xff")

    assert options.notifications(conf).topics == ["a"]


def test_files_given_after_the_first_use_are_read(tmp_path: pathlib.Path) -> None:
    conf = cfg.ConfigOpts()
    assert options.listener(conf).batch_size == 500

    (tmp_path / "app.conf").write_text("[listener]\nbatchsize = 7\n")
    conf(args=["--config-file", str(tmp_path / "app.conf")], default_config_dirs=[])
    with pytest.raises(ConfigurationError, match="unknown option 'batchsize'"):
        options.listener(conf)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[notificatons]\ndriver = log\n", "nothing reads [notificatons]: did you mean [notifications]?"),
        ("[listner]\ngroup = a\n", "nothing reads [listner]: did you mean [listener]?"),
        (
            "[oslo_messaging_notification]\ndriver = log\n",
            "nothing reads [oslo_messaging_notification]: did you mean [oslo_messaging_notifications]?",
        ),
        ("[defaults]\ntransport_url = x://s3cr3t\n", "nothing reads [defaults]: did you mean [DEFAULT]?"),
        (
            "[DEFAULT]\ntransport_ur = x://s3cr3t\n",
            "nothing reads 'transport_ur': did you mean transport_url?",
        ),
        (
            "[oslo_messaging_notifications]\ntopic = a\n",
            "nothing reads 'topic': did you mean topics? known are",
        ),
    ],
)
def test_a_misspelling_is_warned_of_once(
    read: Conf, tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture, text: str, said: str
) -> None:
    conf = read(text)
    for _ in range(2):
        options.notifications(conf)
        options.listener(conf)

    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage().startswith(str(tmp_path / "app.conf"))
    assert said in record.getMessage()
    assert "s3cr3t" not in record.getMessage()


def test_a_driver_group_that_is_misspelt_is_warned_of(
    read: Conf, kafka: ModuleType, caplog: pytest.LogCaptureFixture
) -> None:
    conf = read("[driver_kafka]\nacks = 1\n[oslo_messaging_kafak]\nsecurity_protocol = SSL\n")
    reading.read_group(conf, kafka.GROUP, kafka.OPTS)

    assert [record.getMessage().partition(": ")[2] for record in caplog.records] == [
        "nothing reads [driver_kafka]: did you mean [drivers_kafka]?",
        "nothing reads [oslo_messaging_kafak]: did you mean [oslo_messaging_kafka]?",
    ]


def test_an_unknown_name_in_the_group_of_oslo_messaging_s_driver_is_warned_of_once(
    read: Conf, tmp_path: pathlib.Path, kafka: ModuleType, caplog: pytest.LogCaptureFixture
) -> None:
    conf = read(
        "[oslo_messaging_kafka]\nsecurity_protcol = SASL_SSL\nenable_auto_commit = true\n"
        "max_poll_records = 5\nkafka_consumer_timeout = 1\nsasl_mechanism = PLAIN\n"
    )
    for _ in range(2):
        reading.read_group(conf, kafka.GROUP, kafka.OPTS)

    # oslo.config's own warning is of the deprecated name.
    (record,) = [record for record in caplog.records if record.name.startswith("notifier_kafka")]
    assert record.levelno == logging.WARNING
    assert record.getMessage().startswith(
        f"{tmp_path}/app.conf, [oslo_messaging_kafka]: nothing reads 'security_protcol': "
        "did you mean security_protocol? known are compression_codec, "
    )


def test_what_oslo_messaging_registered_in_the_group_of_its_driver_is_known(
    read: Conf, kafka: ModuleType, caplog: pytest.LogCaptureFixture
) -> None:
    conf = read("[oslo_messaging_kafka]\nnewer = 1\n[oslo_messaging_sqlite]\nold = 2\ntheirs = 3\n")
    conf.register_opt(cfg.StrOpt("newer"), group="oslo_messaging_kafka")
    reading.read_group(conf, kafka.GROUP, kafka.OPTS)
    # The author of a driver need not know all options of such a group.
    old = cfg.StrOpt("new", deprecated_opts=[cfg.DeprecatedOpt("old", group="oslo_messaging_sqlite")])
    assert reading.read_group(conf, "drivers_new", [old])["new"] == "2"

    assert "nothing reads" not in caplog.text


def test_options_of_others_are_not_misspellings(read: Conf, caplog: pytest.LogCaptureFixture) -> None:
    conf = read(
        "[DEFAULT]\ntransport_urls = a\ndebug = true\n"
        "[notification]\nkey = a\n[notificatons]\nowner = a\n"
        "[drivers_sqlite]\nbusy_timeout = 1\n[oslo_messaging_notifications]\ntheirs = a\n"
    )
    conf.register_opt(cfg.StrOpt("transport_urls"))
    conf.register_opt(cfg.StrOpt("key"), group="notification")
    options.register(conf)
    conf.register_opt(cfg.StrOpt("theirs"), group="oslo_messaging_notifications")
    options.notifications(conf)

    assert caplog.records == []
