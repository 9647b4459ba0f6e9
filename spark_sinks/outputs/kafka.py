"""``kafka:``: metric rows in a topic, one JSON object in each record, each batch in one transaction.

The last record of the transaction goes to another topic, ``TOPIC.batches``, and says which batch
it was. So the rows and the batch are committed together, and after a crash the batch is known.
Consumers must read committed records only. For each metric and window, the records with the
highest ``batch`` are valid.

The transactional id is made of the job and the topic: the next run aborts a transaction that a
killed run left open, without waiting for the broker's timeout.
"""

import json
from collections.abc import Sequence

import pyarrow as pa
from oslo_config import cfg

from notifier_kafka.config.transport_url import TransportURL
from notifier_kafka.contract.driver import Delivery, Driver, Record
from notifier_kafka.contract.url import DriverURL
from notifier_kafka.errors import ConfigurationError
from spark_sinks.outputs import rows
from spark_sinks.sources import kafka_properties, opening

COMMIT_TIMEOUT_SECONDS = 60.0
BATCHES_SUFFIX = ".batches"
LOOKBACK_RECORDS = 100


class KafkaSink:
    """``kafka:TOPIC`` on the brokers of the transport URL, ``kafka://HOST/TOPIC`` on others."""

    def __init__(self, place: str, conf: cfg.ConfigOpts) -> None:
        self.url = TransportURL.parse(conf, f"kafka:{place}" if place.startswith("//") else None)
        self.topic = (self.url.virtual_host if place.startswith("//") else place) or ""
        if not self.topic or self.url.transport != "kafka":
            raise ConfigurationError(
                f"output kafka: on {self.url.masked()}: use kafka://HOST/TOPIC, or kafka:TOPIC when "
                "transport_url is a Kafka URL"
            )

    def last(self, job: str) -> int:
        with opening.open_driver(self.url) as driver:
            there = driver.admin().list_topics()
            if self.topic + BATCHES_SUFFIX not in there:
                # Retention must not delete the last batch.
                driver.admin().create_topic(self.topic + BATCHES_SUFFIX, 1, {"cleanup.policy": "compact"})
            # A transaction that a killed run left open would hide all later records.
            driver.transaction(self._name(job)).abort()
            found = _newest(driver, self.topic + BATCHES_SUFFIX)
        if found is None:
            return 0
        mark = json.loads(found.record.value or b"{}")
        if mark.get("job") != job:
            raise ConfigurationError(
                f"output kafka: topic {self.topic} belongs to another job; name another topic"
            )
        return int(mark["batch"])

    def write(self, job: str, batch: int, found: pa.Table) -> None:
        with opening.open_driver(self.url) as driver:
            whole = driver.transaction(self._name(job))
            for row in map(rows.as_json, found.to_pylist()):
                key = json.dumps(
                    [row["metric"], row["window_start"], row["window_end"], row["group"]], sort_keys=True
                )
                whole.offer(Record(self.topic, json.dumps(row | {"batch": batch}).encode(), key.encode()))
            mark = json.dumps({"job": job, "batch": batch, "rows": len(found)})
            whole.offer(Record(self.topic + BATCHES_SUFFIX, mark.encode(), job.encode()))
            whole.commit(COMMIT_TIMEOUT_SECONDS)

    def _name(self, job: str) -> str:
        return f"{job}-{self.topic}"


def written_topics(outputs: Sequence[str], url: DriverURL) -> frozenset[str]:
    """Return the topics that outputs write on the brokers of a URL."""
    found: set[str] = set()
    for output in outputs:
        kind, _, place = output.partition(":")
        if kind == "kafka" and url.transport == "kafka":
            one = KafkaSink(place, url.conf)
            if _addresses(one.url) & _addresses(url):
                found |= {one.topic, one.topic + BATCHES_SUFFIX}
    return frozenset(found)


def _addresses(url: DriverURL) -> set[tuple[str | None, int]]:
    return {(host.hostname, host.port or kafka_properties.DEFAULT_PORT) for host in url.hosts}


def _newest(driver: Driver, topic: str) -> Delivery | None:
    """Return the last record of a topic of one partition."""
    for span in driver.spans([topic]):
        stop = span.stop
        while stop > span.start:
            # Many offsets may hold no records but the ends of transactions.
            start = max(span.start, stop - LOOKBACK_RECORDS)
            some = list(driver.read(span._replace(start=start, stop=stop)))
            if some:
                return some[-1]
            stop = start
    return None
