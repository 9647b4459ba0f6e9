"""Runs contestants in turn, several rounds, and compares their medians.

One figure alone says more about the machine's other load than about the code, so each
is also given as a ratio to a bare loop that did the same work in the same run.
"""

import gc
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

Work = Callable[[int], None]


class Contestant(NamedTuple):
    """``work(count)`` does the work; ``prepare`` and ``finish`` are not measured."""

    name: str
    work: Work
    prepare: Callable[[int], None] = lambda _count: None
    finish: Callable[[], None] = lambda: None


class Result(NamedTuple):
    name: str
    rate: float
    slowest: float
    fastest: float
    ratio: float


def compare(contestants: Sequence[Contestant], count: int, rounds: int) -> list[Result]:
    """Measure all, interleaved; ratios are to the last contestant, the bare loop."""
    rates: dict[str, list[float]] = {contestant.name: [] for contestant in contestants}
    for number in range(rounds):
        for contestant in contestants:
            print(f"  round {number + 1}/{rounds}: {contestant.name}", file=sys.stderr)
            rates[contestant.name].append(_rate(contestant, count))
    bare = rates[contestants[-1].name]
    return [
        Result(
            name,
            statistics.median(found),
            min(found),
            max(found),
            # Rounds are compared one by one: both sides of a round met the same machine.
            statistics.median(one / other for one, other in zip(found, bare, strict=True)),
        )
        for name, found in rates.items()
    ]


def _rate(contestant: Contestant, count: int) -> float:
    contestant.prepare(count)
    gc.collect()
    begin = time.perf_counter()
    contestant.work(count)
    seconds = time.perf_counter() - begin
    contestant.finish()
    return count / seconds


def table(title: str, results: Sequence[Result]) -> str:
    """Draw results as text."""
    bare = results[-1].name
    lines = [title, f"  {'':34}{'per second':>12}{'slowest':>12}{'fastest':>12}   ratio to {bare}"]
    lines += [
        f"  {r.name:34}{r.rate:12,.0f}{r.slowest:12,.0f}{r.fastest:12,.0f}{r.ratio:8.2f}" for r in results
    ]
    return "\n".join(lines)
