"""Many processes commit and checkpoint at once.

SQLite before 3.51.3 damages a WAL database when they really do so at the same moment; the
lock beside the log is what prevents it, and this is the proof. With synchronous=normal: a
hundred thousand synchronised writes would measure the disk, while the end of a process
(one writer is killed half-way) loses nothing that the system's page cache has.
"""

import contextlib
import pathlib
import signal
import sqlite3
import struct
import subprocess

from tests.unit.drivers.sqlite.sqlite_rig import LONG, await_true, child, open_driver, read_all

WRITERS = 6
COMMITS = 17_000


def acknowledged(path: pathlib.Path) -> int:
    try:
        return int(struct.unpack("q", path.read_bytes())[0])
    except (FileNotFoundError, struct.error):
        return 0


def test_storm_of_commits_and_checkpoints(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "storm.db"
    notes = {f"w{i}": tmp_path / f"w{i}" for i in range(WRITERS + 1)}
    with contextlib.ExitStack() as stack:

        def write(name: str, count: int) -> subprocess.Popen[str]:
            return stack.enter_context(child("storm_write", path, name, count, notes[name]))

        checkpointers = [stack.enter_context(child("storm_checkpoint", path)) for _ in range(2)]
        writers = [write(f"w{i}", COMMITS) for i in range(WRITERS)]
        await_true(lambda: acknowledged(notes["w0"]) > COMMITS // 20)
        writers[0].send_signal(signal.SIGKILL)
        writers[0].wait(LONG)
        killed = acknowledged(notes["w0"])
        writers.append(write(f"w{WRITERS}", COMMITS - killed))
        for writer in writers[1:]:
            assert writer.wait(5 * LONG) == 0
        times = [int(one.communicate("", timeout=LONG)[0]) for one in checkpointers]
        assert [one.returncode for one in checkpointers] == [0, 0]
    assert min(times) > 100
    counts = {name: acknowledged(note) for name, note in notes.items()}
    assert sum(counts.values()) == WRITERS * COMMITS >= 100_000

    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    found: dict[str, list[int]] = {}
    with open_driver(path) as driver:
        for delivery in read_all(driver, "storm"):
            key = (delivery.record.key or b"").decode()
            found.setdefault(key, []).append(int((delivery.record.value or b"").rstrip(b"x")))
    for name, count in counts.items():
        for lane in range(3):
            expected = list(range(lane, count, 3))
            got = found.get(f"{name}-{lane}", [])
            # What was written but not acknowledged yet when the writer was killed may be there.
            assert got[: len(expected)] == expected
            assert len(got) - len(expected) <= (name == "w0")
