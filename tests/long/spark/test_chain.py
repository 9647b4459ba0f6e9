"""The whole chain, on both sources: published, aggregated by processes that get killed, recounted.

``NOTIFIER_KAFKA_CHAIN`` is how many notifications that are; 100,000 without it.
"""

import os
import random
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from notifier_kafka.contract.driver import Record
from notifier_kafka.testing.clusters import kafka_cluster
from spark_sinks.language import metrics_file
from tests.long.spark import test_kills
from tests.shared.spark import recount, rig, traffic
from tests.spark import test_job

__all__ = ["kafka_cluster"]

SIZE = int(os.environ.get("NOTIFIER_KAFKA_CHAIN", "100000"))
# Every kind, by parts that come in several batches; values that several metrics have cost little more.
METRICS = """
metrics:
  - {name: count, kind: count, group_by: [event_type, priority], window: 1m, rollups: [1h, 1d]}
  - {name: sum, kind: sum, value: $.payload.size, group_by: [host, {tenant: $.payload.tenant}], window: 1h}
  - {name: users, kind: distinct, value: $.payload.user, window: {width: 30m, every: 10m}}
  - {name: percentiles, kind: percentiles, value: $.payload.size, window: 1h}
  - {name: least, kind: min, value: $.payload.size, window: 1h}
  - {name: most, kind: max, value: $.payload.size, window: 1h}
  - {name: latest, kind: last, value: $.payload.size, group_by: service, window: 1h}
  - {name: sizes, kind: histogram, value: $.payload.size, window: 1h}
  - {name: pace, kind: rate, where: [{path: $.payload.tenant, one_of: [red, green]}], window: 1h}
  - {name: silence, kind: gap, group_by: service, window: 1h}
  - {name: top, kind: top, k: 3, value: publisher, window: 1h}
  - {name: errors, kind: error_share, group_by: service, window: 1h}
  - {name: late, kind: avg, value: latency, window: 1h}
  - name: took
    kind: avg
    value: {start: "*.start", end: "*.end", key: $.payload.id}
    window: 1h
    rollups: [1d]
"""
# In which step each process dies; a batch is half of everything. The other steps are in test_kills.
DEATHS = {"sqlite": ["batch 1: partials written", "batch 2: in parquet:{}/out"], "kafka": ["batch 2: read"]}


@pytest.fixture(scope="module")
def sent() -> list[Record]:
    """Notifications in every form, some twice, some malformed, their times in no order."""
    # Most in the form that services of this package write, which is read several times as fast.
    forms = (*traffic.FORMS[:1] * 16, *traffic.FORMS)
    made = traffic.records(traffic.notifications(SIZE), forms=forms)
    chance = random.Random(5)
    # In the same partition: of two copies that came at different times the latency would depend
    # on which is read first.
    keyed = [record for record in made if record.key]
    for record in chance.sample(keyed, SIZE // 50):
        made.insert(chance.randrange(len(made)), record)
    return made


@pytest.fixture(params=["sqlite", "kafka"])
def url(request: pytest.FixtureRequest) -> str:
    return "" if request.param == "sqlite" else str(request.getfixturevalue("kafka_cluster").url)


def test_everything_is_counted_once(
    url: str, sent: list[Record], jvm: Callable[[], dict[str, str]], tmp_path: Path
) -> None:
    (tmp_path / "m.yaml").write_text(METRICS)
    made = rig.Rig(tmp_path, metrics_file.read(str(tmp_path / "m.yaml")), url=url)
    outputs = [f"parquet:{tmp_path}/out", f"jdbc:sqlite:{tmp_path}/rows.db"]
    test_kills.configure(made, outputs, batch_records=len(sent) // 2 + 1)
    if url:
        made.driver.admin().create_topic("t.info", 3)
    for at in range(0, len(sent), 20_000):
        made.publish(sent[at : at + 20_000])
    for moment in DEATHS["kafka" if url else "sqlite"]:
        assert test_kills.run(made, moment.format(tmp_path), jvm()) == -signal.SIGKILL, moment
    assert test_kills.run(made, "", jvm()) == 0

    found = made.parquet("out")
    assert recount.compare(found, made.truth(), made.metrics) == []
    assert test_job.table(tmp_path / "rows.db") == found
    assert sums(made) == {
        "read": len(sent),
        "decoded": SIZE,
        "malformed": sum(record.value in traffic.MALFORMED for record in sent),
    }
    made.transport.cleanup()


def sums(made: rig.Rig) -> dict[str, Any]:
    batches = [made.ledger.sums(batch) for batch in range(1, made.ledger.last() + 1)]
    assert sum(batch["late"] for batch in batches)
    assert sum(batch["duplicate"] for batch in batches)
    malformed = sum(sum(batch["malformed"].values()) for batch in batches)
    return {name: sum(batch[name] for batch in batches) for name in ("read", "decoded")} | {
        "malformed": malformed
    }
