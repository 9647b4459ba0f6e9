"""The table: what was measured, beside what, and whether it reaches its target."""

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
_HEADS = (
    f"  {'':38}{'median':>11}{'least':>11}{'most':>11} {'':5}"
    f"{'µs CPU':>8}{'ratio':>8}{'least':>7}{'most':>7}{'CPU':>7}"
)


class Spread(NamedTuple):
    """The median of all rounds, and the extremes."""

    middle: float
    least: float
    most: float


class Target(NamedTuple):
    """What a row must reach: its ratio, or its figure where it has none."""

    sign: str
    bound: float


class Row(NamedTuple):
    """One line. The ratio is to the row or the quantity that ``beside`` names.

    ``cpu`` is in microseconds of the processor for each, and ``by_cpu`` the ratio had each
    side had a processor of its own: like the other ratio, more is better.
    """

    group: str
    name: str
    figure: Spread
    unit: str = "/s"
    beside: str = ""
    ratio: Spread | None = None
    target: Target | None = None
    cpu: Spread | None = None
    by_cpu: Spread | None = None

    @property
    def met(self) -> bool | None:
        """Say whether the median reaches the target; None without one."""
        if self.target is None:
            return None
        return _HOLDS[self.target.sign]((self.ratio or self.figure).middle, self.target.bound)


def spread(found: Sequence[float]) -> Spread:
    """Sum up the rounds."""
    return Spread(statistics.median(found), min(found), max(found))


def alone(group: str, found: Rounds, name: str, target: Target | None = None) -> Row:
    """Make a row of a contestant that is compared with nobody."""
    figure, cpu = spread([each.rate for each in found[name]]), _cpu(found[name])
    return Row(group, name, figure, target=target, cpu=cpu)


def beside(group: str, found: Rounds, name: str, other: str, target: Target | None = None) -> Row:
    """Make a row of a contestant and another; rounds are compared one by one."""
    pairs = list(zip(found[name], found[other], strict=True))
    ratio = spread([ours.rate / bare.rate for ours, bare in pairs])
    row = alone(group, found, name, target)._replace(beside=other, ratio=ratio)
    if row.cpu and _cpu(found[other]):
        row = row._replace(by_cpu=spread([bare.cpu / ours.cpu for ours, bare in pairs]))
    return row


def _cpu(found: Sequence[Round]) -> Spread | None:
    return spread([each.cpu for each in found]) if all(each.cpu for each in found) else None


def growth(group: str, rates: Rounds) -> list[Row]:
    """Make the rows of one cost as it grows, each beside the first."""
    first, *others = rates
    return [alone(group, rates, first), *(beside(group, rates, each, first) for each in others)]


def table(rows: Iterable[Row]) -> str:
    """Draw rows as text."""
    lines = []
    for group, members in groupby(rows, lambda row: row.group):
        lines += ["", group, _HEADS]
        lines += [_line(row) for row in members]
    return "\n".join(lines)


def summary(rows: Sequence[Row]) -> str:
    """Say how many targets are met, and which are not."""
    aimed = [row for row in rows if row.target]
    missed = [f"{row.group}: {row.name}" for row in aimed if not row.met]
    lines = [f"{len(aimed) - len(missed)} of {len(aimed)} targets met"]
    return "\n".join(lines + [f"  missed: {each}" for each in missed])


def head(origin: Mapping[str, Any]) -> list[str]:
    """Say in a few lines what was measured where, with which versions of the clients and of each peer."""
    size, environments = origin["size"], {"here": origin["clients"], **origin.get("peers", {})}
    return [
        f"{origin['date']}, {origin['machine']}, load {origin['load']:.1f}, Python {origin['python']}",
        f"{size['each']:,} notifications a round, {size['rounds']} rounds, {origin['seconds']} s",
        "; ".join(
            f"{name}: {', '.join(' '.join(each) for each in found.items())}"
            for name, found in environments.items()
        ),
    ]


def plain(row: Row) -> dict[str, Any]:
    """Spell a row as JSON has it."""
    nested = {name: value._asdict() for name, value in row._asdict().items() if hasattr(value, "_asdict")}
    return {**row._asdict(), **nested, "met": row.met}


def from_plain(spelled: Mapping[str, Any]) -> Row:
    """Make a row again of what JSON had."""
    kinds = {"figure": Spread, "ratio": Spread, "cpu": Spread, "by_cpu": Spread, "target": Target}
    members = {name: spelled[name] for name in Row._fields}
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
