"""From options to a job, without Spark."""

from pathlib import Path

import pyspark
import pytest

from notifier_kafka.cli import main
from notifier_kafka.cli.exits import Exit
from notifier_kafka.errors import ConfigurationError, DriverLoadFailure
from notifier_kafka.url import TransportURL
from spark_sinks.engine import session
from spark_sinks.job import settings, wiring
from spark_sinks.language import metrics_file
from spark_sinks.sources import source
from tests.shared.spark import rig


def properties(tmp_path: Path, *lines: str) -> dict[str, str]:
    ini = tmp_path / "nk.conf"
    ini.write_text("[spark_sinks]\n" + "".join(f"spark_properties = {line}\n" for line in lines))
    found: dict[str, str] = settings.read(rig.conf(str(ini))).options.spark_properties
    return found


def test_properties_of_spark_may_hold_commas(tmp_path: Path) -> None:
    expected = {
        "spark.sql.extensions": "x,z",
        "spark.jars.packages": "org.a:b:1,org.c:d:2",
        "spark.executor.cores": "4",
        "spark.hadoop.fs.x-y": "1",
    }
    one_each = [f"{name}: {value}" for name, value in expected.items()]
    assert properties(tmp_path, *one_each) == expected
    assert properties(tmp_path, ",".join(one_each)) == expected
    assert properties(tmp_path, ", ".join(one_each[:2]), *one_each[2:]) == expected
    assert properties(tmp_path) == {}
    made = session.properties(session.SessionSettings(extra=expected | {"spark.sql.ansi.enabled": "true"}))
    assert made.items() >= expected.items()
    assert made["spark.sql.ansi.enabled"] == "false"


def test_jars_of_the_user_are_beside_ours() -> None:
    given = session.SessionSettings(
        jars=[Path("/a.jar"), Path("/b.jar")], extra={"spark.jars": "/c.jar,/d.jar"}
    )
    assert session.properties(given)["spark.jars"] == "/a.jar,/b.jar,/c.jar,/d.jar"


def test_a_pyspark_that_we_have_no_sums_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    url = TransportURL.parse(rig.conf(), "kafka://h/")
    asked: list[str] = []

    def fetch(name: str) -> list[Path]:
        asked.append(name)
        return []

    source.load(url).jars(fetch)
    assert asked == [f"spark-kafka-{pyspark.__version__}"]
    # As pip would leave it.
    info = tmp_path / "pyspark-4.99.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: pyspark\nVersion: 4.99.1\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(
        DriverLoadFailure, match=r"pip install pyspark==4\.0\.0, or .*_2\.13:4\.99\.1"
    ) as caught:
        source.load(url).jars(fetch)
    assert "\n" not in str(caught.value)
    assert wiring._jars(source.load(url), fetch, {"spark.jars.packages": "x:y:1"}) == ()
    with pytest.raises(DriverLoadFailure):
        wiring._jars(source.load(url), fetch, {"spark.executor.cores": "1"})


@pytest.mark.parametrize(
    "line",
    ["spark.executor.cores", "executor.cores:4", "spark.a=hunter2", "a.key:hunter2", "spark.a hunter2"],
)
def test_what_is_no_property_of_sparks(tmp_path: Path, line: str) -> None:
    with pytest.raises(
        ConfigurationError, match=r"spark_properties: '[\w.]+' is not of the form spark\.NAME:VALUE"
    ) as caught:
        properties(tmp_path, line)
    assert "hunter2" not in str(caught.value)


def test_a_key_of_a_store_is_not_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    properties(tmp_path, "spark.hadoop.fs.s3a.secret.key:hunter2")
    assert main.main(["--config-file", str(tmp_path / "nk.conf"), "config", "show"]) == Exit.OK
    out = capsys.readouterr().out
    assert "spark_properties" in out
    assert "hunter2" not in out


def test_the_digests_of_metrics_stay() -> None:
    """Checkpoints hold them: another digest means to them that the metric counts something else."""
    assert settings.metric_digests(metrics_file.default()) == {
        "notifications.count": "0194e4f5cff3cc17",
        "notifications.error_share": "1a48bcb17993878d",
        "notifications.duration": "954083eb9cacecab",
        "notifications.busiest": "36abb91e4c8d34ad",
        "notifications.latency": "7525ba8ba3d3bd6d",
        "notifications.latency.max": "6c3b2b14e847dcd8",
    }
