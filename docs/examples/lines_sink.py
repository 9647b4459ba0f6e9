"""A sink: metric rows as files of InfluxDB's line protocol, one for each batch.

``aggregate --output lines:DIRECTORY`` finds it by the entry point ``lines`` of ``spark_sinks.sinks``.
"""

import os
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
from oslo_config import cfg

from notifier_kafka.errors import ConfigurationError


class LinesSink:
    """``lines:DIRECTORY``. Loaded in the order of their names, later files replace earlier points."""

    def __init__(self, place: str, conf: cfg.ConfigOpts) -> None:  # noqa: ARG002 - every sink is given it
        if not place:
            raise ConfigurationError("output lines: names no directory")
        self.directory = Path(place)

    def last(self, job: str) -> int:
        names = [path.stem.split("-") for path in self.directory.glob("*.lp")]
        if any(owner != job for owner, _ in names):
            raise ConfigurationError(f"output {self.directory} is of another job; name another directory")
        return max((int(batch) for _, batch in names), default=0)

    def write(self, job: str, batch: int, found: pa.Table) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        # The name is the note of the batch, and appears with the rows in one step.
        unfinished = self.directory / "unfinished"
        unfinished.write_text("".join(map(_line, found.to_pylist())), "utf-8")
        os.replace(unfinished, self.directory / f"{job}-{batch:08}.lp")


def _line(row: dict[str, Any]) -> str:
    width = int((row["window_end"] - row["window_start"]).total_seconds())
    tags = {"window": f"{width}s", **{name: text for name, text in row["group"] if text}}
    spelled = "".join(f",{_escaped(name)}={_escaped(text)}" for name, text in sorted(tags.items()))
    time = int(row["window_start"].timestamp()) * 10**9
    return f"{_escaped(row['metric'])}{spelled} value={row['value']} {time}\n"


def _escaped(text: str) -> str:
    # Names come from notifications: no character of theirs may begin a line or a tag.
    return re.sub(r"([,= ])", r"\\\1", re.sub(r"[\x00-\x1f\\]", "_", text))
