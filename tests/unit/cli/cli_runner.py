"""Runs the program on a log, for tests of its commands."""

import json
from typing import Any

import pytest
from oslo_config import cfg

from notifier_kafka.cli import main
from notifier_kafka.contract.driver import Driver, Limits, Partition, Record
from notifier_kafka.publishing import transport

TIMEOUT_SECONDS = 60.0


class CliRunner:
    """Runs the program on a log, and has a driver on the same log."""

    def __init__(self, url: str, capsys: pytest.CaptureFixture[str]) -> None:
        conf = cfg.ConfigOpts()
        conf([], default_config_files=[], default_config_dirs=[])
        self.url = url
        self.transport = transport.get_notification_transport(conf, url)
        self._capsys = capsys

    @property
    def driver(self) -> Driver:
        return self.transport.driver

    def run(self, *argv: str) -> tuple[int, str, str]:
        code = main.main(("--transport-url", self.url, *argv))
        captured = self._capsys.readouterr()
        return int(code), captured.out, captured.err

    def json(self, *argv: str) -> Any:
        code, out, err = self.run(*argv, "--json")
        assert (code, err) == (0, "")
        return json.loads(out)

    def refused(self, *argv: str) -> tuple[int, str]:
        """Run a command that must fail; return its exit code and its one line of error."""
        code, out, err = self.run(*argv)
        assert out == ""
        assert err.startswith("notifier-kafka: ")
        assert err.count("\n") == 1
        return code, err

    def put(self, *records: Record) -> None:
        publisher = self.driver.publisher(lambda _record, error: pytest.fail(str(error)), Limits())
        for record in records:
            publisher.offer(record)
        assert publisher.flush(TIMEOUT_SECONDS) == 0
        publisher.close()

    def publish(self, topic: str, count: int) -> None:
        self.put(*(Record(topic, b"%d" % number) for number in range(count)))

    def topic(self, name: str, records: int) -> None:
        """Create a topic with one partition, so that offsets are known."""
        self.driver.admin().create_topic(name, 1)
        self.publish(name, records)

    def positions(self, group: str) -> dict[Partition, int]:
        return dict(self.driver.admin().describe_group(group).positions)
