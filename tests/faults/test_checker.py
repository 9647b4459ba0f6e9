"""Each verdict of the checker, from histories written by hand."""

import json
import pathlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from faults import checker
from faults.history import History

Event = dict[str, Any]
Judge = Callable[..., checker.Verdict]

BLAMES = ("lost", "beyond_bound", "reordered", "invented", "wrong_pool", "false_acknowledged")


def offered(number: int, **more: Any) -> Event:
    return {"type": "offered", "id": f"a-{number}", "topic": "t", "key": "k", "number": number} | more


def outcome(what: str, number: int, **more: Any) -> Event:
    return {"type": what, "id": f"a-{number}"} | more


def handled(number: int, at: int | None = None, pool: str = "p", **more: Any) -> Event:
    return {"type": "handled", "id": f"a-{number}", "pool": pool, "at": number if at is None else at} | more


@pytest.fixture
def judge(tmp_path: pathlib.Path) -> Judge:
    def judge(published: list[Event], listened: list[Event], **pools: int) -> checker.Verdict:
        for name, lines in (("publisher", published), ("listener", listened)):
            (tmp_path / f"{name}.history").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        return checker.check(tmp_path, pools or {"p": 0})

    return judge


def blamed(verdict: checker.Verdict) -> dict[str, int]:
    found = {name: getattr(verdict, name) for name in BLAMES if getattr(verdict, name)}
    assert found.keys() == verdict.examples.keys()
    assert verdict.is_valid == (not found)
    return found


TWO = [offered(0), outcome("acknowledged", 0), offered(1), outcome("acknowledged", 1)]


def test_nothing_is_wrong(judge: Judge) -> None:
    verdict = judge(TWO, [handled(0), handled(1)])
    assert blamed(verdict) == {}
    assert (verdict.offered, verdict.acknowledged, verdict.handled) == (2, 2, 2)


def test_what_was_acknowledged_or_spooled_and_never_handled_is_lost(judge: Judge) -> None:
    published = [*TWO, offered(2), outcome("spooled", 2), offered(3), outcome("accepted", 3), offered(4)]
    assert blamed(judge(published, [handled(0)])) == {"lost": 2}


def test_each_pool_has_to_handle_it_and_one_that_never_wrote_a_line_as_well(judge: Judge) -> None:
    verdict = judge(TWO, [handled(0), handled(1), handled(0, pool="q")], p=0, q=0, r=0)
    assert blamed(verdict) == {"lost": 3}


def test_what_was_accepted_is_promised_once_a_flush_left_nothing(judge: Judge) -> None:
    accepted = [offered(0), outcome("accepted", 0), offered(1), outcome("accepted", 1), outcome("failed", 1)]
    assert blamed(judge([*accepted, {"type": "flushed", "left": 1}], [])) == {}
    assert blamed(judge([*accepted, {"type": "flushed", "left": 0}], [])) == {"lost": 1}


def test_what_was_accepted_dies_with_the_life_of_its_publisher(judge: Judge) -> None:
    first = [{"type": "started"}, offered(0), outcome("accepted", 0)]
    second = [offered(1), outcome("accepted", 1), {"type": "flushed", "left": 0}]
    assert blamed(judge([*first, {"type": "started"}, *second], [handled(1)])) == {}
    assert blamed(judge([*first, *second], [handled(1)])) == {"lost": 1}


def test_a_failure_may_be_told_before_the_call_returned(judge: Judge) -> None:
    published = [offered(0), outcome("failed", 0), outcome("accepted", 0), {"type": "flushed", "left": 0}]
    assert blamed(judge(published, [])) == {}


def test_what_somebody_deleted_is_promised_no_longer(judge: Judge) -> None:
    published = [offered(0, at=1), outcome("acknowledged", 0), offered(1, at=3), outcome("acknowledged", 1)]
    erased = {"type": "erased", "at": 2}
    assert blamed(judge([*published, erased], [])) == {"lost": 1}
    assert blamed(judge([*published, erased], [handled(1)])) == {}


def test_what_failed_may_arrive_or_not(judge: Judge) -> None:
    published = [offered(0), outcome("failed", 0, reason="no"), offered(1), outcome("failed", 1, reason="no")]
    assert blamed(judge(published, [handled(1)])) == {}


def test_dead_letters_are_not_lost(judge: Judge) -> None:
    assert blamed(judge(TWO, [handled(0), outcome("dead_lettered", 1, pool="p")])) == {}


def test_repetitions_have_a_bound(judge: Judge) -> None:
    listened = [handled(0), handled(1), handled(0, 2), handled(1, 3)]
    assert blamed(judge(TWO, listened, p=2)) == {}
    verdict = judge(TWO, listened, p=1)
    assert blamed(verdict) == {"beyond_bound": 1}
    assert verdict.repeated == 2


def test_first_handled_in_another_order_than_offered_is_reordered(judge: Judge) -> None:
    published = [*TWO, offered(2), outcome("acknowledged", 2)]
    assert blamed(judge(published, [handled(0), handled(2, 1), handled(1, 2)])) == {"reordered": 1}


def test_what_a_dead_publisher_had_sent_may_come_late_but_in_its_own_order(judge: Judge) -> None:
    born = {"type": "started"}
    first = [born, *(line for n in range(4) for line in (offered(n), outcome("accepted", n)))]
    published = [*first, born, offered(4), outcome("accepted", 4), {"type": "flushed", "left": 0}]
    late = [handled(0), handled(4, 1), handled(1, 2), handled(2, 3), handled(3, 4)]
    assert blamed(judge(published, late)) == {}
    among_themselves = [handled(0), handled(4, 1), handled(2, 2), handled(1, 3)]
    assert blamed(judge(published, among_themselves)) == {"reordered": 1}
    # What was acknowledged before it died keeps its order before what comes after.
    assert blamed(judge([*first, outcome("acknowledged", 1), *published[len(first) :]], late)) == {
        "reordered": 1
    }


def test_going_back_to_the_last_commit_is_no_reordering(judge: Judge) -> None:
    published = [*TWO, offered(2), outcome("acknowledged", 2)]
    listened = [handled(0, 0), handled(1, 1), handled(0, 2), handled(1, 3), handled(2, 4)]
    assert blamed(judge(published, listened, p=2)) == {}


def test_between_keys_topics_publishers_or_without_a_key_there_is_no_order(
    judge: Judge, tmp_path: pathlib.Path
) -> None:
    published = [offered(0, key="j"), offered(1), offered(2, topic="u"), offered(3), offered(4, key=None)]
    other = History(tmp_path / "other.history")
    other.write("offered", id="b-0", topic="t", key="k", number=0)
    at_b = {"type": "handled", "id": "b-0", "pool": "p", "at": 9}
    listened = [handled(4, 0), handled(2, 1), handled(1, 2), handled(3, 3), handled(0, 4), at_b]
    assert blamed(judge(published, listened)) == {}


def test_what_was_refused_comes_later_than_its_neighbours(judge: Judge) -> None:
    refused = outcome("refused", 0, pool="p")
    verdict = judge(TWO, [refused, handled(1, 1), handled(0, 2)])
    assert blamed(verdict) == {}
    assert verdict.refused == 1


def test_the_journals_of_several_listeners_are_put_in_the_order_of_time(judge: Judge) -> None:
    assert blamed(judge(TWO, [handled(1, 8), handled(0, 7)])) == {}


@pytest.mark.parametrize(
    "listened",
    [
        [handled(7)],
        [handled(0) | {"number": 1}],
        [handled(0, key="other")],
        [handled(0, topic="u")],
        [handled(0, 1, message_id="x"), handled(0, 2, message_id="y")],
    ],
)
def test_what_nobody_offered_so_is_invented(judge: Judge, listened: list[Event]) -> None:
    assert blamed(judge([offered(0)], listened, p=1)) == {"invented": 1}


def test_acknowledged_without_being_offered_is_invented(judge: Judge) -> None:
    assert blamed(judge([outcome("acknowledged", 0)], [handled(0)])) == {"invented": 2}


def test_a_pool_handles_only_what_it_listens_to(judge: Judge) -> None:
    listening = {"type": "listening", "pool": "p", "topics": ["t"]}
    published = [*TWO, offered(2, topic="u"), outcome("acknowledged", 2)]
    assert blamed(judge(published, [listening, handled(0), handled(1)])) == {}
    assert blamed(judge(published, [listening, handled(0), handled(1), handled(2)])) == {"wrong_pool": 1}


def test_what_one_pool_refused_comes_again_to_that_pool_alone(judge: Judge) -> None:
    refused = outcome("refused", 0, pool="q")
    q = [refused, handled(1, pool="q"), handled(0, 2, pool="q")]
    assert blamed(judge(TWO, [*q, handled(0), handled(1)], p=0, q=0)) == {}
    verdict = judge(TWO, [*q, handled(0), handled(1), handled(0, 2)], p=0, q=0)
    assert blamed(verdict) == {"beyond_bound": 1, "wrong_pool": 1}


@pytest.mark.parametrize(
    ("more", "location"),
    [
        ([outcome("failed", 0, reason="no")], {}),
        ([outcome("acknowledged", 1, partition=0, offset=5)], {}),
        ([], {"partition": 0, "offset": 6}),
    ],
)
def test_acknowledged_though_failed(judge: Judge, more: list[Event], location: Event) -> None:
    published = [offered(0), outcome("acknowledged", 0, partition=0, offset=5), offered(1), *more]
    assert blamed(judge(published, [handled(0, **location), handled(1)])) == {"false_acknowledged": 1}


def receipts(*locations: tuple[int, int]) -> Event:
    return {"type": "receipts", "ids": ["a-0", "a-1"], "locations": locations}


def at(number: int, offset: int, **more: Any) -> Event:
    return handled(number, partition=0, offset=offset, **more)


@pytest.mark.parametrize(
    ("locations", "listened", "blames"),
    [
        ([(0, 5), (0, 6)], [at(0, 5), at(1, 6)], {}),
        ([(0, 6), (0, 5)], [at(0, 5), at(1, 6)], {}),
        ([(0, 5), (0, 6)], [at(0, 5), at(1, 7)], {"false_acknowledged": 1}),
        ([(0, 5), (0, 5)], [at(0, 5), at(1, 6)], {"false_acknowledged": 2}),
        # The broker does not know the offsets any more.
        ([(0, -1), (0, -1)], [at(0, 5), at(1, 6)], {}),
        # No listener has read so far.
        ([(0, 5), (0, 9)], [at(0, 5), at(1, 7)], {}),
        # What came back after a refusal comes from somewhere else.
        ([(0, 5), (0, 6)], [at(0, 5), handled(1)], {}),
    ],
)
def test_receipts_of_many_say_where_these_are(
    judge: Judge, locations: list[tuple[int, int]], listened: list[Event], blames: dict[str, int]
) -> None:
    assert blamed(judge([*TWO, receipts(*locations)], listened)) == blames


def test_what_was_sent_twice_may_come_first_from_where_no_receipt_says(judge: Judge) -> None:
    twice = [at(0, 5, at=0), at(1, 6, at=1), at(0, 7, at=2), at(1, 8, at=3)]
    assert blamed(judge([*TWO, receipts((0, 7), (0, 8))], twice, p=2)) == {}


def test_places_begin_anew_when_a_topic_was_deleted(judge: Judge) -> None:
    published = [offered(0, at=1), outcome("acknowledged", 0, partition=0, offset=5)]
    again = [offered(1, at=3), outcome("acknowledged", 1, partition=0, offset=5)]
    erased = {"type": "erased", "at": 2}
    assert blamed(judge([*published, erased, *again], [at(1, 5)])) == {}
    assert blamed(judge([*published, *again], [at(0, 5), at(1, 5)])) == {"false_acknowledged": 1}


def test_what_comes_back_was_refused(judge: Judge) -> None:
    refused = outcome("refused", 0, pool="p")
    returned = handled(0, returned=True)
    assert blamed(judge(TWO, [refused, returned, handled(1)])) == {}
    assert blamed(judge(TWO, [returned, handled(1)])) == {"invented": 1}


def test_a_line_that_was_being_written_does_not_count(judge: Judge, tmp_path: pathlib.Path) -> None:
    judge(TWO, [handled(0)])
    with (tmp_path / "listener.history").open("a") as file:
        file.write(json.dumps(handled(1)))
    assert blamed(checker.check(tmp_path, {"p": 0})) == {"lost": 1}


def test_as_a_program_it_needs_nothing_but_python(tmp_path: pathlib.Path) -> None:
    history = History(tmp_path / "one.history")
    history.write("offered", id="a-0", topic="t", key="k", number=0)
    history.write("acknowledged", id="a-0")
    # Isolated, without site-packages: nothing of the product can be imported.
    command = [sys.executable, "-I", "-S", checker.__file__, str(tmp_path), "p=3"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "lost: a-0: pool p never handled it" in ended.stdout
    history.write("handled", id="a-0", pool="p")
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("offered 1 acknowledged 1")


def test_a_second_life_goes_on_behind_the_last_whole_line(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "ann.history"
    History(path).write("offered", id="1")
    with path.open("a") as file:
        file.write('{"type": "ac')  # where it was killed
    History(path).write("offered", id="2")
    assert [line["id"] for line in checker.read_events(path)] == ["1", "2"]
