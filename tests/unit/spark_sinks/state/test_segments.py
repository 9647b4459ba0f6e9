"""Files that pile up are made few: in the ledger by itself, in an output by a command."""

import json
import subprocess
import sys
import threading
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from notifier_kafka.cli import main
from notifier_kafka.contract.driver import Partition, Span
from notifier_kafka.errors import ConfigurationError
from spark_sinks.engine import durations, rollup
from spark_sinks.language.metrics import Duration, Metric, Window
from spark_sinks.outputs import compaction, files, rows, sink
from spark_sinks.state import ledger, partials, segments
from spark_sinks.state.plan import Plan
from tests.shared.checkout import ROOT
from tests.shared.spark import recount, rig
from tests.unit.spark_sinks.outputs import test_sinks

METRICS = (
    Metric("count", "count", "n", windows=(Window.tumbling(60), Window.tumbling(86_400))),
    Metric("took", "max", "s", value=Duration(), windows=(Window.tumbling(60),)),
)
PLACE = Partition("t.info", 0)


def no_sketch(_rows: pa.Table) -> pa.Table:
    raise AssertionError


def put(kept: ledger.Ledger, batch: int, second: int = 0) -> None:
    """Leave behind what a batch of a minute does: two counts, the end of one thing, the start of the next."""
    plan = Plan(batch, (Span(PLACE, batch, batch + 1),))
    kept.write_plan(plan)
    second = second or batch * 60
    counts = [
        {"metric": "count", "start": second // width * width, "width": width, "group": "[]", "count": 1}
        | dict.fromkeys(("sum", "low", "high"), Decimal(1))
        for width in (60, 86_400)
    ]
    partials.write(pa.Table.from_pylist(counts, rollup.PARTIAL), kept, "partials", batch)
    event = {"metric": "took", "topic": "t.info", "partition": 0, "offset": batch, "group": "[]"}
    pairs = [
        event | {"pair": batch - 1, "ending": True, "time": second * 1_000_000},
        event | {"pair": batch, "ending": False, "time": second * 1_000_000 + batch},
    ]
    partials.write(pa.Table.from_pylist(pairs, durations.EVENT), kept, "pairs", batch)
    partials.write(pa.table({"id": [batch], "logged": [second * 1_000_000]}), kept, "seen", batch)
    noted = dict.fromkeys(ledger.COUNTS, batch) | {"malformed": {"short": 1}}
    kept.write_counted(plan, {**noted, "oldest_logged": float(second), "newest_logged": float(second)})


def figures(kept: ledger.Ledger, since: int = 0) -> dict[recount.Key, float]:
    found = partials.changed(kept, METRICS, since, no_sketch)
    return rig.keyed(rows.of_partials(found, METRICS, no_sketch).to_pylist())


def seen(kept: ledger.Ledger) -> list[int]:
    paths = [partials.path(kept, "seen", piece) for piece in partials.pieces(kept, "seen")]
    return sorted(partials.load("seen", paths)["id"].to_pylist())


def count(directory: Path) -> int:
    return sum(path.is_file() for path in directory.rglob("*"))


def merge(kept: ledger.Ledger) -> None:
    segments.merge(kept, no_sketch, 1200.0)


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "MERGE_AFTER_BATCHES", 3)


def test_the_files_of_a_long_life_are_few_and_say_the_same(tmp_path: Path) -> None:
    merged, plain = ledger.Ledger(tmp_path / "merged"), ledger.Ledger(tmp_path / "plain")
    for batch in range(1, 60):
        # Now and then something from long ago comes late.
        for kept in (merged, plain):
            put(kept, batch, 60 if batch % 25 == 0 else 0)
        merge(merged)
        if batch in (17, 34, 52):
            # A sink that is just behind gets what it needs, one that was away for long all of it.
            assert figures(merged, batch - 1) == figures(plain, batch - 1)
            assert figures(plain, batch - 10).items() <= figures(merged, batch - 10).items()
    assert figures(merged) == figures(plain)
    assert seen(merged) == seen(plain) == list(range(1, 60))
    assert (merged.last(), merged.counted()) == (plain.last(), plain.counted())
    assert (
        merged.totals()
        == plain.totals()
        == dict.fromkeys(ledger.COUNTS, 59 * 30) | {"malformed": {"short": 59}}
    )
    assert count(plain.directory) == 59 * 5
    assert count(merged.directory) < 3 * 5 + 10
    for piece in merged.merged().files["seen"]:
        assert piece.low is not None
        assert piece.high is not None
        assert piece.high - piece.low <= 1200, "ids are looked at no longer than they count"


def test_files_do_not_grow_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "MAX_FILE_ROWS", 10)
    kept = ledger.Ledger(tmp_path)
    for batch in range(1, 40):
        put(kept, batch)
        merge(kept)
    listed = kept.merged().files["partials"]
    assert all(piece.rows <= 10 for piece in listed)
    assert 3 < len(listed) < 12
    minutes = {key: value for key, value in figures(kept).items() if key[:3:2] == ("count", 60)}
    assert len(minutes) == 39


def killed(what: str, origin: Path, copies: Path) -> int:
    program = [
        sys.executable,
        str(ROOT / "tests/shared/spark/steps_child.py"),
        what,
        str(origin),
        str(copies),
    ]
    done = subprocess.run(program, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.long
def test_a_ledger_killed_at_every_step_of_merging(tmp_path: Path) -> None:
    kept = ledger.Ledger(tmp_path / "origin")
    for batch in range(1, 4):
        put(kept, batch)
    # There are merged files already, and they are merged with what is new.
    merge(kept)
    for batch in range(4, 8):
        put(kept, batch)
    truth, latest = figures(kept), figures(kept, 6)
    steps = killed("ledger", kept.directory, tmp_path / "copies")
    assert steps > 3 + 1 + 3 * 4 + 2 * 3
    ends = set()
    for step in range(1, steps + 1):
        copy = ledger.Ledger(tmp_path / "copies" / str(step))
        assert figures(copy) == truth
        assert figures(copy, 6).items() >= latest.items()
        assert (seen(copy), copy.last(), copy.counted()) == (list(range(1, 8)), 7, kept.counted())
        assert copy.totals() == kept.totals()
        for batch in range(8, 11):
            put(copy, batch)
        merge(copy)
        assert copy.merged().until == 10
        ends.add(len(list(copy.directory.rglob("*.*"))))
    # Two files of each kind when the first merging went through: what was left over is gone.
    assert max(ends) <= 3 * 2 + 3


def written(directory: Path, batches: int) -> Any:
    one = sink.load(f"parquet:{directory}", rig.conf())
    for batch in range(1, batches + 1):
        one.write("me", batch, test_sinks.made(("m", batch, {}, batch), ("day", 0, {"n": None}, batch)))
    return one


def shown(directory: Path) -> set[tuple[Any, ...]]:
    return {(row["metric"], row["window_start"], row["value"]) for row in files.read(directory)}


def test_an_output_killed_at_every_step_of_compaction(tmp_path: Path) -> None:
    written(tmp_path / "origin", 6)
    # What a job had begun when it was killed is not in the way, and not taken for done.
    (tmp_path / "origin" / "batch=00000007").mkdir()
    (tmp_path / "origin" / "batch=00000007" / ".part-0.parquet.part").touch()
    truth = shown(tmp_path / "origin")
    assert len(truth) == 7
    steps = killed("output", tmp_path / "origin", tmp_path / "copies")
    assert steps > 3 * 5
    for step in range(1, steps + 1):
        copy = tmp_path / "copies" / str(step)
        assert shown(copy) == truth
        assert compaction.compact(copy)[1] == 1
        assert compaction.compact(copy) == (1, 1)
        assert sorted(path.name for path in copy.glob("batch=*")) == ["batch=00000006", "batch=00000007"]
        assert shown(copy) == truth
        assert sink.load(f"parquet:{copy}", rig.conf()).last("me") == 6


def test_compaction_writes_through_no_link_that_was_planted(tmp_path: Path) -> None:
    victim, place = tmp_path / "victim", tmp_path / "rows"
    written(place, 2)
    victim.write_text("precious")
    (place / "batch=00000002" / ".part-0.parquet.united").symlink_to(victim)
    assert compaction.compact(place) == (2, 1)
    assert victim.read_text() == "precious"
    (place / "_batches" / "lock").unlink()
    (place / "_batches" / "lock").symlink_to(victim)
    with pytest.raises(ConfigurationError, match="rows: its lock cannot be opened"):
        compaction.compact(place)
    assert victim.read_text() == "precious"


def test_a_job_and_readers_beside_a_compaction(tmp_path: Path) -> None:
    one = written(tmp_path, 1)
    ended = threading.Event()
    wrong: list[object] = []

    def read() -> None:
        least = 0
        while not ended.is_set():
            found = {row["window_start"] for row in files.read(tmp_path) if row["metric"] == "m"}
            if len(found) < least:
                wrong.append((least, found))
            least = len(found)

    def compact() -> None:
        while not ended.is_set():
            compaction.compact(tmp_path, 30)

    threads = [threading.Thread(target=each) for each in (read, compact)]
    for thread in threads:
        thread.start()
    try:
        for batch in range(2, 100):
            assert one.last("me") == batch - 1
            one.write("me", batch, test_sinks.made(("m", batch, {}, batch), ("day", 0, {}, batch)))
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    assert wrong == []
    compaction.compact(tmp_path, 30)
    assert len(shown(tmp_path)) == 100
    assert len(list(tmp_path.glob("batch=*"))) < 12


def test_what_is_no_parquet_output_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(ConfigurationError, match="is not a parquet output"):
        compaction.compact(tmp_path)
    sink.load(f"csv:{tmp_path}/csv", rig.conf()).write("me", 1, test_sinks.made(("m", 0, {}, 1.0)))
    with pytest.raises(ConfigurationError, match="is not a parquet output"):
        compaction.compact(tmp_path / "csv")


def test_the_commands_over_an_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "out", 3)
    output = f"parquet:{tmp_path}/out"
    (tmp_path / "nk.conf").write_text(f"[spark_sinks]\noutput = console:\noutput = {output}\n")

    def said(*arguments: str) -> tuple[int, str, str]:
        code = main.main(["--config-file", "nk.conf", "metrics", *arguments])
        return code, *capsys.readouterr()

    for before in (3, 1):
        code, shown, error = said("compact", "--json")
        assert (code, error) == (0, "")
        assert json.loads(shown) == [{"output": output, "files_before": before, "files_after": 1}]
    code, shown, _ = said("show", "--metric", "m", "--chart", "-f", "json")
    (line,) = json.loads(shown)
    assert (code, line["course"], line["lowest"], line["highest"]) == (0, "▃▆█", 1.0, 3.0)
    assert "▃▆█" in said("show", "--chart")[1]
    assert len(json.loads(said("show", "-f", "json")[1])) == 4
    code, _, error = said("compact", "csv:x")
    assert (code, error) == (
        2,
        "notifier-kafka: metrics compact: name outputs such as parquet:/var/lib/metrics\n",
    )
