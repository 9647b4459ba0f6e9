"""The configuration: a sample, effective values with their origins, problems, and a plain client's JSON."""

import json
import logging
import pathlib
import re
import subprocess
import sys
from collections.abc import Callable

import pytest
from oslo_config import cfg

from notifier_kafka import url
from notifier_kafka.cli.commands import config
from notifier_kafka.config import options
from notifier_kafka.errors import ConfigurationError
from notifier_kafka_drivers.kafka import options as kafka_options
from spark_sinks.job import options as spark_options
from spark_sinks.job import settings
from tests.shared.checkout import ROOT
from tests.unit.cli.cli_runner import CliRunner

Write = Callable[[str], str]


@pytest.fixture
def write(tmp_path: pathlib.Path) -> Write:
    def to_a_file(text: str) -> str:
        path = tmp_path / "app.conf"
        path.write_text(text)
        return str(path)

    return to_a_file


def run(*argv: str, environment: dict[str, str] | None = None) -> tuple[int, str, str]:
    """Run the program without --transport-url."""
    command = [sys.executable, "-m", "notifier_kafka.cli.main", *argv]
    ended = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    return ended.returncode, ended.stdout, ended.stderr


def test_the_sample_is_the_one_of_the_checkout(cli: CliRunner) -> None:
    code, out, err = cli.run("config", "sample")
    assert (code, err) == (0, "")
    assert out == (ROOT / "etc" / "notifier_kafka" / "notifier.conf.sample").read_text()


def test_no_secret_of_a_spark_job_is_shown(write: Write, caplog: pytest.LogCaptureFixture) -> None:
    path = write(
        "[spark_sinks]\noutput = parquet:/srv/rows\n"
        "output = jdbc:postgresql://me:hunter2@db/rows?sslmode=require&password=hunter3\n"
        "spark_properties = spark.executor.memory:4g, spark.hadoop.fs.s3a.secret.key:hunter4,x,"
        "spark.hadoop.fs.s3a.access.key:hunter5\n"
        "spark_properties = spark.hadoop.fs.s3a.endpoint:https://me:hunter6@store/\n"
        "spark_properties = spark.driver.extraJavaOptions:-Da.keyStorePassword=hunter7 -Xmx1g\n"
    )
    code, out, err = run("--config-file", path, "config", "show", "--set", "--json")
    assert (code, err) == (0, "")
    found = {row["option"]: row["value"] for row in json.loads(out)}
    assert found["output"] == (
        "parquet:/srv/rows,jdbc:postgresql://me:***@db/rows?sslmode=require&password=***"
    )
    assert found["spark_properties"] == (
        "spark.executor.memory:4g, spark.hadoop.fs.s3a.secret.key:***,spark.hadoop.fs.s3a.access.key:***,"
        "spark.hadoop.fs.s3a.endpoint:https://***@store/,"
        "spark.driver.extraJavaOptions:-Da.keyStorePassword=*** -Xmx1g"
    )
    _, out, _ = run("--config-file", path, "doctor", "--json")
    assert "[spark_sinks] output = " in out
    assert "hunter" not in out
    conf = cfg.ConfigOpts()
    conf([], project="test", default_config_files=[path])
    conf.register_opts(spark_options.OPTS, group=spark_options.GROUP)
    with caplog.at_level(logging.DEBUG):
        conf.log_opt_values(logging.getLogger("test"), logging.DEBUG)
    assert "spark_sinks.output" in caplog.text
    assert "hunter" not in caplog.text


@pytest.mark.parametrize("sign", ["=", " ", " = "])
def test_a_property_of_spark_with_a_wrong_sign_is_not_quoted_with_its_secret(write: Write, sign: str) -> None:
    path = write(f"[spark_sinks]\nspark_properties = spark.ssl.keyPassword{sign}hunter2\n")
    conf = cfg.ConfigOpts()
    conf([], project="test", default_config_files=[path])
    said = "spark_properties: 'spark.ssl.keyPassword' is not of the form spark.NAME:VALUE"
    with pytest.raises(ConfigurationError, match=re.escape(said)):
        settings.read(conf)


def test_each_value_says_where_it_comes_from(write: Write, tmp_path: pathlib.Path) -> None:
    path = write(
        "[DEFAULT]\n# the bus\ntransport_url = kafka://me:hunter2@h:1/?linger=0.2&sasl_password=hunter3\n"
        "[oslo_messaging_notifications]\ntopics = a,b\n[drivers_kafka]\nssl_client_key_password=hunter4\n"
    )
    code, out, err = run(
        "--config-file", path, "config", "show", "--json", environment={"OS_LISTENER__WORKERS": "3"}
    )
    assert (code, err) == (0, "")
    assert "hunter" not in out
    found = {(row["group"], row["option"]): (row["value"], row["origin"]) for row in json.loads(out)}
    assert found["DEFAULT", "transport_url"] == (
        "kafka://me:***@h:1/?linger=0.2&sasl_password=***",
        f"{path}, line 3, [DEFAULT] transport_url",
    )
    assert found["notifications", "topics"] == (
        "a,b",
        f"{path}, line 5, [oslo_messaging_notifications] topics",
    )
    assert found["notifications", "transport_url"] == (None, "default")
    assert found["listener", "workers"][0] == 3
    assert "environment" in found["listener", "workers"][1]
    assert found["drivers_kafka", "linger"] == (0.2, "the transport URL's query")
    assert found["drivers_kafka", "ssl_client_key_password"][0] == "***"
    assert found["drivers_sqlite", "partitions"] == (4, "default")


def test_the_command_line_s_url_counts(cli: CliRunner) -> None:
    # An earlier test may have called set_transport_defaults, which sets an option in this process.
    origins = {row["option"]: row["origin"] for row in cli.json("config", "show", "--set")}
    assert origins["transport_url"] == "the command line"
    assert origins.keys() <= {"transport_url", "control_exchange"}


def test_every_problem_has_its_line_and_advice(write: Write) -> None:
    path = write(
        "[notification]\ndriver = x\n[notifications]\nretr = 5\nretry = many\n"
        "[drivers_kafka]\nacks = maybe\nclent = x\n[database]\nconnection = theirs\n"
    )
    code, out, err = run("--config-file", path, "config", "validate")
    assert (code, err) == (5, "")
    assert out.splitlines() == [
        f"{path}, line 1: nothing reads [notification]; did you mean [notifications]?",
        f"{path}, line 4: [notifications] has no option 'retr'; did you mean retry?",
        f"{path}, line 8: [drivers_kafka] has no option 'clent'; did you mean client?",
        f"{path}, line 5: [notifications] retry: 'many' is not a whole number",
        f"{path}, line 7: [drivers_kafka] acks: Valid values are [all, 1, 0], but found 'maybe'",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[notifications]\ndriver = messaging2\n", "line 2: [notifications] driver: messaging2: not found"),
        ("[notifications]\nkey = nothing\n", "line 2: [notifications] key: "),
        ("[DEFAULT]\ntransport_url = kafak://h\n", "did you mean kafka?"),
        ("[DEFAULT]\ntransport_url = kafka://h/?lnger=1\n", "did you mean linger?"),
        (
            "[DEFAULT]\ntransport_ulr = kafka://h\n",
            "line 2: [DEFAULT] has no option 'transport_ulr'; did you",
        ),
        ("[oslo_messaging_notifications]\ndrivr = log\n", "did you mean driver?"),
        (
            "[oslo_messaging_kafka]\nenable_auto_commit = true\ncompresion_codec = lz4\n",
            "line 3: [oslo_messaging_kafka] has no option 'compresion_codec'; did you mean compr",
        ),
        (
            "[oslo_messaging_kafak]\ncompression_codec = lz4\n",
            "line 1: nothing reads [oslo_messaging_kafak]; did you mean [oslo_messaging_kafka]?",
        ),
        ("[notifications]\nspool_dir = /a$b\n", "write $$ for a dollar sign"),
    ],
)
def test_what_is_wrong_in_meaning(write: Write, text: str, said: str) -> None:
    path = write(text)
    code, out, err = run("--config-file", path, "config", "validate")
    assert (code, err) == (5, "")
    assert said in out
    assert out.count("\n") == 1


def test_a_file_that_cannot_be_read_is_a_line_too(write: Write) -> None:
    path = write("[notifications\n")
    code, out, err = run("--config-file", path, "config", "validate")
    assert (code, out) == (5, "")
    assert err.startswith(f"notifier-kafka: {path}, line 1: ")


def test_nothing_wrong(write: Write) -> None:
    path = write("[DEFAULT]\ndebug = true\n[notifications]\ndriver = messagingv2\n[keystone]\nurl = x\n")
    assert run("--config-file", path, "config", "validate") == (0, f"no problems found: {path}\n", "")


def test_the_json_of_a_plain_client_becomes_a_file_that_says_the_same(write: Write) -> None:
    properties = {
        "bootstrap.servers": "h1:9092,h2:9093",
        "group.id": "g",
        "enable.auto.commit": True,
        "sasl.username": "u",
        "sasl.password": '"a$b" ',
        "security.protocol": "SASL_SSL",
        "fetch.min.bytes": 7,
        "session.timeout.ms": 7000,
        "auto.offset.reset": "latest",
    }
    given = json.dumps({"Type": "KafkaConsumerConfig", "Properties": properties})
    path = write(config.ini(given))
    conf = cfg.ConfigOpts()
    conf(["--config-file", path])
    address = url.TransportURL.parse(conf)
    assert [(host.hostname, host.port) for host in address.hosts] == [("h1", 9092), ("h2", 9093)]
    driver = address.settings(kafka_options.GROUP, kafka_options.OPTS)
    assert (driver.sasl_username, driver.sasl_password) == ("u", '"a$b" ')
    assert (driver.security_protocol, driver.session_timeout) == ("SASL_SSL", 7.0)
    assert driver.client_properties == {"fetch.min.bytes": "7"}
    listener = options.listener(conf)
    assert (listener.group, listener.start) == ("g", "latest")
    assert run("--config-file", path, "config", "validate")[0] == 0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("no json", "is not JSON"),
        ('{"Type": "X", "Properties": {}}', "one of KafkaProducerConfig, KafkaConsumerConfig"),
        ('{"Type": "KafkaProducerConfig", "Properties": {"ack": 1}}', "did you mean acks?"),
        (
            '{"Type": "KafkaProducerConfig", "Properties": {"client.id": "x\\n[DEFAULT]"}}',
            "cannot hold control characters",
        ),
    ],
)
def test_json_that_is_none_of_a_client(cli: CliRunner, given: str, said: str) -> None:
    code, err = cli.refused("config", "import-json", given)
    assert code == 5
    assert said in err
