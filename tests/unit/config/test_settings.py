"""The typed settings have a field for each option, and no secret in their repr."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest
from oslo_config import cfg

from notifier_kafka.config import options, reading
from notifier_kafka.config.settings import ListenerSettings, NotificationSettings
from notifier_kafka_drivers.kafka import options as kafka
from notifier_kafka_drivers.kafka.settings import KafkaSettings
from notifier_kafka_drivers.sqlite import options as sqlite
from spark_sinks.job import options as spark

GROUPS = [
    (NotificationSettings, options.NOTIFICATION_OPTS),
    (ListenerSettings, options.LISTENER_OPTS),
    (KafkaSettings, kafka.OPTS),
    (sqlite.SqliteSettings, sqlite.OPTS),
    (spark.SparkSettings, spark.OPTS),
]


@pytest.mark.parametrize(("kind", "opts"), GROUPS)
def test_each_option_is_a_field(kind: type[Any], opts: Sequence[cfg.Opt]) -> None:
    assert [field.name for field in dataclasses.fields(kind)] == [opt.dest for opt in opts]


@pytest.mark.parametrize(("kind", "opts"), GROUPS)
def test_no_secret_is_in_a_repr(kind: type[Any], opts: Sequence[cfg.Opt]) -> None:
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[])
    values = reading.read_group(conf, "group", opts)
    secrets = {opt.dest for opt in opts if opt.secret}

    shown = repr(kind(**values | dict.fromkeys(secrets, "s3cret")))

    assert "s3cret" not in shown
