"""The demonstration's ``aggregate`` command, run in a process of its own."""

import collections
import contextlib
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path

from notifier_kafka.cli.exits import Partial
from notifier_kafka.cli.output.progress_bar import Bar

TIMEOUT_SECONDS = 300.0  # after which the demonstration stops waiting for Spark
METRICS_FILE = "metrics.yaml"
_POLL_SECONDS = 0.1


class Aggregation:
    """Runs ``aggregate --every``; ``totals`` are the sums of its runs so far."""

    def __init__(self, directory: Path, config_files: Sequence[Path], topic: str) -> None:
        self.output = directory / "metrics"
        self._log_path = directory / "aggregate.log"
        self._files, self._topic = config_files, topic
        self.totals: collections.Counter[str] = collections.Counter()

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Run the process during the block. Then it finishes its batch; if the block raises, it is killed."""
        with resources.as_file(resources.files("notifier_kafka.cli.demo") / METRICS_FILE) as metrics:
            with self._log_path.open("w") as log:
                self._process = subprocess.Popen(  # noqa: S603 - this program
                    self._command(metrics),
                    # If Spark is killed, it leaves a directory in its working directory.
                    cwd=self._log_path.parent,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                )
            reader = threading.Thread(target=self._read, daemon=True)
            reader.start()
            try:
                yield
                self._process.send_signal(signal.SIGTERM)
                self._process.wait(TIMEOUT_SECONDS)
            finally:
                self._process.kill()
                self._process.wait()
                reader.join()
                if self._process.stdout:
                    self._process.stdout.close()

    def wait_for(self, records: int) -> None:
        """Wait until so many records were read. Raises ``Partial`` if that fails."""
        bar, deadline = Bar("aggregate", records), time.monotonic() + TIMEOUT_SECONDS
        while self.totals["read"] < records:
            if self._process.poll() is not None:
                raise Partial(
                    f"aggregate ended with exit code {self._process.returncode}: {self._last_log_line()}"
                )
            if time.monotonic() > deadline:
                raise Partial(
                    f"aggregate read {self.totals['read']} of {records} records in {TIMEOUT_SECONDS:g} s"
                )
            bar.show(self.totals["read"], "Spark is counting" if self.totals["runs"] else "Spark is starting")
            time.sleep(_POLL_SECONDS)
        bar.end(f"{self.totals['read']:,} records by Spark")

    def _command(self, metrics: Path) -> list[str]:
        program = [sys.executable, "-m", "notifier_kafka.cli.main"]
        for file in self._files:
            program += ["--config-file", str(file.expanduser().absolute())]
        job = ["--metrics", str(metrics), "--topic", self._topic, "--output", f"parquet:{self.output}"]
        return [*program, "aggregate", *job, "--every", "1s", "--json"]

    def _read(self) -> None:
        for line in self._process.stdout or ():
            try:
                counts = json.loads(line)
            except ValueError:
                continue  # a Java that fails to start prints errors on stdout
            self.totals.update({name: n for name, n in counts.items() if isinstance(n, int)} | {"runs": 1})

    def _last_log_line(self) -> str:
        lines = self._log_path.read_text("utf-8", "replace").splitlines()
        return lines[-1].removeprefix("notifier-kafka: ") if lines else "it logged nothing"
