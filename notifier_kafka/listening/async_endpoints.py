"""Endpoints whose methods are coroutines."""

import asyncio
import threading
from collections.abc import Awaitable
from typing import Any

GOODBYE = 5.0  # seconds for what endpoints left running on the loop


class EventLoop:
    """Runs coroutines of endpoints on one thread, for the threads that wait for them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop
        self._end: asyncio.Event

    def finish(self, work: Awaitable[Any]) -> Any:
        """Do what a coroutine is to do, and return or raise what it does."""
        self._begin()
        future = asyncio.run_coroutine_threadsafe(_settled(work), self._loop)
        answer, error = future.result()
        if error is not None:
            raise error
        return answer

    def close(self) -> None:
        """End the loop and what runs on it. It begins anew when it is needed again."""
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            self._loop.call_soon_threadsafe(self._end.set)
            thread.join(GOODBYE)

    def _begin(self) -> None:
        with self._lock:
            if self._thread is None:
                ready = threading.Event()
                self._thread = threading.Thread(
                    target=lambda: asyncio.run(self._serve(ready)), name="listener-coroutines", daemon=True
                )
                self._thread.start()
                ready.wait()

    async def _serve(self, ready: threading.Event) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        ready.set()
        await self._end.wait()


async def _settled(work: Awaitable[Any]) -> tuple[Any, BaseException | None]:
    # sys.exit() in a task would end the loop, and whoever waits for the task would wait for ever.
    try:
        return await work, None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - raised again where it is waited for
        return None, error
