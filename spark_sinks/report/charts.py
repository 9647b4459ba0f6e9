"""The charts of the page, each with a sentence and a table of the same figures."""

from collections.abc import Sequence
from typing import Any

from spark_sinks.report import figures, markup
from spark_sinks.report.counts import Counts, Share
from spark_sinks.report.gathering import Report
from spark_sinks.report.series import Durations, Series

MAX_USER_CHARTS = 12
"""The most charts of the user's own metrics."""
ERRORS = "Errors by publisher"
HEAT = "Event types by hour"
DURATIONS = "How long operations took"
NO_DURATIONS = (
    "The output has no rows of the metric notifications.duration. The default metrics include it; "
    "durations with other names are drawn with the user's own metrics."
)


def all_charts(report: Report) -> dict[str, tuple[figures.Figure | None, str]]:
    """Make every chart and its HTML. A chart that cannot be drawn has a sentence with the reason."""
    counts = report.counts
    made: dict[str, tuple[figures.Figure | None, str]] = {
        "volume": (figures.volume(counts), _volume(counts)),
        "errors": (figures.error_share(counts), _errors(counts))
        if counts.errors
        else _none(ERRORS, "No notification has the priority ERROR or CRITICAL."),
        "heat": (figures.heat(counts), _heat(counts))
        if counts.hours is not None
        else _none(HEAT, f"The windows of {markup.width(counts.width)} are too wide to show hours."),
        "durations": (figures.durations(report.durations), _durations(report.durations))
        if report.durations
        else _none(DURATIONS, NO_DURATIONS),
        "publishers": (figures.publishers(counts), _publishers(counts)),
    }
    for place, each in enumerate(report.own[:MAX_USER_CHARTS]):
        made[f"own-{place}"] = (figures.line(each), _own(f"own-{place}", each))
    if rest := report.own[MAX_USER_CHARTS:]:
        names = ", ".join(markup.name(each.name) for each in rest)
        shown = f"{MAX_USER_CHARTS:,} of {len(report.own):,} further metrics have a chart"
        said = f"{shown}; these have none: {names}. <code>metrics show</code> prints them."
        made["more"] = _none("Metrics without a chart", said)
    return made


def _none(title: str, said: str) -> tuple[None, str]:
    return None, markup.remark(title, said)


def _volume(counts: Counts) -> str:
    own, rest = figures.top_types(counts)
    columns = [counts.volume(names) for names in ([[name] for name in own] + ([rest] if rest else []))]
    rows = [
        [
            markup.moment(start),
            *(f"{column[start]:,}" for column in columns),
            f"{sum(c[start] for c in columns):,}",
        ]
        for start in counts.starts
    ]
    heads = ["From (UTC)", *own, *([figures.OTHER] if rest else []), "all"]
    most = max(counts.starts, key=lambda start: sum(column[start] for column in columns))
    said = (
        f"{markup.counted(counts.total, 'notification')}; each bar is {markup.width(counts.bin)}. The "
        f"highest bar, {sum(column[most] for column in columns):,}, begins at {markup.moment(most)}. The "
        f"most frequent event type is {markup.name(own[0])}. Click a name to hide it."
    )
    return markup.chart("volume", "Volume over time", said, markup.table("Notifications", heads, rows))


def _errors(counts: Counts) -> str:
    names = figures.most_faulty(counts)
    said = f"The share of errors among the notifications of a publisher. {_error_senders(names, counts)}"
    rows = [share(name, counts.publishers[name]) for name in names]
    heads = ("Publisher", "Notifications", "Errors", "Share")
    return markup.chart("errors", ERRORS, said, markup.table("Errors", heads, rows))


def _heat(counts: Counts) -> str:
    names = counts.ranked_types[: figures.MAX_HEAT_ROWS]
    said = (
        f"Notifications of {_of(names, counts.types, 'event type')} by the hour of the day in UTC. Darker "
        "means more, on a logarithmic scale."
    )
    found = figures.by_hour(counts, names)
    rows = [[markup.name(n), *(f"{each:,}" for each in day)] for n, day in zip(names, found, strict=True)]
    heads = ("Event type", *(f"{hour:02}" for hour in range(24)))
    return markup.chart("heat", HEAT, said, markup.table("Notifications", heads, rows))


def _durations(found: Durations) -> str:
    every = sorted({p for each in found.percentiles.values() for p in each})
    rows = [
        [markup.name(name), *(f"{each[p]:,.3f} s" if p in each else "-" for p in every)]
        for name, each in found.percentiles.items()
    ]
    listed = ", ".join(f"p{p:g}" for p in every)
    begin, end = found.window
    said = (
        f"Seconds from start to end, on a logarithmic scale: {listed} of each operation, with an error of at "
        f"most 1 %, in the {markup.width(end - begin)} from {markup.moment(begin)} UTC."
    )
    heads = ("Operation", *(f"p{p:g}" for p in every))
    return markup.chart("durations", DURATIONS, said, markup.table("Durations", heads, rows))


def _publishers(counts: Counts) -> str:
    names = counts.ranked_publishers[: figures.MAX_BARS]
    first = counts.publishers[names[0]]
    said = (
        f"Notifications of {_of(names, counts.publishers, 'publisher')}. {markup.name(names[0])} sent the "
        f"most: {first.count:,}, {100 * first.count / counts.total:.1f} % of all."
    )
    rows = [share(name, counts.publishers[name]) for name in names]
    heads = ("Publisher", "Notifications", "Errors", "Share")
    return markup.chart("publishers", "Busiest publishers", said, markup.table("Publishers", heads, rows))


def _own(key: str, found: Series) -> str:
    names = figures.largest(found)
    unit = f" in {markup.name(found.unit)}" if found.unit else ""
    said = f"Values{unit} in windows of {markup.width(found.width)}: {_of(names, found.lines, 'group')}."
    rows = []
    for name in names:
        values = [found.lines[name][start] for start in sorted(found.lines[name])]
        shown = (len(values), min(values), max(values), values[-1])
        rows.append([markup.name(name), *(f"{value:,.6g}" for value in shown)])
    heads = ("Group", "Windows", "Smallest", "Largest", "Last")
    return markup.chart(key, found.name, said, markup.table(found.name, heads, rows))


def share(name: str, found: Share) -> list[str]:
    """Make the table row of an event type or publisher."""
    return [markup.name(name), f"{found.count:,}", f"{found.errors:,}", markup.part(found.error_share)]


def _of(shown: Sequence[str], every: Any, noun: str) -> str:
    """Say how many of all are shown: ``1 group``, ``all 4 groups`` or ``8 of 20 groups``."""
    if len(shown) < len(every):
        return f"{len(shown):,} of {markup.counted(len(every), noun)}"
    return markup.counted(1, noun) if len(every) == 1 else f"all {markup.counted(len(every), noun)}"


def _error_senders(shown: Sequence[str], counts: Counts) -> str:
    senders = sum(1 for share in counts.publishers.values() if share.errors)
    publishers = markup.counted(len(counts.publishers), "publisher")
    if len(counts.publishers) == 1:
        return "There is one publisher."
    if len(shown) < senders:
        most = f"those with the {len(shown):,} largest shares are shown"
        return f"{senders:,} of {publishers} sent errors; {most}."
    if senders < len(counts.publishers):
        return f"{senders:,} of {publishers} sent errors; the others sent none."
    return f"All {publishers} sent errors."
