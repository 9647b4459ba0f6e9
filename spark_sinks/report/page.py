"""The page: one file that contains everything and loads nothing from a network."""

import base64
import hashlib
import html
import json
import re
import string
from collections.abc import Mapping
from importlib import resources
from typing import Any, NamedTuple

from plotly import offline

from spark_sinks.report import charts, sections
from spark_sinks.report.gathering import Report

# plotly.js adds a style sheet for maps, unless there is an element with its id.
_MAPS = re.compile(r'document\.getElementById\("([0-9a-f]{64})"\)')
_FILES = resources.files("spark_sinks.report")


class _Chart(NamedTuple):
    figure: Mapping[str, Any] | None
    markup: str


def make(report: Report) -> str:
    """Return the page."""
    drawn = {key: _Chart(*made) for key, made in charts.all_charts(report).items()}
    plotly, script = _inline(offline.get_plotlyjs()), _inline(_file("page.js"))
    style = _file("page.css")
    return string.Template(_file("page.html")).substitute(
        policy=_policy([plotly, script], style),
        title=html.escape(f"Notifications, {sections.span(report.counts)}"),
        style=style,
        maps="".join(f'<style id="{each}"></style>' for each in sorted(set(_MAPS.findall(plotly)))),
        span=sections.span(report.counts),
        tiles="".join(sections.tiles(report)),
        warnings="".join(f'<p class="warning">{each}</p>' for each in sections.warnings(report)),
        charts="".join(chart.markup for chart in drawn.values()),
        tables="".join(sections.tables(report)),
        provenance=sections.provenance(report, offline.get_plotlyjs_version()),
        figures=_embedded({key: chart.figure for key, chart in drawn.items() if chart.figure}),
        plotly=plotly,
        script=script,
    )


def _file(name: str) -> str:
    return _FILES.joinpath(name).read_text("utf-8")


def _inline(script: str) -> str:
    """Escape a script so that no string in it ends the script element, or begins a comment."""
    script = script.replace("\r\n", "\n").replace("<!--", r"<\!--")
    return re.sub("<(?=/?script)", r"\\x3c", script, flags=re.IGNORECASE)


def _embedded(found: Mapping[str, Any]) -> str:
    """Return data as JSON without characters that have a meaning in HTML."""
    spelled = json.dumps(found, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return spelled.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")


def _policy(scripts: list[str], style: str) -> str:
    """Return a content security policy that allows the page's own scripts and styles, by their hashes."""
    known = " ".join(map(_sum, scripts))
    # plotly.js adds an empty style sheet and fills it.
    looks = f"{_sum(style)} {_sum('')}"
    return (
        f"default-src 'none'; script-src {known}; style-src {looks}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _sum(found: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(found.encode()).digest()).decode()}'"
