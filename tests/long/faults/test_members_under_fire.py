"""Members of a pool that come and go, or that take long for a notification: nothing is lost."""

import time

from faults.harness import Case
from faults.processes import BATCH_RECORDS, SESSION_SECONDS, SOAK_FACTOR

COUNT = 1_500 * SOAK_FACTOR
QUICK_SECONDS = 0.001  # seconds for each, so that a change hits members at work


def test_members_join_and_leave_under_load(case: Case) -> None:
    steady = case.listen("steady", "main", work_seconds=QUICK_SECONDS)
    publisher = case.publish("publisher", 2 * COUNT, rate=COUNT / 6)
    steady.wait_for("handled", 1)
    changes = 0
    while publisher.is_running():
        extra = case.listen(f"extra-{changes}", "main", work_seconds=QUICK_SECONDS)
        extra.wait_for("listening", 1)
        # Members learn of a new one at their next heartbeat; one that left sooner would have no share.
        while not extra.count("handled") and publisher.is_running():
            time.sleep(0.1)
        extra.terminate()
        changes += 2
    # At each change both members may have been handling a batch.
    verdict = case.finish({"main": 2 * changes * BATCH_RECORDS})
    assert verdict.is_valid, verdict
    assert sum(each.count("handled") for each in case.listeners[1:]), "no new member had a share"


def test_an_endpoint_slower_than_the_poll_interval(case: Case) -> None:
    case.publish("publisher", 2, keys=1).wait_for_exit()
    url = case.bus.url + ("" if case.bus.log else f"&poll_interval={SESSION_SECONDS}")
    slow = case.listen("slow", "main", work_seconds=SESSION_SECONDS + 1, url=url)
    verdict = case.finish({"main": 0})
    assert verdict.is_valid, verdict
    assert slow.count("handled") == 2
