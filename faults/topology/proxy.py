"""A TCP proxy on loopback that does harm to connections: a bad network that needs no rights."""

import contextlib
import random
import socket
import threading
import time
from typing import NamedTuple

CHUNK = 65536
RETRANSMISSION = 0.25  # seconds; what a lost segment costs its connection


class Weather(NamedTuple):
    """``delay`` seconds for each chunk each way; ``loss`` is the share of chunks that come late."""

    delay: float = 0.0
    loss: float = 0.0


class Link:
    """Two sockets and the threads between them."""

    def __init__(self, proxy: "Proxy", client: socket.socket, server: socket.socket) -> None:
        self._proxy = proxy
        self.client = client
        self.server = server
        self.orphaned = False
        for pair in ((client, server), (server, client)):
            threading.Thread(target=self._carry, args=pair, daemon=True).start()

    def close(self) -> None:
        for each in (self.client, self.server):
            _shut(each)

    def orphan(self) -> None:
        """Let the server see the end of it, and the client nothing at all."""
        self.orphaned = True
        _shut(self.server)

    def _carry(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(CHUNK):
                self._proxy.wait()
                if self.orphaned:
                    continue
                sink.sendall(data)
        except OSError:
            pass
        if not self.orphaned or source is self.client:
            self.close()


class Proxy:
    """Listens on ``port``, a free one for 0, and carries to ``target``, which may be set later."""

    def __init__(self) -> None:
        self.weather = Weather()
        self.target = 0
        self._refuses = False
        self._links: list[Link] = []
        self._lock = threading.Lock()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """End all connections, and new ones at once."""
        self._refuses = True
        for link in self._taken():
            link.close()

    def mend(self) -> None:
        self._refuses = False
        self.weather = Weather()

    def half_open(self) -> None:
        """Leave clients with connections that the server has given up. New ones work."""
        for link in self._taken():
            link.orphan()

    def wait(self) -> None:
        delay, loss = self.weather
        if delay:
            time.sleep(delay + (RETRANSMISSION if random.random() < loss else 0.0))

    def close(self) -> None:
        self._listening.close()
        self.cut()

    def _taken(self) -> list[Link]:
        with self._lock:
            links, self._links = self._links, []
        return links

    def _accept(self) -> None:
        while True:
            try:
                client = self._listening.accept()[0]
            except OSError:
                return
            try:
                if self._refuses:
                    raise ConnectionRefusedError
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                client.close()
                continue
            for each in (client, server):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._links.append(Link(self, client, server))


def _shut(each: socket.socket) -> None:
    with contextlib.suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()
