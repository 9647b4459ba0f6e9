"""The table: what was measured, its ratio to an alternative, and whether it reaches its target."""

import operator
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from benchmarks.measure import Round, Rounds

_HOLDS: dict[str, Callable[[float, float], bool]] = {
    "≥": operator.ge,
    ">": operator.gt,
    "≤": operator.le,
    "<": operator.lt,
}
_HEADER = (
    f"  {'':38}{'median':>11}{'least':>11}{'most':>11} {'':5}"
    f"{'µs CPU':>8}{'ratio':>8}{'least':>7}{'most':>7}{'CPU':>7}"
)


class Spread(NamedTuple):
    """The median of all rounds, and the extremes."""

    middle: float
    least: float
    most: float


class Goal(NamedTuple):
    """The target of a row: for its ratio, or for its figure where it has none."""

    sign: str
    bound: float


class Row(NamedTuple):
    """One line. The ratio is to the row or the quantity that ``beside`` names.

    ``cpu`` is the CPU time of each in microseconds, and ``by_cpu`` the ratio by CPU time. In both
    ratios more is better.
    """

    group: str
    name: str
    figure: Spread
    unit: str = "/s"
    beside: str = ""
    ratio: Spread | None = None
    target: Goal | None = None
    cpu: Spread | None = None
    by_cpu: Spread | None = None

    @property
    def met(self) -> bool | None:
        """Tell whether the median reaches the target; None without one."""
        if self.target is None:
            return None
        return _HOLDS[self.target.sign]((self.ratio or self.figure).middle, self.target.bound)


def spread(found: Sequence[float]) -> Spread:
    """Return median, least and most."""
    return Spread(statistics.median(found), min(found), max(found))


def make_row(group: str, found: Rounds, name: str, target: Goal | None = None) -> Row:
    """Make the row of a contestant without a comparison."""
    figure, cpu = spread([each.rate for each in found[name]]), _cpu(found[name])
    return Row(group, name, figure, target=target, cpu=cpu)


def make_ratio_row(group: str, found: Rounds, name: str, other: str, target: Goal | None = None) -> Row:
    """Make the row of a contestant beside another; the ratio is taken within each round."""
    pairs = list(zip(found[name], found[other], strict=True))
    ratio = spread([ours.rate / bare.rate for ours, bare in pairs])
    row = make_row(group, found, name, target)._replace(beside=other, ratio=ratio)
    if row.cpu and _cpu(found[other]):
        row = row._replace(by_cpu=spread([bare.cpu / ours.cpu for ours, bare in pairs]))
    return row


def _cpu(found: Sequence[Round]) -> Spread | None:
    return spread([each.cpu for each in found]) if all(each.cpu for each in found) else None


def make_scaling_rows(group: str, rates: Rounds) -> list[Row]:
    """Make the rows of growing sizes, each beside the first."""
    first, *others = rates
    return [make_row(group, rates, first), *(make_ratio_row(group, rates, each, first) for each in others)]


def table(rows: Iterable[Row]) -> str:
    """Draw rows as text."""
    lines = []
    for group, members in groupby(rows, lambda row: row.group):
        lines += ["", group, _HEADER]
        lines += [_line(row) for row in members]
    return "\n".join(lines)


def summary(rows: Sequence[Row]) -> str:
    """List the targets: how many are met, and which are missed."""
    aimed = [row for row in rows if row.target]
    missed = [f"{row.group}: {row.name}" for row in aimed if not row.met]
    lines = [f"{len(aimed) - len(missed)} of {len(aimed)} targets met"]
    return "\n".join(lines + [f"  missed: {each}" for each in missed])


def describe_origin(origin: Mapping[str, Any]) -> list[str]:
    """Describe date, machine, size and versions in a few lines."""
    size, environments = origin["size"], {"here": origin["clients"], **origin.get("peers", {})}
    return [
        f"{origin['date']}, {origin['machine']}, load {origin['load']:.1f}, Python {origin['python']}",
        f"{size['each']:,} notifications a round, {size['rounds']} rounds, {origin['seconds']} s",
        "; ".join(
            f"{name}: {', '.join(' '.join(each) for each in found.items())}"
            for name, found in environments.items()
        ),
    ]


def to_json(row: Row) -> dict[str, Any]:
    """Turn a row into plain values for JSON."""
    nested = {name: value._asdict() for name, value in row._asdict().items() if hasattr(value, "_asdict")}
    return {**row._asdict(), **nested, "met": row.met}


def from_json(stored: Mapping[str, Any]) -> Row:
    """Make a row from the plain values of JSON."""
    kinds = {"figure": Spread, "ratio": Spread, "cpu": Spread, "by_cpu": Spread, "target": Goal}
    members = {name: stored[name] for name in Row._fields}
    return Row(**{n: kinds[n](**v) if n in kinds and v is not None else v for n, v in members.items()})


def _line(row: Row) -> str:
    places = 0 if row.figure.middle >= 100 else 1 if row.figure.middle >= 10 else 2
    line = f"  {row.name:38}" + "".join(f"{value:11,.{places}f}" for value in row.figure)
    line += f" {row.unit:5}{row.cpu.middle:8.1f}" if row.cpu else f" {row.unit:5}{'':8}"
    if row.ratio:
        line += f" {row.ratio.middle:7.2f}{row.ratio.least:7.2f}{row.ratio.most:7.2f}"
        line += f"{row.by_cpu.middle:7.2f}" if row.by_cpu else f"{'':7}"
    if row.beside:
        line += f" of {row.beside}"
    if row.target:
        line += f"  [{row.target.sign} {row.target.bound:,g}: {'met' if row.met else 'MISSED'}]"
    return line
