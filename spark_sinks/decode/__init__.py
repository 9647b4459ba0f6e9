"""Records to notifications, as Spark columns. Private, but for ``RAW``: the columns that a source returns."""

from typing import Any


def __getattr__(name: str) -> Any:
    # Not imported with the package: what tells the clock's tolerance needs no PySpark.
    if name == "RAW":
        from spark_sinks.decode.full import RAW_SCHEMA

        return RAW_SCHEMA
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
