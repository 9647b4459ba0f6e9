"""Merges the many small files of a parquet output into few, also while a job writes there.

For each metric and window, the rows of the latest batch are valid. So the valid rows of several
batches replace the file of the last of them, by one rename. The other files then add nothing and
are removed. Whenever this is interrupted, and whichever files a reader sees, the same rows are
valid.
"""

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from pyarrow import parquet

from notifier_kafka.errors import ConfigurationError
from spark_sinks.outputs import files
from spark_sinks.state import safe_files

MAX_FILE_ROWS = 1_000_000
"""The most rows of a merged file. A single batch may have more."""


def compact(directory: Path, most: int = MAX_FILE_ROWS) -> tuple[int, int]:
    """Return the number of files before and after.

    Raises ``ConfigurationError`` when the directory is not a parquet output, or another process
    compacts it.
    """
    with _locked(directory):
        done = sorted(files.written_batches(directory))
        groups = _groups(directory, done, most)
        for group in groups:
            _merge_batches(directory, group)
        # This includes what an interrupted attempt left. A job may be writing the newest batch.
        kept = {f"{files.BATCH_PREFIX}{group[-1]:08}" for group in groups}
        for name in os.listdir(directory):
            number = name.removeprefix(files.BATCH_PREFIX)
            if name not in kept and number.isdigit() and int(number) < max(done, default=0):
                shutil.rmtree(directory / name)
        return len(done), len(groups)


@contextlib.contextmanager
def _locked(directory: Path) -> Iterator[None]:
    if not (directory / files.BATCHES_DIRECTORY).is_dir() or not all(
        files.part_file(directory, batch, "parquet").exists()
        for batch in list(files.written_batches(directory))[:1]
    ):
        raise ConfigurationError(f"{directory} is not a parquet output: nothing was written there")
    try:
        # Follow no symbolic link: somebody else may have put it there, to have a file created elsewhere.
        lock = os.open(
            directory / files.BATCHES_DIRECTORY / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666
        )
    except OSError as error:
        raise ConfigurationError(f"{directory}: its lock cannot be opened ({error.strerror})") from error
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigurationError(f"{directory}: another process compacts it") from None
        yield
    finally:
        os.close(lock)


def _groups(directory: Path, done: Sequence[int], most: int) -> list[list[int]]:
    """Group consecutive batches into files of at most so many rows."""
    groups: list[list[int]] = []
    held = 0
    for batch in done:
        size = parquet.read_metadata(files.part_file(directory, batch, "parquet")).num_rows
        if groups and held + size <= most:
            groups[-1].append(batch)
            held += size
        else:
            groups.append([batch])
            held = size
    return groups


def _merge_batches(directory: Path, group: Sequence[int]) -> None:
    if len(group) == 1:
        return
    united = files.latest_rows(directory, group)
    target = files.part_file(directory, group[-1], "parquet")
    part = target.with_name(f".{target.name}.united")
    with open(part, "wb", opener=safe_files.open_new) as file:
        parquet.write_table(united, file)
    files.move_into_place(part, target)
    for batch in group[:-1]:
        (directory / files.BATCHES_DIRECTORY / f"{batch:08}").unlink()
