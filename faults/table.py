"""The table of the rows, for people."""

from collections.abc import Sequence

from faults.rows import Row

HEAD = (
    f"{'fault':20} {'bus':15} {'times':>5} {'offered':>8} {'acknowl.':>8} {'failed':>6} {'handled':>8} "
    f"{'lost':>5} {'twice':>6} {'bound':>6} {'reord.':>6} {'wrong':>5} {'stall ms':>8} {'ours ms':>8} "
    f"{'p99 ms':>7} {'noise':>6} {'first ms':>8} {'again s':>7} {'MB':>4} {'of':>4}"
)


def line(row: Row) -> str:
    """Draw a row. What the columns of times and memory mean is said in ``timings``."""
    return (
        f"{row.fault:20} {row.bus:15} {row.times:5} {row.offered:8,} {row.acknowledged:8,} {row.failed:6,} "
        f"{row.handled:8,} {row.lost:5} {row.duplicated:6,} {row.bound:6,} {row.reordered:6} {row.wrong:5} "
        f"{row.stall * 1e3:8.1f} {row.ours * 1e3:8.1f} {row.p99 * 1e3:7.2f} {row.noise * 1e3:6.2f} "
        f"{row.first * 1e3:8.1f} {row.recovery:7.1f} {row.growth:4.0f} {row.bounded:4.0f}"
        f"{'' if not row.broken else '  BROKEN'}"
    )


def complaints(rows: Sequence[Row]) -> list[str]:
    """Say of each row that broke a promise which."""
    return [f"{row.fault} on {row.bus}: {each}" for row in rows for each in row.broken]
