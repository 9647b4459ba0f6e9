"""A TCP proxy on loopback that disturbs connections: a bad network without any privileges."""

import contextlib
import random
import socket
import threading
import time
from typing import NamedTuple

CHUNK_BYTES = 65536
RETRANSMISSION_SECONDS = 0.25  # the delay that a lost segment causes


class LinkQuality(NamedTuple):
    """``delay`` seconds for each chunk each way; ``loss`` is the share of chunks that come late."""

    delay: float = 0.0
    loss: float = 0.0


class Link:
    """Two sockets and the threads between them."""

    def __init__(self, proxy: "Proxy", client: socket.socket, server: socket.socket) -> None:
        self._proxy = proxy
        self.client = client
        self.server = server
        self.half_closed = False
        for pair in ((client, server), (server, client)):
            threading.Thread(target=self._forward, args=pair, daemon=True).start()

    def close(self) -> None:
        for each in (self.client, self.server):
            _shut(each)

    def close_server_side(self) -> None:
        """Close the server's side; the client notices nothing."""
        self.half_closed = True
        _shut(self.server)

    def _forward(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(CHUNK_BYTES):
                self._proxy.wait()
                if self.half_closed:
                    continue
                sink.sendall(data)
        except OSError:
            pass
        if not self.half_closed or source is self.client:
            self.close()


class Proxy:
    """Listens on a free ``port`` and forwards to the port ``target``, which is set later."""

    def __init__(self) -> None:
        self.quality = LinkQuality()
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
        for link in self._take_links():
            link.close()

    def repair(self) -> None:
        self._refuses = False
        self.quality = LinkQuality()

    def half_open(self) -> None:
        """Leave clients with connections that the server has closed. New ones work."""
        for link in self._take_links():
            link.close_server_side()

    def wait(self) -> None:
        delay, loss = self.quality
        if delay:
            time.sleep(delay + (RETRANSMISSION_SECONDS if random.random() < loss else 0.0))

    def close(self) -> None:
        self._listening.close()
        self.cut()

    def _take_links(self) -> list[Link]:
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
