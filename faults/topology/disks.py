"""Disks of their own for brokers: files with a file system, which can be full or slow.

A loop device carries each. It is slow for one process by the kernel's own throttle of block
devices, with every write waiting for the device: a broker's otherwise stop in the page cache.
"""

import contextlib
import os
import pathlib
import subprocess
from collections.abc import Iterator

from faults.topology import namespaces, small_disk

SIZE = 256 * 1024 * 1024
WRITES = 30  # a second, of a slow disk
# What faults may need, for those who read why one was left out.
MOUNTED = "rights to mount loop devices"
SLOWED = "rights to mount loop devices, and the kernel's control group blkio"
GROUPS = pathlib.Path("/sys/fs/cgroup/blkio")


class Disk:
    """A file system mounted at ``place``, a directory that it makes."""

    def __init__(self, place: pathlib.Path) -> None:
        self._place = place
        image = place.with_name(f"{place.name}.image")
        place.mkdir(parents=True)
        with image.open("wb") as file:
            file.truncate(SIZE)
        _run("mkfs.ext4", "-q", str(image))
        _run("mount", "-o", "loop", str(image), str(place))
        # A broker takes every directory for that of a partition.
        (place / "lost+found").rmdir()

    def full(self) -> contextlib.AbstractContextManager[None]:
        return small_disk.filled(self._place)

    @contextlib.contextmanager
    def slow(self, process: int) -> Iterator[None]:
        """Let a process write ``WRITES`` times a second, and wait each time."""
        group = GROUPS / f"faults-{os.getpid()}-{process}"
        group.mkdir()
        device = self._place.stat().st_dev
        try:
            throttle = group / "blkio.throttle.write_iops_device"
            throttle.write_text(f"{os.major(device)}:{os.minor(device)} {WRITES}\n")
            (group / "cgroup.procs").write_text(str(process))
            _run("mount", "-o", "remount,sync", str(self._place))
            yield
        finally:
            _run("mount", "-o", "remount,async", str(self._place))
            with contextlib.suppress(ProcessLookupError):
                (GROUPS / "cgroup.procs").write_text(str(process))
            group.rmdir()

    def close(self) -> None:
        _run("umount", "--lazy", str(self._place))


def usable() -> bool:
    """Say whether this machine lets us mount files, where nobody else sees them."""
    return namespaces.owned() and os.access("/dev/loop-control", os.W_OK)


def throttled() -> bool:
    """Say whether this machine lets us slow down a device for a process."""
    return usable() and os.access(GROUPS / "cgroup.procs", os.W_OK)


def _run(*command: str) -> None:
    subprocess.run(command, check=True)
