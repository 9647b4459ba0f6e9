"""``python -m faults fuzz``: hostile input for what parses; only errors of the package may come out.

Cases are mutations of the samples in ``faults/fuzzing/corpus`` by a seeded generator, so that a case
that fails can be had again; with ``--atheris`` libFuzzer looks for new paths instead. A case
fails when anything else than an error of the package comes out, when an error has several
lines or repeats a password, or when it takes longer than ``SLOW``.
"""

import argparse
import hashlib
import json
import pathlib
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from faults.fuzzing import targets

CORPUS = pathlib.Path(__file__).parent / "corpus"
SLOW = 10.0  # seconds of the processor for one case; PyYAML takes two for 20 kB of an odd file
LARGEST = 20_000
# PyYAML takes a hundred times as long as the others for a case.
SHARES = {"decoder": 30, "url": 30, "client": 30, "returns": 30, "output": 30}
TOKENS = (
    *(
        b"\x00",
        b"\xff",
        b"\r\n",
        b"\x1b[2J",
        b"\xe2\x80\xae",
        b"\xed\xa0\x80",
        b"'",
        b'"',
        b"\\u0000",
        b"\\ud800",
    ),
    *(
        b"[" * 600,
        b'{"a":' * 600,
        b"- " * 600,
        b"&a [*a, *a]",
        b"!!python/object:os.system x",
        b"<<: *a",
    ),
    *(
        b"9" * 400,
        b"-1e999",
        b"NaN",
        b"null",
        b"true",
        b"{}",
        b"[]",
        b"%00",
        b"%",
        b"@",
        b":",
        b"#",
        b"?",
        b"../",
    ),
    *(b"oslo.version", b"oslo.message", b"specversion", b"payload", b"$.payload", b"=cmd()", b"<script>"),
)


class Failure(NamedTuple):
    target: str
    case: bytes
    what: str


def samples(name: str) -> list[bytes]:
    """Read the corpus of a target: a case in each file."""
    return [path.read_bytes() for path in sorted((CORPUS / name).iterdir())]


def mutated(chance: random.Random, found: Sequence[bytes]) -> bytes:
    """Make a case of the samples."""
    case = bytearray(chance.choice(found))
    for _ in range(chance.randint(0, 5)):
        at = chance.randint(0, len(case))
        match chance.randint(0, 6):
            case 0:
                case[at : at + 1] = bytes([chance.randrange(256)])
            case 1:
                del case[at : at + chance.randint(1, 20)]
            case 2:
                case[at:at] = chance.choice(TOKENS)
            case 3:
                other = chance.choice(found)
                begin = chance.randint(0, len(other))
                case[at : at + chance.randint(0, 40)] = other[begin : begin + chance.randint(1, 60)]
            case 4:
                case[at:at] = case[at : at + chance.randint(1, 60)] * chance.randint(1, 30)
            case 5:
                case = case[:at]
            case 6:
                case = case[at:] + case[:at]
    return bytes(case[:LARGEST])


def tried(name: str, run: Callable[[bytes], Any], case: bytes) -> Failure | None:
    """Run a case; return what is wrong with what came of it."""
    begun = time.process_time()
    try:
        run(case)
    except targets.EXPECTED as error:
        text = str(error)
        if "\n" in text or "\r" in text:
            return Failure(name, case, f"an error of several lines: {text!r}")
        if targets.SECRET in text and _whole(case):
            return Failure(name, case, f"a password in an error: {text!r}")
    except Exception as error:  # noqa: BLE001 - that is what is looked for
        return Failure(name, case, f"{type(error).__name__}: {error}")
    took = time.process_time() - begun
    return Failure(name, case, f"took {took:.1f} s") if took > SLOW else None


def _whole(case: bytes) -> bool:
    """Tell whether every password of a case is still where passwords stand."""
    rest = case.lower()  # as hosts are spelled
    for place in targets.SECRET_PLACES:
        rest = rest.replace(place, b"")
    return targets.SECRET.encode() not in rest


def explore(names: Sequence[str], cases: int, seed: int) -> tuple[dict[str, int], list[Failure]]:
    """Run so many cases over the targets in turn, more over quick ones; leave out failures that are alike."""
    chance = random.Random(seed)
    found = {name: samples(name) for name in names}
    counts = dict.fromkeys(names, 0)
    failures: dict[tuple[str, str], Failure] = {}
    turns = [name for name in names for _ in range(SHARES.get(name, 1))]
    for number in range(cases):
        name = turns[number % len(turns)]
        counts[name] += 1
        if failure := tried(name, targets.TARGETS[name], mutated(chance, found[name])):
            failures.setdefault((name, failure.what[:40]), failure)
    return counts, list(failures.values())


def by_atheris(name: str, arguments: Sequence[str]) -> None:
    """Hand a target over to libFuzzer, which does not come back."""
    import atheris

    atheris.instrument_all()

    def run(case: bytes) -> None:
        if failure := tried(name, targets.TARGETS[name], case):
            raise AssertionError(failure.what)

    # It writes what it finds into the first directory, which the corpus must not be.
    found = tempfile.mkdtemp(prefix=f"faults-{name}-")
    atheris.Setup(["faults", found, str(CORPUS / name), *arguments], run)
    atheris.Fuzz()


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m faults fuzz", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument(
        "targets", nargs="*", metavar="TARGET", help=f"of {', '.join(targets.TARGETS)}; default all"
    )
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--atheris", action="store_true", help="libFuzzer, over one target; needs the package atheris"
    )
    parser.add_argument("--save", type=pathlib.Path, metavar="DIR", help="write the cases that fail there")
    given = parser.parse_args(arguments)
    names = given.targets or list(targets.TARGETS)
    if unknown := set(names) - set(targets.TARGETS):
        parser.error(f"no target {', '.join(sorted(unknown))}")
    if given.atheris:
        by_atheris(names[0], [f"-runs={given.cases}", f"-seed={given.seed}"])
    begun = time.monotonic()
    counts, failures = explore(names, given.cases, given.seed)
    spent = time.monotonic() - begun
    print(json.dumps({"cases": counts, "seconds": round(spent, 1), "failures": len(failures)}))
    for failure in failures:
        print(f"{failure.target}: {failure.what[:300]}: {failure.case[:200]!r}", file=sys.stderr)
        if given.save:
            given.save.mkdir(parents=True, exist_ok=True)
            name = hashlib.sha256(failure.case).hexdigest()[:12]
            (given.save / f"{failure.target}-{name}").write_bytes(failure.case)
    return 1 if failures else 0
