"""Durations of batches in any order: what each of them changed is what a recount finds, and nothing else."""

import random
from collections import defaultdict
from pathlib import Path

import pyarrow as pa
import pytest

from notifier_kafka.contract.driver import Span
from spark_sinks.engine import durations
from spark_sinks.language.metrics import Duration, Metric, Window
from spark_sinks.outputs import rows
from spark_sinks.state import ledger, partials, segments
from spark_sinks.state.plan import Plan
from tests.shared.spark import rig
from tests.unit.spark_sinks.state import test_segments

MINUTE, HOUR, DAY = 60, 3600, 86_400
WITHIN = 6 * HOUR
METRICS = (
    Metric(
        "took",
        "sum",
        "s",
        value=Duration(within=WITHIN),
        windows=tuple(map(Window.tumbling, (60, HOUR, DAY))),
    ),
    Metric("brief", "sum", "s", value=Duration(within=HOUR), windows=(Window(3 * HOUR, HOUR),)),
)
Event = tuple[int, bool, int]
"""A pair, whether it ends, and microseconds."""
Figures = dict[tuple[str, int, int], int]
"""Microseconds by metric, start and width."""


def put(kept: ledger.Ledger, batch: int, events: list[Event]) -> None:
    plan = Plan(batch, (Span(test_segments.PLACE, batch, batch + 1),))
    kept.write_plan(plan)
    place = {"topic": "t.info", "partition": 0, "group": "[]"}
    listed = [
        {"metric": metric.name, **place, "offset": number, "pair": pair * 2 + index}
        | {"ending": ending, "time": time}
        for index, metric in enumerate(METRICS)
        for number, (pair, ending, time) in enumerate(events)
    ]
    partials.write(pa.Table.from_pylist(listed, durations.EVENT), kept, "pairs", batch)
    noted: dict[str, object] = dict.fromkeys((*ledger.COUNTS, "oldest_logged", "newest_logged"), 0) | {
        "malformed": {}
    }
    kept.write_counted(plan, noted)


def figures(kept: ledger.Ledger, since: int) -> Figures:
    found = partials.changed(kept, METRICS, since, test_segments.no_sketch)
    made = rig.keyed(rows.of_partials(found, METRICS, test_segments.no_sketch).to_pylist())
    return {key[:3]: round(value * 1_000_000) for key, value in made.items()}


def truth(events: list[Event]) -> Figures:
    found: Figures = defaultdict(int)
    for pair, ending, time in events:
        begun = [start for own, is_end, start in events if own == pair and not is_end and start <= time]
        if not ending or not begun:
            continue
        took, second = time - max(begun), time // 1_000_000
        for name, within, every, width in (
            *(("took", WITHIN, width, width) for width in (MINUTE, HOUR, DAY)),
            ("brief", HOUR, HOUR, 3 * HOUR),
        ):
            if took <= within * 1_000_000:
                for start in range(second // every * every, second - width, -every):
                    found[name, start, width] += took
    return dict(found)


def test_a_key_that_comes_again_leaves_earlier_windows_alone(tmp_path: Path) -> None:
    kept = ledger.Ledger(tmp_path)
    sink: Figures = {}
    sent: list[Event] = []
    for batch in range(1, 25):
        began = (20_000 * DAY + batch * 4 * HOUR) * 1_000_000
        new = [(1, False, began), (1, True, began + 60_000_000)]
        put(kept, batch, new)
        sent += new
        sink |= figures(kept, batch - 1)
    assert sink == truth(sent)


def at(days: float, pair: int, *, ending: bool) -> Event:
    return pair, ending, round((20_000 + days) * DAY) * 1_000_000


RIMS: dict[str, tuple[list[Event], list[Event]]] = {
    "a start that comes late, as far before its end as counts": (
        [at(0.5, 1, ending=True)],
        [at(0.25, 1, ending=False)],
    ),
    "the first end of a day, whose start was long before": (
        [at(0.8, 1, ending=False), at(1.01, 1, ending=True)],
        [at(1.99, 2, ending=False), at(1.999, 2, ending=True)],
    ),
    "the last end of a day, of which a start before that day changes an earlier one": (
        [at(1.1, 1, ending=True), at(1.98, 2, ending=False), at(1.99, 2, ending=True)],
        [at(0.9, 1, ending=False)],
    ),
}


@pytest.mark.parametrize("name", RIMS)
def test_all_of_a_window_is_looked_at(tmp_path: Path, name: str) -> None:
    kept = ledger.Ledger(tmp_path)
    old, new = RIMS[name]
    put(kept, 1, old)
    sink = figures(kept, 0)
    put(kept, 2, new)
    assert sink | figures(kept, 1) == truth([*old, *new])


@pytest.mark.parametrize("part", [partials.PAIRED_ROWS, 40])
@pytest.mark.parametrize("seed", range(4))
def test_batches_in_any_order(tmp_path: Path, seed: int, part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Starts that come late, and much later than their ends, by times that lie upon the bounds as well."""
    monkeypatch.setattr(segments, "MERGE_AFTER_BATCHES", 5)
    monkeypatch.setattr(partials, "PAIRED_ROWS", part)
    chance = random.Random(seed)
    kept = ledger.Ledger(tmp_path)
    # On the hour now and then: a start just within reach, an end in the last moment of a window.
    times = [
        20_000 * DAY + chance.randrange(4 * 24) * HOUR + chance.choice([0, 0, 1, 61]) for _ in range(150)
    ]
    sent = [
        (chance.randrange(3), chance.random() < 0.5, at * 1_000_000 - chance.choice([0, 0, 1]))
        for at in times
    ]
    if seed % 2:
        sent.sort(key=lambda event: event[2])
    sink: Figures = {}
    batch = 0
    while batch * 8 < len(sent):
        new = sent[batch * 8 : batch * 8 + 8]
        batch += 1
        put(kept, batch, new)
        sink |= figures(kept, batch - 1)
        segments.merge(kept, test_segments.no_sketch, 1200.0)
        assert sink == truth(sent[: batch * 8])
