"""The table of the rows, for people."""

from collections.abc import Sequence

from faults.rows import Row

HEADER = (
    f"{'fault':20} {'bus':15} {'times':>5} {'offered':>8} {'acknowl.':>8} {'failed':>6} {'handled':>8} "
    f"{'lost':>5} {'repeated':>8} {'bound':>6} {'reordered':>9} {'wrong':>5} {'stall ms':>8} {'own ms':>7} "
    f"{'p99 ms':>7} {'noise':>6} {'first ms':>8} {'recovery s':>10} {'MB':>4} {'max MB':>6}"
)


def line(row: Row) -> str:
    """Draw a row. ``timings`` explains the columns of times and memory."""
    return (
        f"{row.fault:20} {row.bus:15} {row.injections:5} {row.offered:8,} {row.acknowledged:8,} "
        f"{row.failed:6,} {row.handled:8,} "
        f"{row.lost:5} {row.repeated:8,} {row.repeat_bound:6,} {row.reordered:9} {row.wrong:5} "
        f"{row.stall * 1e3:8.1f} {row.own_stall * 1e3:7.1f} {row.p99 * 1e3:7.2f} {row.noise * 1e3:6.2f} "
        f"{row.first_call * 1e3:8.1f} {row.recovery:10.1f} {row.memory_growth:4.0f} {row.memory_bound:6.0f}"
        f"{'' if not row.broken else '  BROKEN'}"
    )


def violations(rows: Sequence[Row]) -> list[str]:
    """List the broken promises of all rows."""
    return [f"{row.fault} on {row.bus}: {each}" for row in rows for each in row.broken]
