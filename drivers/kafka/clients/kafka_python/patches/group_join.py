"""Joins of a group that take longer than a poll, which kafka-python does not finish.

- The library leaves such a join running for the next poll to finish. But a join that ends between two
  polls is started again by the next one, and for that every other member must join again. Two members that
  are polled in turn, or one that a keep-alive thread polls once a second, never settle.
- A join for the sake of new partitions removes its own reason: the library then sees nothing left to finish.
- In a group whose members subscribe to different topics, the leader forgets the topics of the others while
  it joins, takes their return for a change, and has everybody join again. It does so too once it has asked
  for a topic of theirs that does not exist.
- A consumer that is closed while it joins does not leave the group: the group waits for its session to end.

All is mended by replacing methods of one coordinator, the consumer's own. Without it, the tests of members
that are polled in turn, that leave while they join, and of a rebalance while an endpoint works, fail.

Waits for: nothing, none of the four is reported upstream yet. (Pull request 1695 mended the like of
the first in version 1.4.)
"""

import contextlib
from typing import Any

from kafka import errors as kafka_errors
from kafka.structs import MemberState

# A poll with a shorter timeout gives a join no time to be begun or finished.
MIN_JOIN_POLL_MS = 50


class GroupJoin:
    """Watches over the joins of one consumer."""

    def __init__(self, consumer: Any) -> None:
        self._coordinator = coordinator = consumer._coordinator
        self._prepare = coordinator._on_join_prepare_async
        self._join = coordinator._do_join_and_sync_async
        coordinator._on_join_prepare_async = self._prepare_anew
        coordinator._do_join_and_sync_async = self._join_once
        # Topics that no member wants any more stay watched; when one changes, that costs a join.
        coordinator._subscription.reset_group_subscription = lambda: None
        self._snapshot = coordinator._build_metadata_snapshot
        coordinator._build_metadata_snapshot = self._existing_topics
        self._last_join: tuple[Any, Any] | None = None

    def before_poll(self, timeout_ms: int) -> int:
        """Have the poll finish a join that is under way; return the timeout for that poll."""
        coordinator = self._coordinator
        if coordinator.rejoining:
            coordinator.rejoin_needed = True
        settled = coordinator.coordinator_id is not None and not coordinator.rejoin_needed
        # A join that waits for other members goes on by itself.
        return timeout_ms if settled or self._is_joining() else max(timeout_ms, MIN_JOIN_POLL_MS)

    def _is_joining(self) -> bool:
        task = self._coordinator._join_task
        return task is not None and not task.is_done

    def before_close(self, timeout_ms: int) -> None:
        """Have the close leave the group also for a member that is still joining."""
        with contextlib.suppress(RuntimeError):  # its event loop has ended
            self._coordinator._net.run(self._leave, timeout_ms)

    def _existing_topics(self, *arguments: Any) -> dict[str, set[int]]:
        """Leave out topics that do not exist: one is a change when it appears, not when it is asked for."""
        return {topic: parts for topic, parts in self._snapshot(*arguments).items() if parts}

    async def _leave(self, timeout_ms: int) -> None:
        coordinator, joining = self._coordinator, self._is_joining()
        task, manager = coordinator._join_task, coordinator._manager
        with contextlib.suppress(kafka_errors.KafkaError):
            if joining and not coordinator._generation.has_member_id():
                # The answer, which comes at once, is an id to join with: from then on the group waits for us.
                await manager.wait_for(task, timeout_ms)
            elif joining:
                # While a join waits for other members the broker reads nothing more from its connection.
                connection = manager.get_connection(coordinator.coordinator_id)
                connection.close()
                await manager.wait_for(connection.close_future, timeout_ms)
        if coordinator._generation.has_member_id():
            coordinator.state = MemberState.REBALANCING

    async def _prepare_anew(self, *arguments: Any, **named: Any) -> Any:
        """Prepare a join for a new reason: the result of the last one was used."""
        self._last_join = None
        return await self._prepare(*arguments, **named)

    async def _join_once(self) -> Any:
        """Join, or return the result of the last join when nobody has used it yet."""
        if self._last_join is not None and self._last_join[0] is self._coordinator._generation:
            return self._last_join[1]
        assignment = await self._join()
        self._last_join = (self._coordinator._generation, assignment)
        return assignment
