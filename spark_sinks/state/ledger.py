"""What a job has counted, in files beside its partials.

``job.json`` identifies the job. ``plans/N.json`` has the spans of batch N and is written before
the batch is read. ``counted/N.json`` has its counts and all ranges counted so far, and is written
after the partials. A batch with the first file and without the second was interrupted: it is
repeated with the same spans. ``merged.json`` says which batches have their data in common files
(``segments``). Each file is written atomically.
"""

import fcntl
import json
import os
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from notifier_kafka.contract.driver import Partition, Span
from notifier_kafka.errors import ConfigurationError
from spark_sinks.state import safe_files
from spark_sinks.state.plan import Plan, Ranges, add

FORMAT = 2
CHECKPOINT_DIRECTORY = "_job"
"""The name of the checkpoint inside an output directory, when no other is configured."""
COUNTS = ("read", "decoded", "duplicate", "misdated", "late")
"""The counts of each batch, besides its malformed records by reason."""


class Segment(NamedTuple):
    """A file with the data of some batches, and the time range of that data in seconds."""

    first: int
    last: int
    rows: int
    low: float | None
    high: float | None


class Merged(NamedTuple):
    """The files that replace those of all batches up to one, by kind of data."""

    until: int
    files: Mapping[str, list[Segment]]


class Ledger:
    """The files of one job. To be used within ``locked``."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.job = ""

    @contextmanager
    def locked(self, identity: Mapping[str, Any], metrics: Mapping[str, str]) -> Iterator[None]:
        """Lock the directory for this process; create it, or check that it belongs to this job.

        ``metrics`` has the digest of each metric by name. Raises ``ConfigurationError`` when the
        directory belongs to another job, or when another process has locked it.
        """
        try:
            self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            # Follow no symbolic link: somebody else may have put it there.
            opened = os.open(self.directory / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        except OSError as error:
            raise ConfigurationError(f"checkpoint_dir {self.directory}: {error.strerror}") from error
        with os.fdopen(opened, "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ConfigurationError(
                    f"checkpoint_dir {self.directory}: another process is running this job"
                ) from None
            self._identify(identity)
            self._check_metrics(metrics)
            yield

    def last(self) -> int:
        """Return the number of the last batch that is counted, 0 when there is none."""
        return max(self._numbers("counted"), default=0)

    def pending(self) -> Plan | None:
        """Return the plan of the batch that was interrupted."""
        batch = self.last() + 1
        path = self._path("plans", batch)
        if not path.exists():
            return None
        return Plan(batch, tuple(_span(*each) for each in _load(path)["spans"]))

    def counted(self) -> dict[Partition, Ranges]:
        """Return what is counted."""
        found = self.sums(self.last())["counted"] if self.last() else []
        return {Partition(topic, number): tuple(map(tuple, ranges)) for topic, number, ranges in found}

    def sums(self, batch: int) -> dict[str, Any]:
        """Return the counts of a batch."""
        return dict(_load(self._path("counted", batch)))

    def totals(self) -> dict[str, Any]:
        """Add up the counts of all batches, also while a job is running."""
        merged = self._merged()
        totals: dict[str, Any] = merged["sums"]
        try:
            for batch in range(merged["until"] + 1, self.last() + 1):
                totals = _added(totals, self.sums(batch))
        except ConfigurationError:
            if self._merged()["until"] == merged["until"]:
                raise
            return self.totals()  # the files were merged meanwhile
        return totals

    def write_plan(self, plan: Plan) -> None:
        """Freeze the spans of a batch."""
        spans = [[*span.partition, span.start, span.stop] for span in plan.spans]
        _save(self._path("plans", plan.batch), {"spans": spans})

    def write_counted(self, plan: Plan, sums: Mapping[str, Any]) -> None:
        """Mark a batch as counted: its partials are complete."""
        counted = add(self.counted(), plan.spans)
        ranges = [[*partition, found] for partition, found in sorted(counted.items())]
        _save(self._path("counted", plan.batch), {**sums, "counted": ranges})

    def merged(self) -> Merged:
        """Return which batches have their data in common files."""
        found = self._merged()
        files = {kind: [Segment(*each) for each in listed] for kind, listed in found["files"].items()}
        return Merged(found["until"], files)

    def write_merged(self, until: int, files: Mapping[str, list[Segment]]) -> None:
        """Switch to common files for all batches up to ``until``."""
        _save(self._merged_path, {"until": until, "files": files, "sums": self.totals()})

    @property
    def _merged_path(self) -> Path:
        return self.directory / "merged.json"

    def _merged(self) -> dict[str, Any]:
        if self._merged_path.exists():
            return _load(self._merged_path)
        return {"until": 0, "files": {}, "sums": {**dict.fromkeys(COUNTS, 0), "malformed": {}}}

    def data(self, kind: str, batch: int) -> Path:
        """Return the path of a batch's data of a kind."""
        suffix = "json" if kind == "malformed" else "parquet"
        return self.directory / kind / f"{batch:08}.{suffix}"

    def _identify(self, identity: Mapping[str, Any]) -> None:
        path = self.directory / "job.json"
        if not path.exists():
            if foreign := sorted(set(os.listdir(self.directory)) - {"lock"}):
                raise ConfigurationError(
                    f"checkpoint_dir {self.directory} is not empty and not a checkpoint: "
                    f"it holds {foreign[0]}"
                )
            _save(path, {"format": FORMAT, "job": uuid.uuid4().hex, **identity})
        found = _load(path)
        if found.get("format") != FORMAT:
            raise ConfigurationError(f"{path} was written by another version of this program")
        self.job = str(found["job"])
        for name, value in identity.items():
            if found.get(name) != value:
                raise ConfigurationError(
                    f"checkpoint_dir {self.directory} belongs to another job: its {name} is "
                    f"{_brief(found.get(name))}, not {_brief(value)}"
                )

    def _check_metrics(self, metrics: Mapping[str, str]) -> None:
        path = self.directory / "metrics.json"
        known = _load(path) if path.exists() else {}
        for name, meaning in metrics.items():
            if known.get(name, meaning) != meaning:
                raise ConfigurationError(
                    f"the definition of metric {name!r} differs from the one that {self.directory} has "
                    "counted: give it another name, or start again with another checkpoint_dir"
                )
        if not metrics.keys() <= known.keys():
            _save(path, {**known, **metrics})

    def _path(self, kind: str, batch: int) -> Path:
        return self.directory / kind / f"{batch:08}.json"

    def _numbers(self, kind: str) -> Iterator[int]:
        directory = self.directory / kind
        if directory.exists():
            yield from (int(path.stem) for path in directory.glob("*.json"))


def _added(totals: Mapping[str, Any], sums: Mapping[str, Any]) -> dict[str, Any]:
    malformed = Counter(totals["malformed"]) + Counter(sums["malformed"])
    return {**{name: totals[name] + sums[name] for name in COUNTS}, "malformed": dict(malformed)}


def _span(topic: str, number: int, start: int, stop: int) -> Span:
    return Span(Partition(topic, number), start, stop)


def _brief(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) < 200 else f"{text[:200]}..."


def _load(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise ConfigurationError(f"{path} is not a file of a checkpoint")
    return found


def _save(path: Path, value: Mapping[str, Any]) -> None:
    """Write a file atomically, also in case of a power cut."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    with open(part, "w", encoding="utf-8", opener=safe_files.open_new) as file:
        json.dump(value, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
