"""The contract, on Kafka, with either client library."""

import pathlib
from typing import Any, ClassVar

import pytest

from notifier_kafka.testing import conformance

CLIENTS = ["confluent-kafka", "kafka-python"]


class TestKafka(conformance.DriverSuite):
    patience: ClassVar[float] = 45.0

    @pytest.fixture(params=CLIENTS)
    def client(self, request: pytest.FixtureRequest) -> str:
        return str(request.param)

    @pytest.fixture
    def url(self, kafka_cluster: Any, client: str) -> str:
        return f"{kafka_cluster.url}?client={client}"

    @pytest.fixture
    def unreachable_url(self, client: str) -> str:
        return f"kafka://127.0.0.1:1?client={client}"

    @pytest.fixture
    def config_files(self, tmp_path: pathlib.Path) -> list[str]:
        # A member that died is given up after six seconds, the least that brokers allow.
        path = tmp_path / "service.conf"
        path.write_text("[drivers_kafka]\nsession_timeout = 6\n")
        return [str(path)]
