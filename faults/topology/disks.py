"""Disks for brokers that can be full or slow: file systems in files, mounted by loop devices.

A disk is slow by the kernel's throttle of block devices, for one process. It is mounted ``sync``
meanwhile, or the page cache would take the writes.
"""

import contextlib
import os
import pathlib
import subprocess
from collections.abc import Iterator

from faults.topology import namespaces, small_disk

SIZE_BYTES = 256 * 1024 * 1024
WRITES_PER_SECOND = 30  # of a slow disk
# Requirements of faults, as the message about a skipped one names them.
MOUNT_RIGHTS = "rights to mount loop devices"
THROTTLE_RIGHTS = "rights to mount loop devices, and the kernel's control group blkio"
CONTROL_GROUPS = pathlib.Path("/sys/fs/cgroup/blkio")


class Disk:
    """A file system mounted at ``mount_point``, a directory that it makes."""

    def __init__(self, mount_point: pathlib.Path) -> None:
        self._mount_point = mount_point
        image = mount_point.with_name(f"{mount_point.name}.image")
        mount_point.mkdir(parents=True)
        with image.open("wb") as file:
            file.truncate(SIZE_BYTES)
        _run("mkfs.ext4", "-q", str(image))
        _run("mount", "-o", "loop", str(image), str(mount_point))
        # A broker expects a partition in every directory.
        (mount_point / "lost+found").rmdir()

    def full(self) -> contextlib.AbstractContextManager[None]:
        return small_disk.filled(self._mount_point)

    @contextlib.contextmanager
    def slow(self, process: int) -> Iterator[None]:
        """Let a process write ``WRITES_PER_SECOND`` times a second, and wait for the disk each time."""
        group = CONTROL_GROUPS / f"faults-{os.getpid()}-{process}"
        group.mkdir()
        device = self._mount_point.stat().st_dev
        try:
            throttle = group / "blkio.throttle.write_iops_device"
            throttle.write_text(f"{os.major(device)}:{os.minor(device)} {WRITES_PER_SECOND}\n")
            (group / "cgroup.procs").write_text(str(process))
            _run("mount", "-o", "remount,sync", str(self._mount_point))
            yield
        finally:
            _run("mount", "-o", "remount,async", str(self._mount_point))
            with contextlib.suppress(ProcessLookupError):
                (CONTROL_GROUPS / "cgroup.procs").write_text(str(process))
            group.rmdir()

    def close(self) -> None:
        _run("umount", "--lazy", str(self._mount_point))


def can_mount() -> bool:
    """Tell whether we may mount files here, unseen by other processes."""
    return namespaces.is_entered() and os.access("/dev/loop-control", os.W_OK)


def can_throttle() -> bool:
    """Tell whether we may slow down a device for a process here."""
    return can_mount() and os.access(CONTROL_GROUPS / "cgroup.procs", os.W_OK)


def _run(*command: str) -> None:
    subprocess.run(command, check=True)
