"""The last notifications on a real broker and those that come, without a gap or a second time."""

import json
import os
import pathlib
import signal
import subprocess
import sys
from typing import Any

from tests.shared.kafka.kafka_rig import until

PATIENCE = 60.0


def test_the_last_ones_and_what_comes(
    kafka_cluster: Any, client: str, topic: str, tmp_path: pathlib.Path
) -> None:
    program = [sys.executable, "-m", "notifier_kafka.cli.main"]
    program += ["--transport-url", f"{kafka_cluster.url}?client={client}"]
    environment = os.environ | {"HOME": str(tmp_path)}

    def send(*numbers: int) -> None:
        given = "\n".join(map(str, numbers))
        command = [*program, "send", "--lines", "-", "--topic", topic]
        subprocess.run(
            command, input=given, text=True, env=environment, check=True, stdout=subprocess.DEVNULL
        )

    def payloads() -> list[int]:
        whole = [line for line in seen.read_text().splitlines(keepends=True) if line.endswith("\n")]
        return [json.loads(line)["payload"] for line in whole]

    send(*range(30))
    seen = tmp_path / "seen"
    with seen.open("w") as stream:
        command = [*program, "tail", "-n", "4", "--topic", topic]
        onlooker = subprocess.Popen(command, stdout=stream, env=environment)
    try:
        until(lambda: len(payloads()) >= 4, "the last four")
        send(*range(30, 50))
        until(lambda: len(payloads()) >= 24, "those that came")
        onlooker.send_signal(signal.SIGTERM)
        assert onlooker.wait(PATIENCE) == 0
    finally:
        onlooker.kill()
        onlooker.wait()
    assert sorted(payloads()) == list(range(26, 50))

    command = [*program, "listen", "--topic", topic, "--until", "2026-01-01"]
    assert subprocess.run(command, env=environment, capture_output=True, check=True).stdout == b""

    command = [*program, "top", "--count", "1", "--interval", "0.5", "--json"]
    look = json.loads(subprocess.run(command, env=environment, capture_output=True, check=True).stdout)
    assert not any(group["name"].startswith("notifier-kafka-") for group in look["groups"])
