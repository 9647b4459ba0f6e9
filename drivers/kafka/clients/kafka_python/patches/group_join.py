"""Joins of a group that outlast a poll, which kafka-python does not see through.

The library leaves such a join running for the next poll to finish. But when it ends
between two polls, the next one begins it anew, for which every other member must join
again: two members that are polled in turn, or one that a keeper polls once a second, never
settle. A join for the sake of new partitions answers its own reason, after which the
library sees nothing left to finish. And in a group whose members subscribe to different
topics, the leader forgets those of the others while it joins, takes their return for a
change, and has everybody join again; it does so too once it has asked for a topic of
theirs that is not there. Who closes while it joins says no good-bye, and the group waits
for it until its session is over.

All is mended from outside, on the library's private parts. The tests of members that are
polled in turn, that leave while they join, and of a rebalance while an endpoint works,
fail without it.
"""

import contextlib
from typing import Any

from kafka import errors as kafka_errors
from kafka.structs import MemberState

# A poll that may not wait gives no join the time to be begun or finished.
LEAST_MS = 50


class Joins:
    """Watches over the joins of one coordinator."""

    def __init__(self, coordinator: Any) -> None:
        self._coordinator = coordinator
        self._prepare = coordinator._on_join_prepare_async  # noqa: SLF001
        self._join = coordinator._do_join_and_sync_async  # noqa: SLF001
        coordinator._on_join_prepare_async = self._prepared  # noqa: SLF001
        coordinator._do_join_and_sync_async = self._joined  # noqa: SLF001
        # What no member wants any more is watched on; that costs a join when it changes.
        coordinator._subscription.reset_group_subscription = lambda: None  # noqa: SLF001
        self._snapshot = coordinator._build_metadata_snapshot  # noqa: SLF001
        coordinator._build_metadata_snapshot = self._seen  # noqa: SLF001
        self._ended: tuple[Any, Any] | None = None

    def before_poll(self, timeout_ms: int) -> int:
        """Have the poll finish a join that is on its way; return how long it may take."""
        coordinator = self._coordinator
        if coordinator.rejoining:
            coordinator.rejoin_needed = True
        settled = coordinator.coordinator_id is not None and not coordinator.rejoin_needed
        # One that waits for other members goes on by itself.
        return timeout_ms if settled or self._joining() else max(timeout_ms, LEAST_MS)

    def _joining(self) -> bool:
        task = self._coordinator._join_task  # noqa: SLF001
        return task is not None and not task.is_done

    def before_close(self, timeout_ms: int) -> None:
        """Have the close say good-bye for a member that is still joining."""
        with contextlib.suppress(RuntimeError):  # its event loop has ended
            self._coordinator._net.run(self._leave, timeout_ms)  # noqa: SLF001

    def _seen(self, *arguments: Any) -> dict[str, set[int]]:
        """A topic that is not there changes when it appears, and not when it is asked for."""
        return {topic: parts for topic, parts in self._snapshot(*arguments).items() if parts}

    async def _leave(self, timeout_ms: int) -> None:
        coordinator, joining = self._coordinator, self._joining()
        task, manager = coordinator._join_task, coordinator._manager  # noqa: SLF001
        with contextlib.suppress(kafka_errors.KafkaError):
            if joining and not coordinator._generation.has_member_id():  # noqa: SLF001
                # The answer, which comes at once, is an id to join with: from then on the group waits.
                await manager.wait_for(task, timeout_ms)
            elif joining:
                # While a join waits for other members the broker reads nothing more from its connection.
                connection = manager.get_connection(coordinator.coordinator_id)
                connection.close()
                await manager.wait_for(connection.close_future, timeout_ms)
        if coordinator._generation.has_member_id():  # noqa: SLF001
            coordinator.state = MemberState.REBALANCING

    async def _prepared(self, *arguments: Any, **named: Any) -> Any:
        """A join for another reason: what the last one brought was looked at."""
        self._ended = None
        return await self._prepare(*arguments, **named)

    async def _joined(self) -> Any:
        """Join, unless the last attempt did and nobody saw it."""
        if self._ended is not None and self._ended[0] is self._coordinator._generation:  # noqa: SLF001
            return self._ended[1]
        assignment = await self._join()
        self._ended = (self._coordinator._generation, assignment)  # noqa: SLF001
        return assignment
