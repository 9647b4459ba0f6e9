"""``python -m faults fuzz``: hostile input for all that parses; only errors of the package may be raised.

Cases are mutations of the samples in ``faults/fuzzing/corpus`` by a seeded generator, so a failure
can be reproduced; with ``--atheris`` libFuzzer looks for new paths instead. A case fails when it
raises anything but an error of the package, when the error has several lines or shows a password,
or when it takes longer than ``MAX_CASE_SECONDS``.
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
MAX_CASE_SECONDS = 10.0  # of CPU time; PyYAML takes two for 20 kB of an odd file
MAX_CASE_BYTES = 20_000
# PyYAML takes a hundred times as long as the others for a case.
SHARES = {"decoder": 30, "url": 30, "client": 30, "requeue": 30, "output": 30}
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


def mutate(generator: random.Random, found: Sequence[bytes]) -> bytes:
    """Make a case from the samples."""
    case = bytearray(generator.choice(found))
    for _ in range(generator.randint(0, 5)):
        at = generator.randint(0, len(case))
        match generator.randint(0, 6):
            case 0:
                case[at : at + 1] = bytes([generator.randrange(256)])
            case 1:
                del case[at : at + generator.randint(1, 20)]
            case 2:
                case[at:at] = generator.choice(TOKENS)
            case 3:
                other = generator.choice(found)
                begin = generator.randint(0, len(other))
                case[at : at + generator.randint(0, 40)] = other[begin : begin + generator.randint(1, 60)]
            case 4:
                case[at:at] = case[at : at + generator.randint(1, 60)] * generator.randint(1, 30)
            case 5:
                case = case[:at]
            case 6:
                case = case[at:] + case[:at]
    return bytes(case[:MAX_CASE_BYTES])


def run_case(name: str, run: Callable[[bytes], Any], case: bytes) -> Failure | None:
    """Run a case; return its failure, if any."""
    begun = time.process_time()
    try:
        run(case)
    except targets.EXPECTED as error:
        text = str(error)
        if "\n" in text or "\r" in text:
            return Failure(name, case, f"an error of several lines: {text!r}")
        if targets.SECRET in text and _passwords_are_in_place(case):
            return Failure(name, case, f"a password in an error: {text!r}")
    except Exception as error:  # noqa: BLE001 - such errors are the failures
        return Failure(name, case, f"{type(error).__name__}: {error}")
    took = time.process_time() - begun
    return Failure(name, case, f"took {took:.1f} s") if took > MAX_CASE_SECONDS else None


def _passwords_are_in_place(case: bytes) -> bool:
    """Tell whether every password of a case is still in the place of a password."""
    rest = case.lower()  # as hosts are spelled
    for place in targets.SECRET_PLACES:
        rest = rest.replace(place, b"")
    return targets.SECRET.encode() not in rest


def explore(names: Sequence[str], cases: int, seed: int) -> tuple[dict[str, int], list[Failure]]:
    """Run so many cases, more of them on quick targets; keep one of several similar failures."""
    generator = random.Random(seed)
    found = {name: samples(name) for name in names}
    counts = dict.fromkeys(names, 0)
    failures: dict[tuple[str, str], Failure] = {}
    turns = [name for name in names for _ in range(SHARES.get(name, 1))]
    for number in range(cases):
        name = turns[number % len(turns)]
        counts[name] += 1
        if failure := run_case(name, targets.TARGETS[name], mutate(generator, found[name])):
            failures.setdefault((name, failure.what[:40]), failure)
    return counts, list(failures.values())


def run_atheris(name: str, arguments: Sequence[str]) -> None:
    """Run libFuzzer on a target; it does not return."""
    import atheris

    atheris.instrument_all()

    def run(case: bytes) -> None:
        if failure := run_case(name, targets.TARGETS[name], case):
            raise AssertionError(failure.what)

    # It writes its findings into the first directory, so that must not be the corpus.
    found = tempfile.mkdtemp(prefix=f"faults-{name}-")
    atheris.Setup(["faults", found, str(CORPUS / name), *arguments], run)
    atheris.Fuzz()


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m faults fuzz", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument(
        "targets", nargs="*", metavar="TARGET", help=f"some of {', '.join(targets.TARGETS)}; default: all"
    )
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--atheris", action="store_true", help="run libFuzzer on one target; needs the package atheris"
    )
    parser.add_argument(
        "--save", type=pathlib.Path, metavar="DIR", help="write the cases that fail to files there"
    )
    given = parser.parse_args(arguments)
    names = given.targets or list(targets.TARGETS)
    if unknown := set(names) - set(targets.TARGETS):
        parser.error(f"no target {', '.join(sorted(unknown))}")
    if given.atheris:
        run_atheris(names[0], [f"-runs={given.cases}", f"-seed={given.seed}"])
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
