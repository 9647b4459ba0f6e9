"""From options to a job, without Spark."""

from pathlib import Path

import pytest
import rig

from notifier_kafka.errors import ConfigurationError
from spark_sinks import session, settings


def properties(tmp_path: Path, *lines: str) -> dict[str, str]:
    ini = tmp_path / "nk.conf"
    ini.write_text("[spark_sinks]\n" + "".join(f"spark_properties = {line}\n" for line in lines))
    found: dict[str, str] = settings.read(rig.conf(str(ini))).group.spark_properties
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
    made = session.properties(session.Settings(extra=expected | {"spark.sql.ansi.enabled": "true"}))
    assert made.items() >= expected.items()
    assert made["spark.sql.ansi.enabled"] == "false"


@pytest.mark.parametrize("line", ["spark.executor.cores", "executor.cores:4"])
def test_what_is_no_property_of_sparks(tmp_path: Path, line: str) -> None:
    with pytest.raises(
        ConfigurationError, match=r"spark_properties: '.*' is not of the form spark\.NAME:VALUE"
    ):
        properties(tmp_path, line)
