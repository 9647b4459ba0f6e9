"""What all processes of one test run share: a directory, and the sign that the run goes on."""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TextIO

from tests.shared.checkout import ROOT

VARIABLE = "NOTIFIER_KAFKA_TEST_RUN"
RUNNING = "running"


class SharedRun:
    """Held by the process that a person started; its workers find it in their environment."""

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="notifier-kafka-tests-"))
        self._held: TextIO = (self.directory / RUNNING).open("w")
        fcntl.flock(self._held, fcntl.LOCK_EX)
        os.environ[VARIABLE] = str(self.directory)

    def end(self) -> None:
        """Let the clusters end, then remove what they left."""
        self._held.close()
        for keeper in self.directory.glob("*.keeper"):
            with keeper.open() as ended:
                fcntl.flock(ended, fcntl.LOCK_EX)
        os.environ.pop(VARIABLE, None)
        shutil.rmtree(self.directory, ignore_errors=True)


def cluster_directory(name: str, nodes: int) -> Path:
    """Start the run's cluster of that name, unless another process of the run did; return its directory."""
    run = Path(os.environ[VARIABLE])
    with (run / f"{name}.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if not (run / name).exists():
            _start_keeper(run, name, nodes)
    return run / name


def _start_keeper(run: Path, name: str, nodes: int) -> None:
    command = [sys.executable, "-m", "tests.shared.kafka.keep_cluster"]
    command += [str(run / name), str(nodes), str(run / RUNNING)]
    said = run / f"{name}.log"
    with (run / f"{name}.keeper").open("w") as keeper, said.open("w") as log:
        # The keeper inherits the lock, so whoever gets it next knows that the keeper has ended.
        fcntl.flock(keeper, fcntl.LOCK_EX)
        started = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
            pass_fds=[keeper.fileno()],
        )
        assert started.stdout
        with started.stdout:
            assert started.stdout.readline() == "ready\n", said.read_text()
    # It is nobody's child to wait for: it outlives this worker.
    started.returncode = 0
