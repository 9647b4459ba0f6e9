"""Lines of bars for a terminal."""

import pytest

from spark_sinks.cli import sparklines


@pytest.mark.parametrize(
    ("points", "course"),
    [
        ([(0, 1.0)], "█"),
        ([(0, 0.0)], "▁"),
        ([(0, 0.0), (60, 7.0), (120, 14.0)], "▁▅█"),
        ([(0, 7.0), (180, 7.0)], "█  █"),
        ([(0, -1.0), (60, 0.0), (120, 1.0)], "▁▅█"),
        ([(60 * n, float(n % 2)) for n in range(96)], "█" * 48),
    ],
)
def test_a_course(points: list[tuple[int, float]], course: str) -> None:
    assert sparklines.course(points, 60) == course


def test_a_line_for_each_metric_group_and_width() -> None:
    times = [f"2026-11-18T07:0{minute}:00Z" for minute in range(4)]
    rows = [("m", times[n], times[n + 1], "{}", float(n), "B") for n in range(3)]
    rows.append(("m", times[0], "2026-11-19T07:00:00Z", "{}", 9.0, "B"))
    rows.append(("m", times[2], times[3], '{"a": null}', 5.0, "B"))
    assert list(sparklines.lines_of(rows)) == [
        ("m", '{"a": null}', "B", "60s", times[2], times[3], 5.0, 5.0, "█"),
        ("m", "{}", "B", "60s", times[0], times[3], 0.0, 2.0, "▁▅█"),
        ("m", "{}", "B", "86400s", times[0], "2026-11-19T07:00:00Z", 9.0, 9.0, "█"),
    ]
