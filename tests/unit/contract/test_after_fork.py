"""Objects that begin anew in a child process."""

import os
import sys

from notifier_kafka.contract import after_fork


class Forked:
    def __init__(self) -> None:
        self.started_afresh = 0

    def start_afresh(self) -> None:
        self.started_afresh += 1


def test_each_member_starts_afresh_in_a_child_and_not_in_the_parent() -> None:
    forked = after_fork.renewed()
    one, other = Forked(), Forked()
    forked.add(one)

    if not (child := os.fork()):
        # In the child: no exception may come back into pytest.
        os._exit((one.started_afresh, other.started_afresh) != (1, 0))

    _, status = os.waitpid(child, 0)
    assert status == 0
    assert one.started_afresh == 0


def test_members_are_not_kept_alive() -> None:
    forked = after_fork.renewed()
    one = Forked()
    forked.add(one)
    assert len(forked) == 1

    del one

    assert len(forked) == 0


def test_an_object_that_is_never_freed_has_one_more_reference() -> None:
    thing = object()
    before = sys.getrefcount(thing)

    after_fork.never_free(thing)

    assert sys.getrefcount(thing) == before + 1
