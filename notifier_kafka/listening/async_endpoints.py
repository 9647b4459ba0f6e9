"""Runs endpoints whose methods are coroutines."""

import asyncio
import threading
from collections.abc import Awaitable
from typing import Any

from notifier_kafka.contract import threads

CLOSE_TIMEOUT_SECONDS = 5.0


class EventLoop:
    """Runs coroutines on one thread, for the threads that wait for them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop
        self._closing: asyncio.Event

    def run(self, coroutine: Awaitable[Any]) -> Any:
        """Run a coroutine to its end; return what it returns, raise what it raises."""
        self._start()
        future = asyncio.run_coroutine_threadsafe(_outcome(coroutine), self._loop)
        answer, error = future.result()
        if error is not None:
            raise error
        return answer

    def close(self) -> None:
        """End the loop and its tasks. ``run`` starts it again."""
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            self._loop.call_soon_threadsafe(self._closing.set)
            thread.join(CLOSE_TIMEOUT_SECONDS)

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                ready = threading.Event()
                thread = threading.Thread(
                    target=lambda: asyncio.run(self._serve(ready)), name="listener-coroutines", daemon=True
                )
                threads.start(thread, "run coroutines of endpoints")
                self._thread = thread
                ready.wait()

    async def _serve(self, ready: threading.Event) -> None:
        self._loop, self._closing = asyncio.get_running_loop(), asyncio.Event()
        ready.set()
        await self._closing.wait()


async def _outcome(coroutine: Awaitable[Any]) -> tuple[Any, BaseException | None]:
    # A SystemExit in a task would end the loop, and the thread that waits for the task would wait for ever.
    try:
        return await coroutine, None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - raised again in the thread that waits
        return None, error
