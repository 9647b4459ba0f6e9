"""``openmetrics:FILE``: the latest value of each metric and group, for a scraper of text files.

FILE is scraped. FILE.state holds the data that FILE is made from, and the batch. The state is
written first; if the program ends between the two writes, the next run repairs FILE.
"""

import json
import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from oslo_config import cfg

from notifier_kafka.errors import ConfigurationError
from spark_sinks.language.metrics import Metric
from spark_sinks.state import safe_files

WIDTH_LABEL = "window"
"""The label with the width of the window."""

_FOREIGN = re.compile(r"[^a-zA-Z0-9_:]")


class OpenMetricsSink:
    """A gauge for each metric and window width: the value of the newest window."""

    def __init__(self, place: str, conf: cfg.ConfigOpts) -> None:  # noqa: ARG002 - every sink is given it
        if not place:
            raise ConfigurationError("output openmetrics: needs a file, as openmetrics:FILE")
        self.file = Path(place).absolute()
        self._state = self.file.with_name(f"{self.file.name}.state")

    def check(self, metrics: Sequence[Metric]) -> None:
        """Refuse metrics that would become the same series: scrapers refuse such a file."""
        where = f"output {self.file}: metric"
        _refuse_equal_names(where, {}, (metric.name for metric in metrics), _name)
        for metric in metrics:
            taken = {WIDTH_LABEL: "the width of the window"}
            _refuse_equal_names(
                f"{where} {metric.name}: group", taken, (name for name, _ in metric.group_by), _label
            )

    def last(self, job: str) -> int:
        if not self._state.exists():
            if self.file.exists():
                raise ConfigurationError(
                    f"output {self.file} was not written by this program; name another file"
                )
            return 0
        found = self._load()
        if found["job"] != job:
            raise ConfigurationError(f"output {self.file} belongs to another job; name another file")
        # Complete what a crash between the two writes left undone.
        _save(self.file, exposition(found["units"]))
        return int(found["batch"])

    def write(self, job: str, batch: int, found: pa.Table) -> None:
        units = self._load()["units"] if self._state.exists() else {}
        made: dict[str, dict[str, Any]] = {}
        for row in found.to_pylist():
            start = int(row["window_start"].timestamp())
            width = int(row["window_end"].timestamp()) - start
            unit = made.setdefault(f"{row['metric']}|{width}|{start}", {"start": start, "rows": []})
            unit |= {"metric": row["metric"], "width": width, "unit": row["unit"]}
            unit["rows"].append([dict(row["group"]), row["value"]])
        # A renamed metric may have the same series name: then the old one is dropped.
        named = {_name(unit["metric"]): unit["metric"] for unit in made.values()}
        units = {
            key: unit
            for key, unit in units.items()
            if named.get(_name(unit["metric"]), unit["metric"]) == unit["metric"]
        }
        for unit in made.values():
            key = f"{unit['metric']}|{unit['width']}"
            if unit["start"] >= units.get(key, unit)["start"]:
                units[key] = unit
        _save(self._state, json.dumps({"job": job, "batch": batch, "units": units}))
        _save(self.file, exposition(units))

    def _load(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads(self._state.read_bytes())
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"output {self._state} cannot be read: {error}") from error
        return found


def exposition(units: dict[str, Any]) -> str:
    """Return OpenMetrics text without timestamps: node exporter refuses files with timestamps."""
    names: dict[str, list[dict[str, Any]]] = {}
    for _, unit in sorted(units.items()):
        names.setdefault(_name(unit["metric"]), []).append(unit)
    lines = []
    for name, listed in names.items():
        lines.append(f"# TYPE {name} gauge")
        lines.append(
            f"# HELP {name} {_escape(listed[0]['metric'])}, unit {_escape(listed[0]['unit'] or '1')}"
        )
        for unit in listed:
            for group, value in sorted(unit["rows"], key=lambda row: json.dumps(row[0], sort_keys=True)):
                labels = {_label(k): v for k, v in sorted(group.items())} | {WIDTH_LABEL: f"{unit['width']}s"}
                spelled = ",".join(f'{k}="{_escape(_text(v))}"' for k, v in labels.items())
                lines.append(f"{name}{{{spelled}}} {value!r}")
    return "\n".join([*lines, "# EOF\n"])


def _refuse_equal_names(
    what: str, taken: dict[str, str], names: Iterable[str], spell: Callable[[str], str]
) -> None:
    for name in names:
        legal = spell(name)
        if legal in taken:
            raise ConfigurationError(
                f"{what} {name!r} becomes {legal} there, as does {taken[legal]}; rename one"
            )
        taken[legal] = repr(name)


def _name(metric: str) -> str:
    return _without_leading_digit(_FOREIGN.sub("_", metric))


def _text(value: str | None) -> str:
    """Make null the empty label. An empty text and one of quotation marks alone get two more marks."""
    if value is None:
        return ""
    return value if value.strip('"') else f'{value}""'


def _label(name: str) -> str:
    # Labels that begin with two underscores, such as __name__, are reserved.
    return _without_leading_digit(re.sub(r"^__+", "_", re.sub(r"[^a-zA-Z0-9_]", "_", name)))


def _without_leading_digit(legal: str) -> str:
    return f"_{legal}" if legal[:1].isdigit() else legal


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _save(path: Path, text: str) -> None:
    """Replace a file atomically, so that a scraper always finds a complete one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    with open(part, "w", encoding="utf-8", opener=safe_files.open_new) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)
