"""A process by its id and its birth, so that a signal never reaches another with a recycled id."""

import concurrent.futures
import contextlib
import os
import select
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from . import kill_with_parent

_START_TIME = 19
_STATE = 0

# A leash ends with the thread that holds it: one that lasts as long as this process.
_holder = concurrent.futures.ThreadPoolExecutor(1, "notifier-kafka-leash")


@dataclass(frozen=True)
class Process:
    pid: int
    birth: str

    def alive(self) -> bool:
        """Tell whether the process still runs."""
        with self._open() as descriptor:
            return descriptor is not None

    def send(self, number: int) -> bool:
        """Send a signal; return whether there was a process to send it to."""
        with self._open() as descriptor:
            if descriptor is None:
                return False
            signal.pidfd_send_signal(descriptor, number)
            return True

    def wait(self, timeout: float) -> bool:
        """Wait for its end; return whether it came within ``timeout``."""
        with self._open() as descriptor:
            if descriptor is None:
                return True
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            ended = bool(poll.poll(timeout * 1000))
        if ended:
            self._reap()
        return ended

    @contextlib.contextmanager
    def _open(self) -> Iterator[int | None]:
        # A descriptor stands for one process for ever, so the order matters: first the
        # descriptor, then the look at whose it is.
        descriptor = None
        with contextlib.suppress(OSError):
            descriptor = os.pidfd_open(self.pid)
        try:
            yield descriptor if descriptor is not None and _birth(self.pid) == self.birth else None
        finally:
            if descriptor is not None:
                os.close(descriptor)
            else:
                self._reap()

    def _reap(self) -> None:
        # Not a child when another process started it.
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, os.WNOHANG)


def spawn(command: list[str], output: Path, *, ends_with_parent: bool) -> Process:
    """Start a program in a session of its own; what it prints goes to ``output``.

    ``ends_with_parent``: it is killed when this process ends, however that happens.
    """
    if ends_with_parent:
        return _holder.submit(
            _spawn, [sys.executable, kill_with_parent.__file__, str(os.getpid()), *command], output
        ).result()
    return _spawn(command, output)


def environment() -> dict[str, str]:
    """What Java programs are started with."""
    # Java can open no file with another letter in its name where the locale has only ASCII.
    return {**os.environ, "LC_ALL": "C.UTF-8"}


def _spawn(command: list[str], output: Path) -> Process:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(output), flags, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    # Not subprocess.Popen, which complains when it is forgotten while its program lives on.
    pid = os.posix_spawn(command[0], command, environment(), file_actions=actions, setsid=True)
    return Process(pid, _birth(pid) or "")


def _birth(pid: int) -> str | None:
    """Say when the process of an id began; None when it ended."""
    try:
        # The name of the program may hold spaces and brackets.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None
    return None if fields[_STATE] in "ZX" else f"{boot}/{fields[_START_TIME]}"
