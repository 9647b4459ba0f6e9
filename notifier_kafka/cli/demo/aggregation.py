"""The demonstration's ``aggregate``: a process of its own, as a person would run it."""

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

PATIENCE = 300.0  # seconds until the demonstration gives up on Spark
METRICS = "metrics.yaml"
_BEAT = 0.1


class Aggregation:
    """Runs again and again until it is stopped; ``sums`` are those of all its runs."""

    def __init__(self, directory: Path, config_files: Sequence[Path], topic: str) -> None:
        self.output = directory / "metrics"
        self._said = directory / "aggregate.log"
        self._files, self._topic = config_files, topic
        self.sums: collections.Counter[str] = collections.Counter()

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Let it run; it ends after the batch at hand, or at once when the block raised."""
        with resources.as_file(resources.files("notifier_kafka.cli.demo") / METRICS) as metrics:
            with self._said.open("w") as said:
                self._process = subprocess.Popen(  # noqa: S603 - ourselves
                    self._command(metrics),
                    # Spark leaves a directory where it was started, when it is killed.
                    cwd=self._said.parent,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=said,
                    text=True,
                )
            reader = threading.Thread(target=self._read, daemon=True)
            reader.start()
            try:
                yield
                self._process.send_signal(signal.SIGTERM)
                self._process.wait(PATIENCE)
            finally:
                self._process.kill()
                self._process.wait()
                reader.join()
                if self._process.stdout:
                    self._process.stdout.close()

    def wait(self, records: int) -> None:
        """Wait until so many records were read. Raises ``Partial`` when they never will be."""
        bar, deadline = Bar("aggregate", records), time.monotonic() + PATIENCE
        while self.sums["read"] < records:
            if self._process.poll() is not None:
                raise Partial(
                    f"aggregate ended with exit code {self._process.returncode}: {self._last_line()}"
                )
            if time.monotonic() > deadline:
                raise Partial(f"aggregate read {self.sums['read']} of {records} records in {PATIENCE:g} s")
            bar.show(self.sums["read"], "Spark counts" if self.sums["runs"] else "Spark starts and counts")
            time.sleep(_BEAT)
        bar.end(f"{self.sums['read']:,} records by Spark")

    def _command(self, metrics: Path) -> list[str]:
        program = [sys.executable, "-m", "notifier_kafka.cli.main"]
        for file in self._files:
            program += ["--config-file", str(file.expanduser().absolute())]
        job = ["--metrics", str(metrics), "--topic", self._topic, "--output", f"parquet:{self.output}"]
        return [*program, "aggregate", *job, "--every", "1s", "--json"]

    def _read(self) -> None:
        for line in self._process.stdout or ():
            try:
                found = json.loads(line)
            except ValueError:
                continue  # a Java that does not start complains on stdout
            self.sums.update({name: n for name, n in found.items() if isinstance(n, int)} | {"runs": 1})

    def _last_line(self) -> str:
        lines = self._said.read_text("utf-8", "replace").splitlines()
        return lines[-1].removeprefix("notifier-kafka: ") if lines else "it said nothing"
