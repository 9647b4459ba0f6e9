"""The doctor and the listing commands before a secured broker."""

import pathlib
from typing import Any

import pytest

from notifier_kafka.cli import main
from notifier_kafka.testing.clusters import ClusterMaker
from notifier_kafka_drivers.kafka.local.broker_users import ADMIN, Security


def test_a_right_login_and_a_wrong_one(
    make_kafka_cluster: ClusterMaker, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster: Any = make_kafka_cluster(security=Security(tls=True, sasl="scram"))
    right = pathlib.Path(cluster.ini(ADMIN)).read_text()
    password = cluster.options()["sasl_password"]
    for client in ("confluent-kafka", "kafka-python"):
        path = tmp_path / f"{client}.conf"
        path.write_text(right.replace("[drivers_kafka]", f"[drivers_kafka]\nclient = {client}"))
        assert main.main(["--config-file", str(path), "doctor"]) == 0
        out = capsys.readouterr().out
        assert "OK   transport" in out
        assert password not in out

        path.write_text(path.read_text().replace(password, "wr0ng-one"))
        assert main.main(["--config-file", str(path), "doctor"]) == 3
        out = capsys.readouterr().out
        (line,) = [line for line in out.splitlines() if line.startswith("FAIL")]
        assert line.startswith("FAIL transport")
        assert "the brokers refuse the login" in line
        assert f"({path}, line " in line
        assert "correct the address or the login" in out
        assert "wr0ng-one" not in out

        assert main.main(["--config-file", str(path), "send", "1"]) == 3
        err = capsys.readouterr().err
        assert err.count("\n") == 1, err
        assert "the brokers refuse the login" in err
