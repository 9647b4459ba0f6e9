"""Hostile input: the fixed corpus, some seeded mutations of it, and that a failure would be seen."""

import json
import pathlib
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faults.fuzzing import fuzz, targets
from notifier_kafka.errors import DecodeError
from notifier_kafka.listening import requeue
from spark_sinks.outputs import secret_masking

CASES = 100  # of each target, since PyYAML is slow; the long run is "python -m faults fuzz --cases 10000000"


@pytest.mark.parametrize("name", targets.TARGETS)
def test_the_corpus_is_read(name: str) -> None:
    found = fuzz.samples(name)
    assert len(found) > 0
    for case in found:
        targets.TARGETS[name](case)


@pytest.mark.parametrize("path", sorted((fuzz.CORPUS.parent / "regressions").iterdir()), ids=lambda p: p.name)
def test_what_once_failed_fails_no_more(path: pathlib.Path) -> None:
    name = path.name.partition("-")[0]
    assert fuzz.run_case(name, targets.TARGETS[name], path.read_bytes()) is None


@pytest.mark.parametrize("name", targets.TARGETS)
def test_nothing_but_errors_of_the_package_comes_out(name: str) -> None:
    counts, failures = fuzz.explore([name], CASES, seed=1)
    assert counts == {name: CASES}
    assert failures == []


# Names that are valid in these files, so that documents pass the first check.
NAMES = {
    "client": [
        "Type",
        "Properties",
        "KafkaProducerConfig",
        "KafkaConsumerConfig",
        "bootstrap.servers",
        "acks",
    ],
    "routes": ["group", "messaging", "log", "accepted_events", "accepted_priorities", "info", "*"],
    "metrics": [
        "metrics",
        "name",
        "kind",
        "value",
        "events",
        "group_by",
        "window",
        "count",
        "$.payload.a",
        "1m",
    ],
}


def _documents(names: list[str]) -> st.SearchStrategy[Any]:
    words = st.sampled_from(names) | st.text(max_size=20)
    leaves = st.none() | st.booleans() | st.integers() | st.floats() | words
    return st.recursive(leaves, lambda each: st.lists(each) | st.dictionaries(words, each), max_leaves=20)


@pytest.mark.parametrize("name", NAMES)
def test_any_document_is_read_or_refused_in_one_line(name: str) -> None:
    @given(_documents(NAMES[name]), st.sampled_from(["", "&a ", "!!binary "]))
    def reads(document: Any, before: str) -> None:
        # YAML takes JSON as it is.
        case = (before + json.dumps(document)).encode()
        assert fuzz.run_case(name, targets.TARGETS[name], case) is None

    reads()


def test_a_password_that_is_shown_of_an_output_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    case = b"jdbc:postgresql://user:hunter2@host/metrics"
    assert fuzz.run_case("output", targets.output, case) is None
    monkeypatch.setattr(secret_masking, "output", str)
    failure = fuzz.run_case("output", targets.output, case)
    assert failure is not None
    assert "a password is shown" in failure.what


def test_a_header_of_a_stranger_that_counts_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    (forged,) = (case for case in fuzz.samples("requeue") if b"secret" in case)
    assert fuzz.run_case("requeue", targets.requeued, forged) is None
    monkeypatch.setattr(requeue.Requeue, "_is_new", lambda *_: False)
    failure = fuzz.run_case("requeue", targets.requeued, forged)
    assert failure is not None
    assert "an origin from the headers of a stranger" in failure.what


def _raise(error: Exception) -> Any:
    raise error


@pytest.mark.parametrize(
    ("error", "what"),
    [
        (ZeroDivisionError("x"), "ZeroDivisionError"),
        (DecodeError("a\nb"), "several lines"),
        (DecodeError(f"the password {targets.SECRET}"), "a password in an error"),
    ],
)
def test_each_kind_of_failure_is_seen(error: Exception, what: str) -> None:
    failure = fuzz.run_case("t", lambda _: _raise(error), b"kafka://me:hunter2@broker")
    assert failure is not None
    assert what in failure.what
    assert fuzz.run_case("t", lambda _: _raise(DecodeError("fine")), b"") is None


def test_a_run_is_reproducible() -> None:
    first, second = ([fuzz.mutate(random.Random(5), [b"abc", b"defg"]) for _ in range(20)] for _ in range(2))
    assert first == second
