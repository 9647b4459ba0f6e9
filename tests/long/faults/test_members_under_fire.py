"""Members of a pool that come and go, or are at work for long: they share the work and lose none of it."""

import time

from faults.harness import BATCH, LOAD, SESSION, Scene

COUNT = 1_500 * LOAD
QUICK = 0.001  # seconds for each, so that a change hits members at work


def test_members_join_and_leave_under_load(scene: Scene) -> None:
    steady = scene.listen("steady", "crew", work=QUICK)
    publisher = scene.publish("publisher", 2 * COUNT, rate=COUNT / 6)
    steady.await_count("handled", 1)
    changes = 0
    while publisher.running():
        guest = scene.listen(f"guest-{changes}", "crew", work=QUICK)
        guest.await_count("listening", 1)
        # Members hear of a guest at their next heartbeat; one that left sooner would have no share.
        while not guest.count("handled") and publisher.running():
            time.sleep(0.1)
        guest.end()
        changes += 2
    # With each of them a batch of either member may have been under way.
    verdict = scene.finish({"crew": 2 * changes * BATCH})
    assert verdict.faultless, verdict
    assert sum(each.count("handled") for each in scene.listeners[1:]), "no guest had a share"


def test_an_endpoint_slower_than_the_poll_interval(scene: Scene) -> None:
    scene.publish("publisher", 2, keys=1).await_end()
    url = scene.bus.url + ("" if scene.bus.log else f"&poll_interval={SESSION}")
    slow = scene.listen("slow", "crew", work=SESSION + 1, url=url)
    verdict = scene.finish({"crew": 0})
    assert verdict.faultless, verdict
    assert slow.count("handled") == 2
