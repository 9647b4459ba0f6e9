"""A socket whose connection failed is closed at once; kafka-python leaves it to the garbage collector.

Waits for: nothing, this is not reported upstream yet.
"""

from typing import Any

from kafka.net.inet import KafkaNetSocket

SCHEME = "direct"
PROXY_URL = f"{SCHEME}://"
"""The setting ``proxy_url`` that chooses the class below: sockets are chosen by a proxy's scheme."""


class ClosedOnFailure(KafkaNetSocket):  # type: ignore[misc]
    """Connects without a proxy."""

    SCHEMES = (SCHEME,)

    async def sock_connect(self, net: Any, sock: Any, sockaddr: Any, timeout_at: float | None = None) -> Any:
        try:
            return await super().sock_connect(net, sock, sockaddr, timeout_at=timeout_at)
        except BaseException:
            sock.close()
            raise
