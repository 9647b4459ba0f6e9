"""Whether a consumer has a connection that works: without one its polls return nothing and do not raise.

Waits for: issue 1474, closed as intended: a consumer goes on trying while its brokers are away.
"""

from typing import Any


def is_connected(consumer: Any) -> bool:
    """Tell whether a connection works; the consumer's metrics also count attempts."""
    connections = consumer._client._manager._conns
    return any(one.connected for one in list(connections.values()))
