"""The directory of a spool: which files there are, and whose.

Each process writes a file of its own. Beside it lies an owner file, locked for as long as
its process lives: who can lock it may take the file over. The lock goes with the process,
however it ends, and a number is never taken for a live process that has it by chance.

Where others may write into the directory, what they put there is not sent with our login:
files are taken over from processes of the same user alone.
"""

import contextlib
import errno
import fcntl
import logging
import os
import pathlib
import tempfile
import time
from collections.abc import Iterator
from typing import NamedTuple

from notifier_kafka.errors import ConfigurationError, TransportUnavailable

LOGGER = logging.getLogger(__name__)

OWNER = ".owner"
UNUSABLE = ".unusable"
TAKEN_OVER = 0.0  # the time of an owner file that is no longer its maker's
PATIENCE = 0.03
LOG = ".db"
# What the embedded log makes beside its file.
_BESIDE = ("", "-wal", "-shm", "-lock")
_told: set[pathlib.Path] = set()


class Owned(NamedTuple):
    """A spool file that is ours: nobody else reads or writes it while ``lock`` is open."""

    path: pathlib.Path
    lock: int

    def release(self) -> None:
        """Leave the file to whoever takes it next."""
        os.close(self.lock)

    def remove(self) -> None:
        """Delete the file; the owner file last, so that what is left always has one."""
        for suffix in _BESIDE:
            pathlib.Path(f"{self.path}{suffix}").unlink(missing_ok=True)
        self.path.with_suffix(OWNER).unlink(missing_ok=True)
        self.release()

    def set_aside(self) -> None:
        """Let nobody take the file again."""
        owner = self.path.with_suffix(OWNER)
        with contextlib.suppress(OSError):
            owner.rename(owner.with_suffix(UNUSABLE))
        self.release()


class Seen(NamedTuple):
    """A spool file as others see it; ``size`` is what it takes on the disk."""

    path: pathlib.Path
    pid: int
    alive: bool
    size: int


def named(name: str) -> pathlib.Path:
    """Return the directory that the option names, wherever the process goes later."""
    return pathlib.Path(name).expanduser().absolute()


def prepare(directory: pathlib.Path) -> None:
    """Make the directory. Raises ``ConfigurationError`` when nothing can be written there."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        # By no name that others could have taken for a link to what is not theirs to write.
        with tempfile.TemporaryFile(dir=directory, buffering=0) as probe:
            probe.write(b"probe")
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            advice = "make room on its disk"
        else:
            advice = "check its owner and mode, or name another directory"
        raise ConfigurationError(
            f"[notifications] spool_dir = {directory}: nothing can be written ({error.strerror}); {advice}"
        ) from None


def create(directory: pathlib.Path) -> Owned:
    """Take a new file. Names are in the order of their making, within the clock's truth."""
    try:
        while True:
            path = directory / f"{time.time_ns():020d}-{os.getpid()}{LOG}"
            with contextlib.suppress(FileExistsError):
                lock = os.open(path.with_suffix(OWNER), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
                if _locked(lock, path):
                    return Owned(path, lock)
    except OSError as error:
        raise TransportUnavailable(f"spool {directory}: no file can be made ({error.strerror})") from None


def adopt(directory: pathlib.Path) -> tuple[list[Owned], set[pathlib.Path]]:
    """Take over this user's files whose processes are gone; name those that others have taken over.

    Both oldest first. One process at a time is here, so that none sees half of it.
    """
    mine: list[Owned] = []
    others: set[pathlib.Path] = set()
    with _alone(directory):
        for owner in sorted(directory.glob(f"*{OWNER}")):
            path = owner.with_suffix(LOG)
            with contextlib.suppress(OSError):
                if not _is_ours(path):
                    _tell(directory)
                    continue
                lock = os.open(owner, os.O_RDWR | os.O_NOFOLLOW)
                taken_over = os.fstat(lock).st_mtime == TAKEN_OVER
                if _locked(lock, path):
                    # Not a byte in the file, for which a full disk would have no room.
                    os.utime(lock, (TAKEN_OVER, TAKEN_OVER))
                    mine.append(Owned(path, lock))
                elif taken_over:
                    others.add(path)
    return mine, others


def is_there(path: pathlib.Path) -> bool:
    """Tell whether a spool file is still to be sent."""
    return path.with_suffix(OWNER).exists()


@contextlib.contextmanager
def _alone(directory: pathlib.Path) -> Iterator[None]:
    """Wait until nobody else is here; for a short time only, should one have stopped in here."""
    try:
        lock = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        yield
        return
    try:
        deadline = time.monotonic() + PATIENCE
        while not _lock(lock) and time.monotonic() < deadline:
            time.sleep(0.001)
        yield
    finally:
        os.close(lock)


def listing(directory: pathlib.Path) -> list[Seen]:
    """Describe the files, oldest first."""
    seen = []
    for owner in sorted(directory.glob(f"*{OWNER}")):
        path = owner.with_suffix(LOG)
        with contextlib.suppress(OSError):
            lock = os.open(owner, os.O_RDWR)
            try:
                alive = not _lock(lock)
            finally:
                os.close(lock)
            pid = owner.stem.rpartition("-")[2]
            seen.append(Seen(path, int(pid) if pid.isdigit() else 0, alive, size(path)))
    return seen


def size(path: pathlib.Path) -> int:
    """Return what a spool file takes on the disk."""
    total = 0
    for suffix in _BESIDE:
        with contextlib.suppress(OSError):
            total += os.stat(f"{path}{suffix}").st_size
    return total


def _is_ours(path: pathlib.Path) -> bool:
    """Tell whether all that makes up a spool file is of this user, links not followed."""
    found = [os.lstat(path.with_suffix(OWNER))]
    for suffix in _BESIDE:
        with contextlib.suppress(FileNotFoundError):
            found.append(os.lstat(f"{path}{suffix}"))
    return all(each.st_uid == os.geteuid() for each in found)


def _tell(directory: pathlib.Path) -> None:
    """Say once that there are files of others; their names are theirs to choose, so not which."""
    if directory not in _told:
        _told.add(directory)
        LOGGER.warning("Files of other users in the spool %s are left alone; they send theirs", directory)


def _locked(lock: int, path: pathlib.Path) -> bool:
    """Lock an owner file that was opened; close it when it is somebody's, or gone by now."""
    if _lock(lock):
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(lock), os.stat(path.with_suffix(OWNER))):
                return True
    os.close(lock)
    return False


def _lock(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
