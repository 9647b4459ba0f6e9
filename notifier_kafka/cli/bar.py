"""A bar on the terminal, for what takes a while."""

import sys
import time

from notifier_kafka.cli import text

WIDTH = 30
_BEAT = 0.1


class Bar:
    """How far a step is. One line that is written over on a terminal; elsewhere only what came of it."""

    def __init__(self, label: str, total: int | None = None) -> None:
        self._label, self._total = label, total
        self._began, self._shown = time.monotonic(), 0.0

    def show(self, done: int, words: str = "") -> None:
        """Draw it anew, but no oftener than an eye can follow."""
        now = time.monotonic()
        if sys.stderr.isatty() and now - self._shown > _BEAT:
            self._shown = now
            self._write(f"{self._line(done, words)} {now - self._began:.0f} s")

    def end(self, words: str) -> None:
        """Say what came of it, and how long it took."""
        said = f"{words} in {time.monotonic() - self._began:.1f} s"
        if sys.stderr.isatty():
            self._write(f"{self._line(self._total or 0, '')} {said}\n")
        else:
            text.note(f"{self._label}: {said}")

    def _line(self, done: int, words: str) -> str:
        if self._total is None:
            return f"{self._label:<10} {words}".rstrip()
        full = WIDTH * min(done, self._total) // max(self._total, 1)
        return f"{self._label:<10} {'█' * full}{'░' * (WIDTH - full)} {words}".rstrip()

    def _write(self, line: str) -> None:
        sys.stderr.write(f"\r\x1b[K{line}")
        sys.stderr.flush()
