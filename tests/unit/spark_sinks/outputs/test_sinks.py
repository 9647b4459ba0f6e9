"""Sinks by themselves: what they refuse, and that a batch written twice is there once."""

import csv
import datetime
import json
import re
import sqlite3
from pathlib import Path

import pyarrow as pa
import pytest

from notifier_kafka.cli import main
from notifier_kafka.cli.exits import Exit
from notifier_kafka.errors import ConfigurationError, DriverNotFound
from notifier_kafka.jvm import jars
from spark_sinks.job import settings, wiring
from spark_sinks.outputs import reader, rows, sink
from tests.shared.spark import rig

BEGIN = datetime.datetime(2026, 11, 18, 7, tzinfo=datetime.UTC)
HOUR = datetime.timedelta(hours=1)
GROUP = {"type": 'a"b\n,\\', "none": None}
SPELLED = json.dumps(GROUP, sort_keys=True)
KINDS = ["parquet", "csv", "json", "jdbc:sqlite", "openmetrics"]


def made(*found: tuple[str, int, dict[str, str | None], float]) -> pa.Table:
    listed = [(m, "B", BEGIN + hour * HOUR, BEGIN + (hour + 1) * HOUR, g, v) for m, hour, g, v in found]
    return pa.Table.from_pylist([dict(zip(rows.ROW.names, each, strict=True)) for each in listed], rows.ROW)


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_that_is_written_again(tmp_path: Path, kind: str) -> None:
    output = f"{kind}:{tmp_path}/place"
    one = sink.load(output, rig.conf())
    assert one.last("me") == 0
    first = made(("m", 0, GROUP, 1.0), ("m", 0, {}, 2.0), ("m", 1, GROUP, 3.0))
    one.write("me", 1, first)
    one.write("me", 1, first)
    # Of window 0 one row is gone: what comes replaces all that there was.
    sink.load(output, rig.conf()).write("me", 2, made(("m", 0, GROUP, 5.0)))
    assert sink.load(output, rig.conf()).last("me") == 2
    with pytest.raises(ConfigurationError, match="place belongs to another job; name another"):
        sink.load(output, rig.conf()).last("you")
    if kind == "openmetrics":
        with pytest.raises(ConfigurationError, match=r"csv:DIR, json:DIR, jdbc:sqlite:FILE .* can be read"):
            reader.read(output, "*", None, None)
    else:
        assert [row[1:] for row in reader.read(output, "m*", None, None)] == [
            ("2026-11-18T07:00:00Z", "2026-11-18T08:00:00Z", SPELLED, 5.0, "B"),
            ("2026-11-18T08:00:00Z", "2026-11-18T09:00:00Z", SPELLED, 3.0, "B"),
        ]
        assert reader.read(output, "n", None, None) == []
        assert len(reader.read(output, "*", (BEGIN + HOUR).timestamp(), None)) == 1
        assert len(reader.read(output, "*", None, (BEGIN + HOUR).timestamp())) == 1


def test_openmetrics_show_the_newest_window(tmp_path: Path) -> None:
    file = tmp_path / "metrics.prom"
    one = sink.load(f"openmetrics:{file}", rig.conf())
    one.write("me", 1, made(("my.size", 1, GROUP, 3.0), ("my.size", 0, GROUP, 1.0)))
    one.write("me", 2, made(("my.size", 0, GROUP, 9.0)))
    expected = (
        "# TYPE my_size gauge\n# HELP my_size my.size, unit B\n"
        'my_size{none="",type="a\\"b\\n,\\\\",window="3600s"} 3.0\n# EOF\n'
    )
    assert file.read_text() == expected
    file.unlink()
    assert one.last("me") == 2
    assert file.read_text() == expected


def test_openmetrics_have_each_series_once(tmp_path: Path) -> None:
    """A scraper refuses a file with a series that stands there twice; which groups come, senders say."""
    file = tmp_path / "metrics.prom"
    one = sink.load(f"openmetrics:{file}", rig.conf())
    texts = [None, "", '"', '""', '"""', "é"]
    one.write("me", 1, made(*(("m", 0, {"p": text}, 1.0) for text in texts)))
    series = [line.rpartition(" ")[0] for line in file.read_text("utf-8").splitlines() if line[0] != "#"]
    assert len(set(series)) == len(texts)
    assert {'m{p="",window="3600s"}', 'm{p="é",window="3600s"}'} < set(series)
    # A metric by another name since, and the same one for the scraper.
    one.write("me", 2, made(("a.b", 0, {}, 1.0)))
    one.write("me", 3, made(("a_b", 0, {}, 2.0)))
    assert [line for line in file.read_text("utf-8").splitlines() if line[:1] == "a"] == [
        'a_b{window="3600s"} 2.0'
    ]


@pytest.mark.parametrize(
    ("listed", "said"),
    [
        (
            "[{name: a.b, kind: count}, {name: a_b, kind: count}]",
            "metric 'a_b' becomes a_b there, as does 'a.b'",
        ),
        (
            "[{name: m, kind: count, group_by: [{window: host}]}]",
            "metric m: group 'window' becomes window there, as does the width of the window",
        ),
        (
            "[{name: m, kind: count, group_by: [{x-y: host, x_y: service}]}]",
            "metric m: group 'x_y' becomes x_y there, as does 'x-y'",
        ),
        (
            "[{name: m, kind: count, group_by: [{1a: host, _1a: service}]}]",
            "metric m: group '_1a' becomes _1a there, as does '1a'",
        ),
    ],
)
def test_openmetrics_refuse_metrics_that_become_one(tmp_path: Path, listed: str, said: str) -> None:
    """Before anything is made and Spark starts."""
    (tmp_path / "m.yaml").write_text(f"metrics: {listed}")
    output, checkpoint = f"openmetrics:{tmp_path}/m.prom", f"{tmp_path}/checkpoint"
    chosen = settings.read(
        rig.conf(), metrics_file=f"{tmp_path}/m.yaml", output=[output], checkpoint_dir=checkpoint
    )
    with (
        pytest.raises(ConfigurationError, match=re.escape(f"{tmp_path}/m.prom: {said}; rename one")),
        wiring.open_job(rig.Rig(tmp_path).driver, chosen, jars.fetch),
    ):
        pass
    assert not (tmp_path / "checkpoint").exists()


PARTS = {
    "parquet": ["batch=00000001/.part-0.parquet.part", "_batches/.00000001.part"],
    "csv": ["batch=00000001/.part-0.csv.part"],
    "json": ["batch=00000001/.part-0.json.part"],
    "openmetrics": [".place.part", ".place.state.part"],
}


@pytest.mark.parametrize(("kind", "part"), [(kind, part) for kind, parts in PARTS.items() for part in parts])
def test_no_link_that_was_planted_is_written_through(tmp_path: Path, kind: str, part: str) -> None:
    victim, place = tmp_path / "victim", tmp_path / "shared" / "place"
    victim.write_text("precious")
    planted = place.parent / part if kind == "openmetrics" else place / part
    planted.parent.mkdir(parents=True)
    planted.symlink_to(victim)
    sink.load(f"{kind}:{place}", rig.conf()).write("me", 1, made(("m", 0, GROUP, 1.0)))
    assert victim.read_text() == "precious"
    assert sink.load(f"{kind}:{place}", rig.conf()).last("me") == 1
    assert [path for path in place.parent.rglob("*") if path.is_symlink()] == []


def test_csv_has_no_formula_and_comes_back_as_it_was(tmp_path: Path) -> None:
    texts = ["=cmd|'/c calc'!A0", "'=1+1", "@SUM(1)", "\t=1", "'quoted'", "-", "B"]
    listed = [made((name, 0, {name: name}, -1.5)) for name in texts]
    units = [each.set_column(1, "unit", pa.array([name])) for each, name in zip(listed, texts, strict=True)]
    one = sink.load(f"csv:{tmp_path}", rig.conf())
    one.write("me", 1, pa.concat_tables(units))
    written = list(csv.DictReader(next(tmp_path.glob("batch=*/*.csv")).read_text().splitlines()))
    assert [row["metric"] for row in written][:4] == [f"'{name}" for name in texts[:4]]
    formulas = ("=", "@", "\t")
    assert [cell for row in written for cell in row.values() if cell.startswith(formulas)] == []
    assert {row["value"] for row in written} == {"-1.5"}
    group = {name: json.dumps({name: name}) for name in texts}
    found = reader.read(f"csv:{tmp_path}", "*", None, None)
    assert {(row[0], row[3], row[5]) for row in found} == {(name, group[name], name) for name in texts}


@pytest.mark.parametrize("name", ["what?.db", "a#1.db", "100%41.db", "a?mode=rwc.db", "ä b.db"])
def test_a_database_of_any_name_is_shown(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for place in (f"jdbc:sqlite:{tmp_path}/{name}", f"jdbc:sqlite:{name}"):
        sink.load(place, rig.conf()).last("me")
        sink.load(place, rig.conf()).write("me", 1, made(("m", 0, GROUP, 1.0)))
        assert [row[0] for row in reader.read(place, "*", None, None)] == ["m"]
    with pytest.raises(ConfigurationError, match="unable to open"):
        reader.read(f"jdbc:sqlite:not {name}", "*", None, None)
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("more", [["-f", "table"], ["-f", "value"], ["-f", "csv"], ["--chart"]])
def test_what_is_shown_cannot_steer_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str]
) -> None:
    """Whoever wrote it: the file of metrics is not looked at."""
    name = "\x1b]0;owned\a\x1b[2J\nforged"
    sink.load(f"json:{tmp_path}", rig.conf()).write("me", 1, made((name, 0, {name: name}, 1.0)))
    assert main.main(["metrics", "show", f"json:{tmp_path}", *more]) == Exit.OK
    out = capsys.readouterr().out
    assert r"\x1b]0;owned" in out
    assert [line for line in out.splitlines() if not line.isprintable()] == []


def test_the_console_shows_each_batch(capsys: pytest.CaptureFixture[str]) -> None:
    one = sink.load("console:", rig.conf())
    assert one.last("me") is None
    one.write("me", 1, made(("m", 0, GROUP, 1.0)))
    assert json.loads(capsys.readouterr().out) == {
        "metric": "m",
        "unit": "B",
        "window_start": "2026-11-18T07:00:00Z",
        "window_end": "2026-11-18T08:00:00Z",
        "group": GROUP,
        "value": 1.0,
    }


def test_places_of_others(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    for kind in ("parquet", "csv", "json"):
        with pytest.raises(
            ConfigurationError, match=r"is not empty and not an output of this program: it holds thesis\.tex"
        ):
            sink.load(f"{kind}:{tmp_path}", rig.conf()).last("me")
    with pytest.raises(ConfigurationError, match="was not written by this program"):
        sink.load(f"openmetrics:{tmp_path}/thesis.tex", rig.conf()).last("me")
    with sqlite3.connect(tmp_path / "other.db") as connection:
        connection.execute("CREATE TABLE metric_rows (a, b)")
    connection.close()
    with pytest.raises(ConfigurationError, match="the table metric_rows has the columns a, b, not metric"):
        sink.load(f"jdbc:sqlite:{tmp_path}/other.db", rig.conf()).last("me")


def test_a_directory_has_one_format(tmp_path: Path) -> None:
    """What is marked done there is done in that one alone."""
    sink.load(f"csv:{tmp_path}", rig.conf()).write("me", 1, made(("m", 0, GROUP, 1.0)))
    with pytest.raises(ConfigurationError, match=r"holds csv, not parquet; name another directory"):
        sink.load(f"parquet:{tmp_path}", rig.conf()).last("me")
    outputs = [f"csv:{tmp_path}/a", f"json:{tmp_path}/b", f"parquet:{tmp_path}/a/"]
    with pytest.raises(
        ConfigurationError, match=r"outputs csv:.*/a and parquet:.*/a/ are the same directory"
    ):
        settings.read(rig.conf(), output=outputs)
    assert settings.read(rig.conf(), output=outputs[:2]).outputs == tuple(outputs[:2])


@pytest.mark.parametrize(
    "output", ["parquet", "parquet:", "openmetrics:", "jdbc:", "jdbc:sqlite:", "jdbc:oracle:x"]
)
def test_outputs_that_name_nothing(output: str) -> None:
    with pytest.raises(ConfigurationError, match="output"):
        sink.load(output, rig.conf())


def test_an_unknown_kind_is_told_from_the_known() -> None:
    with pytest.raises(DriverNotFound, match="did you mean parquet"):
        sink.load("parqet:x", rig.conf())
