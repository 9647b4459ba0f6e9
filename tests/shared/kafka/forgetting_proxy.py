"""A proxy before a broker that can leave the brokers out of what it tells of the cluster.

A cluster whose brokers were all away answers so for a moment when they come back. A broker
that is stopped and goes on does it once in ten times; this does it each time that it is told to.
"""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

PRODUCE = 0
METADATA = 3
HEAD = 9  # bytes before the brokers: correlation id, no tags, throttle time
NONE = b"\x01"  # an array of length 0
PATIENCE = 1.0


class ForgettingProxy:
    """Listens on ``port``; ``target`` is the broker's. While ``forgets`` it counts what it ``spoilt``."""

    def __init__(self) -> None:
        self.target = 0
        self.forgets = False
        self.spoilt = 0
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def close(self) -> None:
        for each in (self._listening, *self._sockets):
            _shut(each)
        for thread in self._threads:
            thread.join()
        for each in (self._listening, *self._sockets):
            each.close()

    def _start(self, work: Callable[..., None], *arguments: object) -> None:
        self._threads.append(threading.Thread(target=work, args=arguments))
        self._threads[-1].start()

    def _accept(self) -> None:
        while True:
            try:
                client = self._listening.accept()[0]
            except OSError:
                return
            self._sockets.append(client)
            try:
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                _shut(client)
                continue
            self._sockets.append(server)
            asked: set[bytes] = set()
            self._start(self._ask, client, server, asked)
            self._start(self._answer, client, server, asked)

    def _ask(self, client: socket.socket, server: socket.socket, asked: set[bytes]) -> None:
        for frame in _frames(client):
            if int.from_bytes(frame[:2], "big") == METADATA:
                asked.add(frame[4:8])
            _send(server, frame)
        _shut(client, server)

    def _answer(self, client: socket.socket, server: socket.socket, asked: set[bytes]) -> None:
        for frame in _frames(server):
            told = frame
            if frame[:4] in asked:
                asked.discard(frame[:4])
                if self.forgets:
                    self.spoilt += 1
                    told = _without_brokers(frame)
            _send(client, told)
        _shut(client, server)


class RefusingProxy(ForgettingProxy):
    """Has the broker refuse the first request to produce to ``topic``, and take the next.

    So it is with a topic just made, of which the broker hears between the two.
    """

    def __init__(self, topic: str) -> None:
        self._topic, self._another = topic.encode(), b"x" * len(topic)
        self.refused: bytes | None = None
        self._next = threading.Event()
        super().__init__()

    def _ask(self, client: socket.socket, server: socket.socket, asked: set[bytes]) -> None:
        for frame in _frames(client):
            told = frame
            if int.from_bytes(frame[:2], "big") == PRODUCE and self._topic in frame:
                if self.refused is None:
                    self.refused = frame[4:8]
                    told = frame.replace(self._topic, self._another, 1)
                else:
                    self._next.set()
            _send(server, told)
        _shut(client, server)

    def _answer(self, client: socket.socket, server: socket.socket, asked: set[bytes]) -> None:
        for frame in _frames(server):
            told = frame
            if frame[:4] == self.refused and self._another in frame:
                # The next is on the way when this is heard, unless a client waits for its answer.
                self._next.wait(PATIENCE)
                told = frame.replace(self._another, self._topic, 1)
            _send(client, told)
        _shut(client, server)


class LockingProxy(ForgettingProxy):
    """Lets nobody in any more once somebody produces, until it is told the ``target`` again."""

    def __init__(self) -> None:
        self._locks = True
        super().__init__()

    def _ask(self, client: socket.socket, server: socket.socket, asked: set[bytes]) -> None:
        for frame in _frames(client):
            if self._locks and int.from_bytes(frame[:2], "big") == PRODUCE:
                self._locks, self.target = False, 0
            _send(server, frame)
        _shut(client, server)


def _frames(source: socket.socket) -> Iterator[bytes]:
    with contextlib.suppress(OSError), source.makefile("rb") as stream:
        while size := stream.read(4):
            yield stream.read(int.from_bytes(size, "big"))


def _send(sink: socket.socket, frame: bytes) -> None:
    with contextlib.suppress(OSError):
        sink.sendall(len(frame).to_bytes(4, "big") + frame)


def _shut(*sockets: socket.socket) -> None:
    for each in sockets:
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


def _without_brokers(frame: bytes) -> bytes:
    """Take the brokers out of an answer as it is since version 9 of its kind."""
    count, at = _number(frame, HEAD)
    for _ in range(count - 1):
        at += 4  # its id
        for more in (4, 0):  # the name is followed by the port, the rack by tags
            size, at = _number(frame, at)
            at += max(0, size - 1) + more
        tags, at = _number(frame, at)
        assert not tags
    return frame[:HEAD] + NONE + frame[at:]


def _number(frame: bytes, at: int) -> tuple[int, int]:
    """Read a number of seven bits to the byte; return it and what is behind."""
    value = shift = 0
    while True:
        value |= (frame[at] & 0x7F) << shift
        shift += 7
        at += 1
        if not frame[at - 1] & 0x80:
            return value, at
