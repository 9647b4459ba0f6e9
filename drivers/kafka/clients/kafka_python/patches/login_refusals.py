"""Why a broker refused a connection is remembered; the library reports only a timeout.

Waits for: nothing, this is not reported upstream yet. Pull request 2994, which 3.0.12 has, raises a
refused login in a request to that broker; a client that is being made still ends with a timeout.
"""

from typing import Any

from kafka import errors as kafka_errors
from kafka.net.compat import KafkaNetClient
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector


class Connections(KafkaConnectionManager):  # type: ignore[misc]
    """Remembers the last refusal."""

    refusal: BaseException | None = None

    def get_connection(self, *args: Any, **kwargs: Any) -> Any:
        connection = super().get_connection(*args, **kwargs)
        connection.init_future.add_errback(self._remember)
        return connection

    async def _build_transport(self, *args: Any, **kwargs: Any) -> Any:
        """Read the last answer: the library drops data that comes together with the end.

        A broker that refuses a login gives the reason and closes the connection right after it.
        """
        transport = await super()._build_transport(*args, **kwargs)
        receive = transport._sock_recv

        def receive_data_first() -> tuple[bytes, BaseException | None]:
            data, error = receive()
            return data, None if data else error  # the error comes again with the next call

        transport._sock_recv = receive_data_first
        return transport

    def _remember(self, error: BaseException) -> None:
        # An attempt that our own timeout ends is not an answer, and must not hide the one before.
        if isinstance(error, kafka_errors.BrokerResponseError) and not error.retriable:
            self.refusal = error


class NetClients:
    """Makes the network client for one producer, consumer or admin client, with ``Connections``."""

    def __init__(self, *, create_topics: bool) -> None:
        """``create_topics`` is the setting allow_auto_create_topics."""
        self._create_topics = create_topics
        self.client: Any = None
        self._connections: Connections | None = None

    def __call__(self, **configs: Any) -> Any:
        loop = NetworkSelector(**configs)
        self._connections = Connections(loop, **configs)
        # The setting does not reach the part that asks for metadata. Not reported upstream yet.
        self._connections.cluster.config["allow_auto_create_topics"] = self._create_topics
        self.client = KafkaNetClient(loop, self._connections, **configs)
        return self.client

    @property
    def refusal(self) -> BaseException | None:
        return self._connections.refusal if self._connections else None
