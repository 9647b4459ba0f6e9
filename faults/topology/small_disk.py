"""A small file system that can be filled up, and that only some processes see."""

import contextlib
import os
import pathlib
import subprocess
from collections.abc import Iterator

from faults.processes import Bus

SMALL_BYTES = 3 * 1024 * 1024
SMALL_FILE_BYTES = 8 * 1024 * 1024  # a limit for histories too, so it is larger
SIZE_BYTES = 64 * 1024 * 1024  # the WAL of the log takes 12 MB of it


class SmallDisk:
    """A mount namespace with a small tmpfs; both end with the process that holds them."""

    def __init__(self, directory: pathlib.Path) -> None:
        self._directory = directory
        rights = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
        script = f"mount -t tmpfs -o size={SIZE_BYTES} none '{directory}' && echo ready && exec cat"
        command = ["unshare", *rights, "--mount", "sh", "-c", script]
        self._holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline() == b"ready\n", (
            "cannot mount in a namespace: missing privileges?"
        )
        namespaces = f"/proc/{self._holder.pid}/ns"
        users = [] if not rights else [f"--user={namespaces}/user", "--preserve-credentials"]
        self._enter = ("nsenter", *users, f"--mount={namespaces}/mnt", "--")

    @property
    def bus(self) -> Bus:
        return Bus("sqlite", f"sqlite:///{self._directory}/bus.db?session_timeout=2", prefix=self._enter)

    def full(self) -> contextlib.AbstractContextManager[None]:
        return filled(pathlib.Path(f"/proc/{self._holder.pid}/root{self._directory}"))

    def close(self) -> None:
        self._holder.communicate()


@contextlib.contextmanager
def filled(directory: pathlib.Path) -> Iterator[None]:
    """Fill the file system of a directory up; at the end there is room again."""
    ballast = directory / "ballast"
    # First in large steps, then to the last page.
    for size in (1024 * 1024, 4096):
        with ballast.open("ab", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(b"\0" * size)
    try:
        yield
    finally:
        ballast.unlink()


@contextlib.contextmanager
def mounted(directory: pathlib.Path) -> Iterator[int]:
    """Mount a small disk and yield 0; where that is forbidden, yield a limit of file sizes instead."""
    directory.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SMALL_BYTES}", "tmpfs", str(directory)]
    if subprocess.run(mount, check=False).returncode:
        yield SMALL_FILE_BYTES
        return
    try:
        yield 0
    finally:
        subprocess.run(["umount", "--lazy", str(directory)], check=True)
