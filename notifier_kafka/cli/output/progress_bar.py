"""A bar on the terminal, for what takes a while."""

import os
import sys
import time

from notifier_kafka.cli.output import text

WIDTH = 30
NARROW = 80
_BEAT = 0.1


def drawn() -> bool:
    """Say whether a person looks on, at a terminal that can write over a line."""
    return sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def line(label: str, done: float, total: int | None, words: str) -> str:
    """Spell how far something is; without a total only what is said of it."""
    if total is None:
        return f"{label:<10} {words}".rstrip()
    full = int(WIDTH * min(done, total) / max(total, 1))
    return f"{label:<10} {'█' * full}{'░' * (WIDTH - full)} {words}".rstrip()


class Bar:
    """How far a step is. One line that is written over on a terminal; elsewhere only what came of it.

    ``total`` may be set later, and may grow.
    """

    def __init__(self, label: str, total: int | None = None) -> None:
        self._label, self.total = label, total
        self._began, self._shown = time.monotonic(), 0.0

    def show(self, done: float, words: str = "") -> None:
        """Draw it anew, but no oftener than an eye can follow."""
        now = time.monotonic()
        if drawn() and now - self._shown > _BEAT:
            self._shown = now
            self._write(self._fitted(done, f"{words} {now - self._began:.0f} s".lstrip()))

    def end(self, words: str) -> None:
        """Say what came of it, and how long it took."""
        said = f"{words} in {time.monotonic() - self._began:.1f} s"
        if drawn():
            self._write(f"{self._fitted(self.total or 0, said)}\n")
        else:
            text.note(f"{self._label}: {said}")

    def erase(self) -> None:
        """Take it away, where what came of it is told elsewhere."""
        if drawn():
            self._write("")

    def _fitted(self, done: float, words: str) -> str:
        # What is wider than the terminal would go on in a line of its own, which nothing takes away.
        # One that does not know its width says 0.
        width = os.get_terminal_size(sys.stderr.fileno()).columns or NARROW
        return line(self._label, done, self.total, words)[: width - 1]

    def _write(self, line: str) -> None:
        sys.stderr.write(f"\r\x1b[K{line}")
        sys.stderr.flush()
