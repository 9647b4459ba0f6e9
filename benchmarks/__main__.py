"""``python -m benchmarks publish listen``: this project beside bare loops, over SQLite."""

import argparse
import json

from benchmarks import embedded, measure

BENCHMARKS = {"publish": embedded.publish, "listen": embedded.listen}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)}; default all")
    parser.add_argument("--count", type=int, default=100_000, help="notifications in a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(BENCHMARKS):
        parser.error(f"no benchmark {', '.join(sorted(unknown))}: there are {', '.join(BENCHMARKS)}")
    results = {
        name: BENCHMARKS[name](arguments.count, arguments.rounds) for name in arguments.names or BENCHMARKS
    }
    if arguments.json:
        print(json.dumps({name: [r._asdict() for r in found] for name, found in results.items()}, indent=2))
        return
    for name, found in results.items():
        print(measure.table(f"{name}: {arguments.count:,} notifications of 200 bytes over SQLite", found))


if __name__ == "__main__":
    main()
