"""A page of plots: each group of rows as bars with their spread, in one file that loads no other."""

import html
import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from plotly import graph_objects, offline

from benchmarks import rows
from benchmarks.rows import Row

_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>notifier-kafka: measured</title>
<style>body {{ font-family: sans-serif; max-width: 70em; margin: auto }} pre {{ overflow: auto }}</style>
<script>{plotly}</script><h1>notifier-kafka beside its alternatives</h1><p>{origin}</p>
{plots}<h2>The table</h2><pre>{table}</pre></html>
"""
_BAR_PIXELS = 34  # pixels


def render(origin: Mapping[str, Any], found: Sequence[Row]) -> str:
    """Return the page."""
    grouped = [(group, list(members)) for group, members in groupby(found, lambda row: row.group)]
    table = f"{rows.table(found)}\n\n{rows.summary(found)}"
    return _PAGE.format(
        plotly=offline.get_plotlyjs(),
        origin="<br>".join(map(html.escape, rows.describe_origin(origin))),
        plots="".join(_plot(group, members) for group, members in grouped),
        table=html.escape(table),
    )


def render_file(measured: Path) -> str:
    """Return the page for a file that ``--output`` wrote."""
    origin = json.loads(measured.read_text(encoding="utf-8"))
    found = [rows.from_json(each) for each in origin.pop("rows")]
    return render(origin, found)


def _plot(group: str, members: Sequence[Row]) -> str:
    # A contestant has a row for each comparison, but one bar.
    bars = list({row.name: row for row in reversed(members)}.values())
    middles = [row.figure.middle for row in bars]
    spread = {
        "type": "data",
        "array": [row.figure.most - row.figure.middle for row in bars],
        "arrayminus": [row.figure.middle - row.figure.least for row in bars],
    }
    drawn = graph_objects.Bar(x=middles, y=[row.name for row in bars], orientation="h", error_x=spread)
    figure = graph_objects.Figure(drawn)
    figure.update_layout(title=group, xaxis_title=members[0].unit, height=160 + _BAR_PIXELS * len(bars))
    figure.update_yaxes(automargin=True)
    # Microseconds would be invisible beside seconds on a linear axis.
    if members[0].unit == "µs":
        figure.update_xaxes(type="log")
    made: str = figure.to_html(full_html=False, include_plotlyjs=False)
    return made
