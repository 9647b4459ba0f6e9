"""The sink of the documentation does what a sink must, found the way that others find theirs."""

import datetime
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from stevedore import ExtensionManager

from notifier_kafka.errors import ConfigurationError
from spark_sinks.outputs import rows, sink
from tests.shared.checkout import ROOT
from tests.shared.spark import rig

EXAMPLE = ROOT / "docs" / "examples" / "lines_sink.py"
BEGIN = datetime.datetime(2026, 11, 18, 7, tzinfo=datetime.UTC)


@pytest.fixture
def output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Install the example as a distribution; return an output of its kind."""
    site = tmp_path / "site"
    (site / "lines-1.dist-info").mkdir(parents=True)
    (site / "lines-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: lines\nVersion: 1\n")
    (site / "lines-1.dist-info" / "entry_points.txt").write_text(
        f"[{sink.NAMESPACE}]\nlines = lines_sink:LinesSink\n"
    )
    shutil.copy(EXAMPLE, site)
    monkeypatch.syspath_prepend(str(site))
    # What stevedore found before there was this one.
    monkeypatch.setattr(ExtensionManager, "ENTRY_POINT_CACHE", {})
    return f"lines:{tmp_path}/place"


def made(*found: tuple[dict[str, str | None], float]) -> pa.Table:
    end = BEGIN + datetime.timedelta(minutes=1)
    listed = [("a metric", "B", BEGIN, end, group, value) for group, value in found]
    return pa.Table.from_pylist([dict(zip(rows.ROW.names, each, strict=True)) for each in listed], rows.ROW)


def test_a_batch_that_is_written_again_is_there_once(tmp_path: Path, output: str) -> None:
    lines = sink.load(output, rig.conf())
    assert lines.last("me") == 0
    found = made(({"type": "x,y=1 z\nevil value=0"}, 1.5), ({"none": None}, 2.0))
    lines.write("me", 3, found)
    lines.write("me", 3, found)
    assert sink.load(output, rig.conf()).last("me") == 3
    (file,) = (tmp_path / "place").iterdir()
    time = int(BEGIN.timestamp())
    assert file.read_text().splitlines() == [
        f"a\\ metric,type=x\\,y\\=1\\ z_evil\\ value\\=0,window=60s value=1.5 {time}000000000",
        f"a\\ metric,window=60s value=2.0 {time}000000000",
    ]


def test_a_place_of_another_job_is_refused(output: str) -> None:
    sink.load(output, rig.conf()).write("me", 1, made(({}, 1.0)))
    with pytest.raises(ConfigurationError, match="place is of another job; name another directory"):
        sink.load(output, rig.conf()).last("you")
    with pytest.raises(ConfigurationError, match="names no directory"):
        sink.load("lines:", rig.conf())
