"""``python -m benchmarks``: this project beside bare loops that do the same work in the same run."""

import argparse
import json
from collections.abc import Callable
from typing import Any, NamedTuple

from benchmarks import block, embedded, kafka, measure

BENCHMARKS: dict[str, Callable[[int, int], Any]] = {
    "publish": embedded.publish,
    "listen": embedded.listen,
    "kafka-publish": kafka.publish,
    "kafka-listen": kafka.listen,
    "block": block.block,
}


class Size(NamedTuple):
    """How many notifications each round has, and how many rounds there are."""

    each: int
    rounds: int


FULL = Size(100_000, 5)
QUICK = Size(20_000, 3)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    known = f"of {', '.join(BENCHMARKS)}; default all of these; or spark, which goes alone"
    parser.add_argument("names", nargs="*", metavar="NAME", help=known)
    parser.add_argument("--count", type=int, help=f"notifications in a round; default {FULL.each}")
    parser.add_argument("--rounds", type=int, help=f"default {FULL.rounds}")
    parser.add_argument(
        "--quick", action="store_true", help=f"{QUICK.rounds} rounds of {QUICK.each}: a first impression"
    )
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    arguments = parser.parse_args()
    if arguments.names == ["spark"]:
        # Here, because it alone needs PySpark.
        from benchmarks import spark

        spark.main(quick=arguments.quick, as_json=arguments.json)
        return
    if unknown := set(arguments.names) - set(BENCHMARKS):
        parser.error(f"no benchmark {', '.join(sorted(unknown))}: there are {', '.join(BENCHMARKS)}")
    usual = QUICK if arguments.quick else FULL
    size = Size(arguments.count or usual.each, arguments.rounds or usual.rounds)
    results: dict[str, list[Any]] = {}
    for name in arguments.names or BENCHMARKS:
        results |= BENCHMARKS[name](*size)
    if arguments.json:
        print(json.dumps({title: [r._asdict() for r in found] for title, found in results.items()}, indent=2))
        return
    for title, found in results.items():
        draw = block.table if isinstance(found[0], block.Blocking) else measure.table
        print(draw(f"{title}: {size.each:,} notifications of 200 bytes", found))


if __name__ == "__main__":
    main()
