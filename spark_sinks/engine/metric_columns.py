"""The columns that belong to one metric: Spark fills them, and the roll-up reads them. Imports no pyspark."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from spark_sinks.language.field_paths import TREES, FieldPath
from spark_sinks.language.metrics import COUNTED, Metric

RECORD_COLUMNS = ("topic", "partition", "offset", "logged", "reason", "message_id", "time", "misdated")
"""What is taken from every record, whatever the metrics are."""


@dataclass(frozen=True)
class MetricColumns:
    """The names of the columns of the metric at ``index``.

    Metrics that take the same values from the same notifications share columns: those of the
    first such metric, which stands at ``shared``.
    """

    index: int
    shared: int

    @property
    def selected(self) -> str:
        """Whether the notification is one of this metric's."""
        return f"selected_{self.index}"

    @property
    def group(self) -> str:
        """All values that it is grouped by, as a JSON array of texts."""
        return f"group_{self.index}"

    def group_value(self, place: int) -> str:
        return f"group_value_{self.index}_{place}"

    @property
    def root_item(self) -> str:
        """The item that is counted, when it is one of the notification's own texts."""
        return f"root_item_{self.index}"

    @property
    def item(self) -> str:
        """The bucket, or the text that is counted."""
        return f"item_{self.shared}"

    @property
    def text(self) -> str:
        return f"text_{self.shared}"

    @property
    def number(self) -> str:
        return f"number_{self.shared}"

    def figure(self, name: str) -> str:
        """Name a sum over ``text`` or ``number``: ``count``, ``sum``, ``low`` or ``high``."""
        return f"{name}_{self.shared}"

    @property
    def sketch(self) -> str:
        return f"sketch_{self.index}"

    @property
    def last(self) -> str:
        return f"last_{self.index}"

    @property
    def pair(self) -> str:
        """A hash of what the start and the end of an operation have in common."""
        return f"pair_{self.index}"

    @property
    def is_end(self) -> str:
        return f"is_end_{self.index}"

    def duration_group_value(self, place: int) -> str:
        return f"duration_group_value_{self.index}_{place}"


def columns_of(metrics: Sequence[Metric], index: int) -> MetricColumns:
    """Name the columns of the metric at ``index``."""
    first = next(i for i, metric in enumerate(metrics) if _taken(metric) == _taken(metrics[index]))
    return MetricColumns(index, first)


def dimensions(metrics: Sequence[Metric]) -> Iterator[str]:
    """Name the columns, besides the notification's own texts, that may tell groups apart."""
    for index, metric in enumerate(metrics):
        columns = columns_of(metrics, index)
        yield from (columns.selected, columns.item)
        yield from (columns.group_value(place) for place in range(len(metric.group_by)))


def has_root_item(metric: Metric) -> bool:
    """Tell whether a metric counts one of the notification's own texts, by which it is grouped anyway."""
    return metric.kind == "top" and isinstance(metric.value, FieldPath) and not needs_own_column(metric.value)


def needs_own_column(path: FieldPath) -> bool:
    """Tell whether what a path leads to is not one of the notification's own texts."""
    return path.root in TREES or path.root in RECORD_COLUMNS


def _taken(metric: Metric) -> object:
    """Return what tells whether two metrics take the same values from the same notifications."""
    item: object = metric.kind in ("percentiles", "top") and metric.kind
    if metric.kind == "histogram":
        item = metric.bounds
    return metric.selection, metric.value, metric.kind in COUNTED, item
