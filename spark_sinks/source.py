"""What authors of a source import; it is in ``spark_sinks.sources.source``."""

from spark_sinks.sources.source import DriverSource, Source

# The name that entry points of the first edition use.
ByDriver = DriverSource

__all__ = ["ByDriver", "DriverSource", "Source"]
