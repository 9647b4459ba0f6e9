"""A process by its id and its start time, so that no signal reaches another one with the same id."""

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

# Positions in /proc/PID/stat after the name of the program.
_START_TIME = 19
_STATE = 0

# The kernel kills a program when the thread that started it ends, so this one lasts as long as the process.
_starter = concurrent.futures.ThreadPoolExecutor(1, "notifier-kafka-starter")

# -I and -S: without site-packages Python starts faster.
_KILL_WITH_PARENT = (sys.executable, "-I", "-S", kill_with_parent.__file__)


@dataclass(frozen=True)
class Process:
    """``birth`` is the boot and the time that it started."""

    pid: int
    birth: str

    def is_alive(self) -> bool:
        """Tell whether the process still runs."""
        with self._open() as descriptor:
            return descriptor is not None

    def send(self, number: int) -> bool:
        """Send a signal; return whether the process still ran."""
        with self._open() as descriptor:
            if descriptor is None:
                return False
            signal.pidfd_send_signal(descriptor, number)
            return True

    def wait(self, timeout: float) -> bool:
        """Wait for its end; return whether it ended within ``timeout``."""
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
        # A descriptor never changes its process, so the order matters: first open the
        # descriptor, then check which process it is.
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
        # It is not our child when another process started it.
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, os.WNOHANG)


def spawn(command: list[str], output: Path, *, ends_with_parent: bool) -> Process:
    """Start a program in a session of its own; its output goes to the file ``output``.

    With ``ends_with_parent`` the kernel kills it when this process ends, also when that is killed.
    """
    if ends_with_parent:
        return _starter.submit(_spawn, [*_KILL_WITH_PARENT, str(os.getpid()), *command], output).result()
    return _spawn(command, output)


def environment() -> dict[str, str]:
    """Return the environment for Java programs."""
    # With an ASCII locale, Java cannot open a file whose name has other letters.
    return {**os.environ, "LC_ALL": "C.UTF-8"}


def _spawn(command: list[str], output: Path) -> Process:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(output), flags, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    # Not subprocess.Popen, which warns when it is freed while its program runs.
    pid = os.posix_spawn(command[0], command, environment(), file_actions=actions, setsid=True)
    return Process(pid, _birth(pid) or "")


def _birth(pid: int) -> str | None:
    """Return when the process of an id started; None when it has ended."""
    try:
        # The name of the program may contain spaces and brackets.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None
    return None if fields[_STATE] in "ZX" else f"{boot}/{fields[_START_TIME]}"
