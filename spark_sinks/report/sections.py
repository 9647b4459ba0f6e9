"""The sections of the page: tiles, warnings, tables and the origin of the figures."""

import platform
import shlex
import time
from collections.abc import Iterator
from importlib import metadata

from notifier_kafka import version
from spark_sinks.report import charts, markup
from spark_sinks.report.counts import Counts, Share
from spark_sinks.report.gathering import Report
from spark_sinks.report.origin import Origin


def summary(report: Report) -> dict[str, float | int | None]:
    """Return the figures of the tiles by name; None is unknown."""
    counts, origin = report.counts, report.origin
    return {
        "total": counts.total,
        "peak_rate": counts.peak[1] / counts.width,
        "error_share": counts.errors / counts.total,
        "publishers": len(counts.publishers),
        "event_types": len(counts.types),
        "late": origin.late if origin else None,
        "duplicate": origin.duplicate if origin else None,
        "malformed": origin.malformed.total() if origin else None,
    }


def tiles(report: Report) -> Iterator[str]:
    """Make the tiles."""
    counts, found = report.counts, summary(report)
    start, most = counts.peak
    yield markup.tile("total", "Notifications", markup.whole(counts.total))
    yield markup.tile(
        "peak-rate",
        "Peak rate",
        f"{most / counts.width:,.2f}/s",
        f"{most:,} in the {markup.width(counts.width)} from {markup.moment(start)}",
    )
    yield markup.tile(
        "error-share",
        "Errors",
        f"{100 * counts.errors / counts.total:.2f} %",
        markup.counted(counts.errors, "notification"),
    )
    yield markup.tile("publishers", "Publishers", markup.whole(found["publishers"]))
    yield markup.tile("event-types", "Event types", markup.whole(found["event_types"]))
    yield markup.tile("late", "Late", markup.whole(found["late"]), "counted in their own windows")
    yield markup.tile("duplicate", "Duplicates", markup.whole(found["duplicate"]), "not counted again")
    yield markup.tile("malformed", "Malformed", markup.whole(found["malformed"]), "set aside")


def warnings(report: Report) -> Iterator[str]:
    """Make the warnings about the figures."""
    origin, total = report.origin, report.counts.total
    if origin is None:
        yield (
            "Late, duplicate and malformed records are not known: the job's checkpoint was not found. "
            "Name it with <code>--checkpoint-dir</code>."
        )
    elif origin.counted != total:
        yield (
            f"The job has counted {markup.counted(origin.counted, 'notification')} and the output holds "
            f"{total:,}: the output is behind the job, or belongs to another job. Run the job again, or name "
            "its <code>--checkpoint-dir</code>."
        )


def tables(report: Report) -> Iterator[str]:
    """Make the tables. Their sums are the figures of the tiles."""
    counts = report.counts
    total = Share(counts.total, counts.errors, set(counts.publishers))
    yield markup.table(
        "By event type",
        ("Event type", "Notifications", "Errors", "Share", "Publishers"),
        [
            [*charts.share(n, counts.types[n]), markup.whole(len(counts.types[n].others))]
            for n in counts.ranked_types
        ],
        ["All", *charts.share("", total)[1:], markup.whole(len(counts.publishers))],
    )
    if report.origin:
        yield "<h3>Records by outcome</h3>"
        yield _counters(report.origin)


def _counters(origin: Origin) -> str:
    rows = [
        ["Counted", markup.whole(origin.counted)],
        ["Duplicate: its message id was counted before", markup.whole(origin.duplicate)],
        *(
            [f"Malformed: {markup.words(reason)}", markup.whole(count)]
            for reason, count in origin.malformed.most_common()
        ),
    ]
    added = origin.counted + origin.duplicate + origin.malformed.total()
    last = [f"Read ({markup.whole(origin.read)})" if added != origin.read else "Read", markup.whole(added)]
    note = (
        f"Of the counted records, {origin.late:,} were late, and {origin.misdated:,} had no valid time of "
        "their own and were counted at the time of the record."
    )
    return markup.table("Records", ("Outcome", "Records"), rows, last) + f"<p>{note}</p>"


def provenance(report: Report, plotly_js: str) -> str:
    """Describe the source of the figures, and how and with which versions the page was made."""
    facts: list[tuple[str, str]] = [
        ("Created", f"{markup.moment(int(time.time()))} UTC"),
        ("Command", f"<code>{markup.words(shlex.join(report.command))}</code>"),
        ("Source", markup.name(report.source)),
        ("Windows", f"{', '.join(map(markup.width, report.widths))}; {span(report.counts)}"),
    ]
    if report.origin:
        facts += _read(report.origin)
    spark = _version("pyspark")
    facts.append(
        (
            "Versions",
            f"notifier-kafka {version.__version__}, PySpark {spark}, plotly.js {markup.words(plotly_js)}, "
            f"Python {platform.python_version()}",
        )
    )
    return "<dl>" + "".join(f"<dt>{name}</dt><dd>{fact}</dd>" for name, fact in facts) + "</dl>"


def _read(origin: Origin) -> Iterator[tuple[str, str]]:
    yield "Records from", markup.name(origin.input)
    batches = f"{origin.batches:,} batch{'es' * (origin.batches != 1)}"
    yield "Read", f"{markup.counted(origin.read, 'record')} in {batches}"
    listed = [
        f"{markup.name(topic)}[{number}] {', '.join(f'{start:,} to {stop:,}' for start, stop in ranges)}"
        for (topic, number), ranges in sorted(origin.offsets.items())
    ]
    yield "Offsets", "<br>".join(listed)


def span(counts: Counts) -> str:
    """Return the time range of the page."""
    return f"{markup.moment(counts.first)} to {markup.moment(counts.end)} UTC"


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "not installed"
