"""Figures for plotly.js, as plain objects. Names are escaped, because plotly.js interprets tags in text."""

import datetime
import html
import math
from collections.abc import Mapping, Sequence
from typing import Any

from notifier_kafka.cli.output import text
from spark_sinks.report.counts import Counts
from spark_sinks.report.series import Durations, Series

MAX_COLOURED_TYPES = 8
"""The most event types with their own colours."""
MAX_BARS = 15
"""The most bars of a chart of publishers."""
MAX_HEAT_ROWS = 25
"""The most event types of the heat map."""
MAX_LINES = 8
"""The most lines of a chart of a user's metric."""
MAX_LABEL_CHARACTERS = 34
"""The most characters of a name beside a chart. The tables have the whole name."""

FEW_NOTIFICATIONS = 5
OTHER = "other"
# Colours that colour-blind people can distinguish (Okabe and Ito), and a grey.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#7b6ca8", "#b8a800")
GREY, ERROR, PLAIN = "#9aa5b1", "#c0392b", "#0072b2"
_ROW_PIXELS = 26

Figure = dict[str, Any]


def label(name: str) -> str:
    """Escape a name for plotly, and shorten it."""
    shown = text.visible(name)
    return html.escape(
        shown if len(shown) <= MAX_LABEL_CHARACTERS else f"{shown[: MAX_LABEL_CHARACTERS - 1]}…", quote=False
    )


def top_types(counts: Counts) -> tuple[list[str], list[str]]:
    """Return the event types with their own colours, and the others."""
    names = counts.ranked_types
    return names[:MAX_COLOURED_TYPES], names[MAX_COLOURED_TYPES:]


def volume(counts: Counts) -> Figure:
    """Draw the number of notifications over time, stacked by event type."""
    own, rest = top_types(counts)
    groups = [([name], label(name), colour) for name, colour in zip(own, COLOURS, strict=False)]
    if rest:
        groups.append((rest, f"{OTHER} ({len(rest)})", GREY))
    traces = []
    for names, shown, colour in groups:
        found = counts.volume(names)
        traces.append(
            {
                "type": "bar",
                "name": shown,
                "x": [_moment(start) for start in counts.starts],
                "y": [found[start] for start in counts.starts],
                # A bar covers its window. Plotly would centre it on the start.
                "offset": 0,
                "width": counts.bin * 1000,
                "marker": {"color": colour, "line": {"width": 0}},
                "hovertemplate": "%{x|%d %b %H:%M}<br>%{fullData.name}: %{y:,}<extra></extra>",
            }
        )
    axis = _numbers()
    if max(counts.volume(counts.types).values()) <= FEW_NOTIFICATIONS:
        # No ticks at fractions of a notification.
        axis["dtick"] = 1
    layout = {"barmode": "stack", "height": 400, "xaxis": _time(), "yaxis": axis, "bargap": 0}
    return _figure(traces, layout, legend=True)


def error_share(counts: Counts) -> Figure:
    """Draw the publishers with the largest shares of errors."""
    names = most_faulty(counts)
    return _bars(
        names, [100 * counts.publishers[name].error_share for name in names], ERROR, "%{x:.2f} %", "%"
    )


def most_faulty(counts: Counts) -> list[str]:
    """List the publishers with the largest shares of errors. Those without errors are left out."""
    found = counts.publishers
    faulty = [name for name in found if found[name].errors]
    return sorted(faulty, key=lambda name: (-found[name].error_share, -found[name].count, name))[:MAX_BARS]


def publishers(counts: Counts) -> Figure:
    """Draw the publishers with the most notifications."""
    names = counts.ranked_publishers[:MAX_BARS]
    return _bars(names, [counts.publishers[name].count for name in names], PLAIN, "%{x:,}", "")


def heat(counts: Counts) -> Figure:
    """Draw a heat map of event types by the hour of the day."""
    names = counts.ranked_types[:MAX_HEAT_ROWS]
    found = by_hour(counts, names)
    trace = {
        "type": "heatmap",
        "x": list(range(24)),
        "y": list(range(len(names))),
        # On a linear scale, one frequent type would leave all others white.
        "z": [[math.log10(1 + count) for count in row] for row in found],
        "customdata": found,
        "colorscale": [[0, "#f4f7fb"], [0.5, "#6baed6"], [1, "#08306b"]],
        "showscale": False,
        "xgap": 1,
        "ygap": 1,
        "hovertemplate": "%{y}<br>%{x}:00 to %{x}:59: %{customdata:,}<extra></extra>",
    }
    hours = list(range(0, 24, 3))
    axis = {
        "tickvals": hours,
        "ticktext": [f"{hour:02}" for hour in hours],
        "tickangle": 0,
        "showgrid": False,
        "zeroline": False,
        "fixedrange": True,
    }
    return _figure([trace], {"height": 70 + _ROW_PIXELS * len(names), "xaxis": axis, "yaxis": _named(names)})


def by_hour(counts: Counts, names: Sequence[str]) -> list[list[int]]:
    """Return the number of notifications of each event type in each hour of the day."""
    hours = counts.hours or {}
    return [[hours[name][hour] for hour in range(24)] for name in names]


def durations(found: Durations) -> Figure:
    """Draw the percentiles of the durations of operations."""
    names = list(found.percentiles)
    places = list(range(len(names)))
    spans = [sorted(found.percentiles[name].values()) for name in names]
    between: Figure = {
        "type": "scatter",
        "mode": "lines",
        "x": [value for span in spans for value in (span[0], span[-1], None)],
        "y": [value for place in places for value in (place, place, None)],
        "line": {"color": "#c9d2dc", "width": 5},
        "hoverinfo": "skip",
        "showlegend": False,
    }
    every = sorted({p for each in found.percentiles.values() for p in each})
    dots = [
        {
            "type": "scatter",
            "mode": "markers",
            "name": f"p{percentile:g}",
            "x": [found.percentiles[name].get(percentile) for name in names],
            "y": places,
            "marker": {"size": 11, "color": COLOURS[(2, 1, 5)[min(place, 2)]]},
            "hovertemplate": "%{y}<br>%{fullData.name}: %{x:.3~g} s<extra></extra>",
        }
        for place, percentile in enumerate(every)
    ]
    seconds = {"type": "log", "nticks": 8, "tickfont": {"size": 10}, "fixedrange": True, "tickformat": "~g"}
    layout = {"height": 130 + _ROW_PIXELS * len(names), "xaxis": seconds, "yaxis": _named(names)}
    return _figure([between, *dots], layout, legend=True)


def line(found: Series) -> Figure:
    """Draw a metric of the user's over time."""
    traces = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": label(name),
            "x": [_moment(start) for start in sorted(found.lines[name])],
            "y": [found.lines[name][start] for start in sorted(found.lines[name])],
            "line": {"color": colour, "width": 2},
            "marker": {"size": 4},
            "hovertemplate": "%{x|%d %b %H:%M}<br>%{fullData.name}: %{y:,.6~g}<extra></extra>",
        }
        for name, colour in zip(largest(found), COLOURS, strict=False)
    ]
    axis, starts = _time(), {start for each in found.lines.values() for start in each}
    if len(starts) == 1:
        # For a single point plotly would make an axis of milliseconds.
        axis = axis | {"range": [_moment(min(starts) + side * found.width) for side in (-1, 1)]}
    return _figure(traces, {"height": 320, "xaxis": axis, "yaxis": _numbers()}, legend=True)


def largest(found: Series) -> list[str]:
    """List the groups with the largest values that get a line."""
    lines = found.lines
    return sorted(lines, key=lambda name: (-max(map(abs, lines[name].values())), name))[:MAX_LINES]


def _bars(names: Sequence[str], values: Sequence[float], colour: str, spelled: str, suffix: str) -> Figure:
    trace = {
        "type": "bar",
        "orientation": "h",
        "x": values,
        "y": list(range(len(names))),
        "marker": {"color": colour},
        "texttemplate": spelled,
        "textposition": "auto",
        "hovertemplate": f"%{{y}}: {spelled}<extra></extra>",
    }
    axis = {"fixedrange": True, "rangemode": "tozero", "ticksuffix": suffix, "nticks": 6}
    return _figure([trace], {"height": 60 + _ROW_PIXELS * len(names), "xaxis": axis, "yaxis": _named(names)})


def _named(names: Sequence[str]) -> Figure:
    """Label the rows of a chart. Plotly gets numbers: it would read some names as dates."""
    return {
        "tickvals": list(range(len(names))),
        "ticktext": [label(name) for name in names],
        "range": [len(names) - 0.5, -0.5],
        "fixedrange": True,
        "showgrid": False,
        "zeroline": False,
        "ticks": "outside",
        "tickcolor": "rgba(0,0,0,0)",
        "automargin": True,
    }


def _time() -> Figure:
    return {"type": "date", "showgrid": False}


def _numbers() -> Figure:
    return {
        "rangemode": "tozero",
        "fixedrange": True,
        "separatethousands": True,
        "nticks": 6,
        "automargin": True,
    }


def _moment(seconds: float) -> str:
    """Format seconds since the epoch in UTC for an axis."""
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%d %H:%M:%S")


def _figure(traces: Sequence[Mapping[str, Any]], layout: Figure, *, legend: bool = False) -> Figure:
    shared = {
        "showlegend": legend,
        "legend": {
            "orientation": "h",
            "traceorder": "normal",
            "y": 1.02,
            "yanchor": "bottom",
            "x": 0,
            "xanchor": "left",
        },
        "font": {"family": "system-ui, sans-serif", "size": 13, "color": "#25303b"},
        "margin": {"l": 12, "r": 12, "t": 12, "b": 44},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "hoverlabel": {"align": "left"},
    }
    return {"data": list(traces), "layout": {**shared, **layout}}
