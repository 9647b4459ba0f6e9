"""A progress bar on the terminal, for what takes a while."""

import os
import sys
import time

from notifier_kafka.cli.output import text

BAR_CHARACTERS = 30
DEFAULT_COLUMNS = 80
_REDRAW_SECONDS = 0.1


def is_drawn() -> bool:
    """Tell whether stderr is a terminal that can overwrite a line."""
    return sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def format_line(label: str, done: float, total: int | None, words: str) -> str:
    """Format a bar with its words; without a total only the words."""
    if total is None:
        return f"{label:<10} {words}".rstrip()
    full = int(BAR_CHARACTERS * min(done, total) / max(total, 1))
    return f"{label:<10} {'█' * full}{'░' * (BAR_CHARACTERS - full)} {words}".rstrip()


class Bar:
    """The progress of a step: on a terminal one line that is overwritten, elsewhere only the result.

    ``total`` may be set later, and may grow.
    """

    def __init__(self, label: str, total: int | None = None) -> None:
        self._label, self.total = label, total
        self._started, self._redrawn = time.monotonic(), 0.0

    def show(self, done: float, words: str = "") -> None:
        """Redraw the bar, unless it was redrawn a moment ago."""
        now = time.monotonic()
        if is_drawn() and now - self._redrawn > _REDRAW_SECONDS:
            self._redrawn = now
            self._write(self._cut_line(done, f"{words} {now - self._started:.0f} s".lstrip()))

    def end(self, words: str) -> None:
        """Write the result, and how long it took."""
        result = f"{words} in {time.monotonic() - self._started:.1f} s"
        if is_drawn():
            self._write(f"{self._cut_line(self.total or 0, result)}\n")
        else:
            text.note(f"{self._label}: {result}")

    def erase(self) -> None:
        """Remove the bar, where the result is printed elsewhere."""
        if is_drawn():
            self._write("")

    def _cut_line(self, done: float, words: str) -> str:
        # A longer line would wrap, and the next redraw would not erase its second half.
        # A terminal that does not know its width reports 0.
        width = os.get_terminal_size(sys.stderr.fileno()).columns or DEFAULT_COLUMNS
        return format_line(self._label, done, self.total, words)[: width - 1]

    def _write(self, line: str) -> None:
        sys.stderr.write(f"\r\x1b[K{line}")
        sys.stderr.flush()
