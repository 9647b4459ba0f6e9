"""Runs contestants in turn for several rounds, so that all meet the same state of the machine."""

import gc
import sys
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

Work = Callable[[int], float | None]
"""Does so much work; may return its own measurement of the seconds."""


class Round(NamedTuple):
    """The rate a second, and the CPU time of each in microseconds where it is known.

    CPU time is that of the contestant's process: other load on the machine changes it far less
    than the rate.
    """

    rate: float
    cpu: float = 0.0


Rounds = dict[str, list[Round]]
"""The rounds of each contestant."""


class Contestant(NamedTuple):
    """``work(count)`` does the work; ``prepare`` and ``finish`` are not measured."""

    name: str
    work: Work
    prepare: Callable[[int], object] = lambda _count: None
    finish: Callable[[], object] = lambda: None
    cpu: Callable[[], float] = time.process_time


def compare(contestants: Sequence[Contestant], count: int, rounds: int) -> Rounds:
    """Measure all in turn. Each round starts with another one: the first meets colder caches."""
    found: Rounds = {contestant.name: [] for contestant in contestants}
    for number in range(rounds):
        first = number % len(contestants)
        for contestant in [*contestants[first:], *contestants[:first]]:
            report_progress(f"round {number + 1}/{rounds}: {contestant.name}")
            found[contestant.name].append(_round(contestant, count))
    return found


def report_progress(what: str) -> None:
    """Print what is being measured."""
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
