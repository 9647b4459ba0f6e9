"""Runs contestants in turn, several rounds: both sides of a round meet the same machine."""

import gc
import sys
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

Work = Callable[[int], float | None]
"""Does so much work; returns the seconds it took where it knows better than its caller."""


class Round(NamedTuple):
    """How much was done in a second, and what each cost in microseconds of the processor, where it is known.

    The processor's time is that of the contestant's own process: with others on the machine
    it varies far less than the rate.
    """

    rate: float
    cpu: float = 0.0


Rounds = dict[str, list[Round]]
"""What each contestant did."""


class Contestant(NamedTuple):
    """``work(count)`` does the work; ``prepare`` and ``finish`` are not measured."""

    name: str
    work: Work
    prepare: Callable[[int], object] = lambda _count: None
    finish: Callable[[], object] = lambda: None
    cpu: Callable[[], float] = time.process_time


def compare(contestants: Sequence[Contestant], count: int, rounds: int) -> Rounds:
    """Measure all, interleaved, each round in another order: who comes first meets a colder machine."""
    found: Rounds = {contestant.name: [] for contestant in contestants}
    for number in range(rounds):
        first = number % len(contestants)
        for contestant in [*contestants[first:], *contestants[:first]]:
            say(f"round {number + 1}/{rounds}: {contestant.name}")
            found[contestant.name].append(_round(contestant, count))
    return found


def say(what: str) -> None:
    """Say what is under way, to whoever waits."""
    print(f"  {what}", file=sys.stderr, flush=True)


def _round(contestant: Contestant, count: int) -> Round:
    contestant.prepare(count)
    try:
        gc.collect()
        used, begin = contestant.cpu(), time.perf_counter()
        seconds = contestant.work(count)
        if seconds is None:
            seconds = time.perf_counter() - begin
        used = contestant.cpu() - used
    finally:
        contestant.finish()
    return Round(count / seconds, used / count * 1e6)
