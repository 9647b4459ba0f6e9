"""Backoff: pauses between retries that double up to a limit."""


class Backoff:
    """Pauses in seconds: the first is ``first``, each next one twice as long, up to ``longest``."""

    def __init__(self, first: float, longest: float) -> None:
        self._first = first
        self._longest = longest
        self._next = first

    def pause(self) -> float:
        """Return how long to wait now."""
        now = self._next
        self._next = min(now * 2, self._longest)
        return now

    def reset(self) -> None:
        """Begin with the first pause again. Call it after a success."""
        self._next = self._first
