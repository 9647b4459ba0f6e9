"""Runs contestants in turn, several rounds: both sides of a round meet the same machine."""

import gc
import sys
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

Work = Callable[[int], float | None]
"""Does so much work; returns the seconds it took where it knows better than its caller."""

Rates = dict[str, list[float]]
"""How much each contestant did in a second, in every round."""


class Contestant(NamedTuple):
    """``work(count)`` does the work; ``prepare`` and ``finish`` are not measured."""

    name: str
    work: Work
    prepare: Callable[[int], object] = lambda _count: None
    finish: Callable[[], object] = lambda: None


def compare(contestants: Sequence[Contestant], count: int, rounds: int) -> Rates:
    """Measure all, interleaved, each round in another order: who comes first meets a colder machine."""
    rates: Rates = {contestant.name: [] for contestant in contestants}
    for number in range(rounds):
        first = number % len(contestants)
        for contestant in [*contestants[first:], *contestants[:first]]:
            say(f"round {number + 1}/{rounds}: {contestant.name}")
            rates[contestant.name].append(_rate(contestant, count))
    return rates


def say(what: str) -> None:
    """Say what is under way, to whoever waits."""
    print(f"  {what}", file=sys.stderr, flush=True)


def _rate(contestant: Contestant, count: int) -> float:
    contestant.prepare(count)
    try:
        gc.collect()
        begin = time.perf_counter()
        seconds = contestant.work(count)
        if seconds is None:
            seconds = time.perf_counter() - begin
    finally:
        contestant.finish()
    return count / seconds
