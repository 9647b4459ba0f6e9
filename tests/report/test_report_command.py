"""``notifier-kafka report``: the figures that it prints, and what it makes no page of."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from oslo_config import cfg

from notifier_kafka.cli import main
from notifier_kafka.cli.exits import Exit
from spark_sinks.outputs import rows, sink
from tests.report import output
from tests.report.output import Told

TOLD = [
    *(Told(minute * 60, "order.paid", "till.1") for minute in range(30)),
    *(Told(5, "order.failed", f"till.{n}", "CRITICAL") for n in (1, 2)),
    Told(90_000, "order.paid", "till.3"),
]


def report(directory: Path, *arguments: str, capsys: pytest.CaptureFixture[str]) -> dict[str, float]:
    file = str(directory / "page.html")
    assert main.main(["report", "--input", str(directory / "rows"), "-o", file, "--json", *arguments]) == 0
    found: dict[str, float] = json.loads(capsys.readouterr().out)
    return found


def test_its_figures_are_sums_of_the_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sums = {"read": 40, "decoded": 33, "duplicate": 5, "late": 1, "malformed": {"not JSON": 2}}
    output.write(tmp_path / "rows", output.counted(TOLD), **sums)
    found = report(tmp_path, capsys=capsys)
    assert found == {
        "total": len(TOLD),
        "peak_rate": max(Counter(one.second // 60 for one in TOLD).values()) / 60,
        "error_share": 2 / len(TOLD),
        "publishers": 3,
        "event_types": 2,
        "late": 1,
        "duplicate": 5,
        "malformed": 2,
    }


def test_no_link_that_was_planted_is_written_through(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output.write(tmp_path / "rows", output.counted(TOLD))
    victim, page = tmp_path / "victim", tmp_path / "page.html"
    victim.write_text("precious")
    (tmp_path / ".page.html.part").symlink_to(victim)
    report(tmp_path, capsys=capsys)
    assert victim.read_text() == "precious"
    assert page.is_file()
    assert not page.is_symlink()


def test_a_window_counts_as_its_last_batch_has_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = [Told(0, "a", "p")] * 3, [Told(0, "a", "p")] * 5
    output.write(tmp_path / "rows", output.counted([*first, Told(60, "a", "p")]), decoded=4, late=1)
    output.write(tmp_path / "rows", output.counted(second, [60]), decoded=2, late=2)
    found = report(tmp_path, capsys=capsys)
    assert (found["total"], found["late"]) == (6, 3)
    assert "behind" not in (tmp_path / "page.html").read_text("utf-8")


def test_it_says_what_it_does_not_know(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output.write(tmp_path / "rows", output.counted(TOLD), decoded=34)
    nowhere = ["--checkpoint-dir", str(tmp_path / "nowhere")]
    assert report(tmp_path, *nowhere, capsys=capsys)["late"] is None
    assert "checkpoint was not found" in (tmp_path / "page.html").read_text("utf-8")
    report(tmp_path, capsys=capsys)
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "has counted 34 notifications and the output holds 33: the output is behind the job" in page


def test_an_output_of_another_format_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "rows"
    sink.load(f"csv:{place}", cfg.ConfigOpts()).write("job", 1, rows.ROW.empty_table())
    assert main.main(["report", "--input", str(place), "-o", str(tmp_path / "page.html")]) == 5
    heard = capsys.readouterr().err
    assert heard == f"notifier-kafka: report of {place}: output {place} holds csv, not parquet\n"


def test_windows_that_overlap_are_not_added_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    group = {"event_type": "a", "publisher": "p", "priority": "INFO"}
    sliding = [output.row("notifications.count", "", s, 300, group, 7.0) for s in (0, 60, 120)]
    output.write(tmp_path / "rows", [*sliding, *output.counted([Told(130, "a", "p")] * 7, [3600])])
    assert report(tmp_path, capsys=capsys)["total"] == 7


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ([], "there is no such directory"),
        ([output.row("mine", "", 0, 60, {}, 1.0)], "no rows of the metric notifications.count"),
        (
            [output.row("notifications.count", "", 0, 60, {"event_type": "a"}, 1.0)],
            "not grouped by event_type, publisher, priority",
        ),
        (
            [
                output.row(
                    "notifications.count",
                    "",
                    s,
                    300,
                    dict.fromkeys(("event_type", "publisher", "priority"), "a"),
                    1.0,
                )
                for s in (0, 60)
            ],
            "has only sliding windows; add a roll-up",
        ),
    ],
)
def test_no_page_is_made_of_other_outputs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], made: list[output.Row], said: str
) -> None:
    if made:
        output.write(tmp_path / "rows", made)
    file = tmp_path / "page.html"
    code = main.main(["report", "--input", f"parquet:{tmp_path}/rows", "-o", str(file)])
    heard = capsys.readouterr()
    assert code == Exit.CONFIGURATION
    assert said in heard.err
    assert f"report of {tmp_path}/rows" in heard.err
    assert len(heard.err.splitlines()) == 1
    assert not file.exists()


def test_a_page_is_there_whole_or_not_at_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output.write(tmp_path / "rows", output.counted(TOLD))
    (tmp_path / "page.html").mkdir()
    code = main.main(["report", "--input", str(tmp_path / "rows"), "-o", str(tmp_path / "page.html")])
    assert code == Exit.CONFIGURATION
    assert "page.html cannot be written: Is a directory" in capsys.readouterr().err
    gone = tmp_path / "gone" / "page.html"
    assert main.main(["report", "--input", str(tmp_path / "rows"), "-o", str(gone)]) == Exit.CONFIGURATION
    assert "cannot be written: No such file" in capsys.readouterr().err


def test_without_the_extra_it_names_it(tmp_path: Path) -> None:
    program = (
        "import sys\nsys.modules['plotly'] = None\n"
        "from notifier_kafka.cli import main\nsys.exit(main.main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "report", "--input", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == Exit.MISSING_EXTRA
    assert "pip install 'notifier-kafka[report,spark]'" in done.stderr


def test_rows_of_a_directory_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["metrics", "show", f"parquet:{tmp_path}/rows"]) == Exit.CONFIGURATION
    heard = capsys.readouterr()
    assert heard.out == ""
    assert heard.err == f"notifier-kafka: output parquet:{tmp_path}/rows: no such directory\n"
