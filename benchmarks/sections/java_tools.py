"""Kafka's own performance tools from its jars: the Java client, without Python or JSON."""

import re
import subprocess
import uuid
from functools import cache

from benchmarks import child_protocol, measure
from benchmarks.bare_clients import InvalidMeasurement
from notifier_kafka.jvm import jars, java

PRODUCER, CONSUMER = "Kafka's ProducerPerformance (Java)", "Kafka's ConsumerPerformance (Java)"
_RATE = re.compile(r"^\d+ [\w ]*records sent, ([\d.]+) records/sec .* 99\.9th", re.MULTILINE)
_ENVELOPE_BYTES = 640  # of a value and its headers, as the others write them
_MILLISECONDS_PER_SECOND = 1000.0


def producer(bootstrap: str, topic: str) -> measure.Contestant:
    """Publish random bytes, durably, as many as the others."""
    settings = ["acks=all", "enable.idempotence=true"]
    settings += [f"linger.ms={child_protocol.LINGER_MS}", f"batch.size={child_protocol.BATCH_BYTES}"]

    def work(count: int) -> float:
        where = ["--bootstrap-server", bootstrap, "--topic", topic, "--num-records", str(count)]
        how = ["--record-size", str(_ENVELOPE_BYTES), "--throughput", "-1", "--command-property", *settings]
        # The last line is about the second half: the JVM of this round is cold at first.
        said = _run("ProducerPerformance", *where, *how, "--warmup-records", str(count // 2))
        found = _RATE.findall(said)
        if not found:
            raise InvalidMeasurement(f"ProducerPerformance said {said[-300:]}")
        return count / float(found[-1])

    return measure.Contestant(PRODUCER, work, cpu=_unknown)


def consumer(bootstrap: str, topic: str) -> measure.Contestant:
    """Fetch without decoding; joining the group is not measured, as with the others."""

    def work(count: int) -> float:
        where = ["--bootstrap-server", bootstrap, "--topic", topic, "--num-records", str(count)]
        said = _run("ConsumerPerformance", *where, "--group", str(uuid.uuid4()), "--hide-header")
        # start, end, MB, MB/s, records, records/s, rebalance ms, fetch ms, MB/s, records/s
        fields = said.strip().splitlines()[-1].split(", ")
        return count / int(fields[4]) * int(fields[7]) / _MILLISECONDS_PER_SECOND

    return measure.Contestant(CONSUMER, work, cpu=_unknown)


def _unknown() -> float:
    return 0.0  # most of it is the start of a JVM


@cache
def _program() -> list[str]:
    paths = [*jars.fetch(jars.KAFKA), *jars.fetch(jars.KAFKA_TOOLS)]
    return [str(java.find(java.KAFKA).path), "-Xmx512m", "-cp", ":".join(map(str, paths))]


def _run(tool: str, *arguments: str) -> str:
    command = [*_program(), f"org.apache.kafka.tools.{tool}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InvalidMeasurement(f"{tool}: {(done.stderr or done.stdout)[-300:]}")
    return done.stdout
