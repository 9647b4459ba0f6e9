"""Says why no broker can be reached, in the same words for each client library.

The libraries say it late, only in their logs, or in words of their own: kafka-python reports a timeout
after five seconds, and librdkafka says for a wrong host name that an authority may be missing. So we
try the steps of a connection ourselves, once.
"""

import contextlib
import functools
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures

from notifier_kafka.errors import ConfigurationError, TransportUnavailable

from .properties import addresses, spell

STEP_TIMEOUT_SECONDS = 1.0  # for each step with each broker; a timeout came before already
ALERT_TIMEOUT_SECONDS = 0.3  # in which a broker that refuses our certificate says so
TLS_RECORD_BYTES = 16384  # at most
SETTABLE = {
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.endpoint.identification.algorithm",
    "ssl.key.location",
    "ssl.key.password",
}
CLIENT_CERTIFICATE = ("ssl.certificate.", "ssl.keystore.")
NO_ANSWER = "it accepts connections and does not answer: it hangs, or uses another security_protocol"
Address = tuple[str, int]


def unreached(given: Mapping[str, str]) -> TransportUnavailable:
    """Make the error that names each address with its reason. Blocks for seconds."""
    known = addresses(given)
    reasons = _asked(functools.partial(_why_not, given), known)
    found = "; ".join(f"{spell(*at)}: {why}" for at, why in zip(known, reasons, strict=True))
    return TransportUnavailable(f"no broker is reached: {found}")


def _asked(ask: Callable[[Address], str], known: Sequence[Address]) -> list[str]:
    try:
        # In parallel: many brokers that do not answer take no more time than one.
        with futures.ThreadPoolExecutor(len(known)) as pool:
            return list(pool.map(ask, known))
    except RuntimeError:
        # No thread can be started, as at an interpreter's exit.
        return list(map(ask, known))


def trouble(given: Mapping[str, str]) -> str | None:
    """Say why no broker is reached; None when one is, or when that is not known. Blocks for seconds."""
    reasons = str(unreached(given))
    not_ours = any(name.startswith(("proxy.", "ssl.")) and name not in SETTABLE for name in given)
    return None if not_ours or NO_ANSWER in reasons else reasons


def check_files(given: Mapping[str, str]) -> None:
    """Raise ``ConfigurationError`` for a TLS file that is missing or not valid."""
    if _encrypted(given):
        context(given)


def _why_not(given: Mapping[str, str], at: Address) -> str:
    try:
        with socket.create_connection(at, STEP_TIMEOUT_SECONDS) as connection:
            return _refusal(connection, at[0], given) if _encrypted(given) else _silence(connection, given)
    except socket.gaierror:
        return "no such host name"
    except TimeoutError:
        return "no answer to a connection"
    except OSError as error:
        return (error.strerror or str(error)).lower()
    except ConfigurationError as error:
        # A file that existed at the start: it is being renewed, or privileges were dropped.
        return str(error)


def _refusal(connection: socket.socket, host: str, given: Mapping[str, str]) -> str:
    try:
        encrypted = _Encrypted(connection, context(given), host)
        connection.settimeout(ALERT_TIMEOUT_SECONDS)
        encrypted.wait_for_answer()
    except ssl.SSLCertVerificationError as error:
        return f"TLS: its certificate is refused: {error.verify_message}"
    except TimeoutError:
        return NO_ANSWER
    except (ssl.SSLError, ConnectionError) as error:
        reason = getattr(error, "reason", None) or error.strerror
        if "CERTIFICATE" in str(reason):
            if any(name.startswith(CLIENT_CERTIFICATE) for name in given):
                # Java calls an expired certificate unknown.
                return f"TLS: it refuses our certificate: expired, or of an unknown authority: {reason}"
            return "TLS: it wants a client certificate, and [drivers_kafka] ssl_client_cert_file is not set"
        return f"TLS: {reason}: is security_protocol right for this port?"
    return NO_ANSWER


def _silence(connection: socket.socket, given: Mapping[str, str]) -> str:
    """Check whether a broker that does not answer plain text answers TLS."""
    anybody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    anybody.check_hostname = False
    anybody.verify_mode = ssl.CERT_NONE
    with contextlib.suppress(OSError):
        _Encrypted(connection, anybody)
        protocol = given.get("security.protocol", "PLAINTEXT")
        return f"it wants TLS, and [drivers_kafka] security_protocol is {protocol}"
    return NO_ANSWER


class _Encrypted:
    """A TLS connection. Python 3.11.7 leaves a socket open that was reset before the handshake."""

    def __init__(self, connection: socket.socket, agreed: ssl.SSLContext, host: str | None = None) -> None:
        self._connection = connection
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._talk = agreed.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self._until_done(self._talk.do_handshake)

    def wait_for_answer(self) -> None:
        """Wait for an answer, which may be a refusal, or for the end."""
        with contextlib.suppress(ssl.SSLEOFError, ssl.SSLZeroReturnError):
            self._until_done(lambda: self._talk.read(1))

    def _until_done(self, step: Callable[[], object]) -> None:
        while True:
            try:
                step()
            except ssl.SSLWantReadError:
                self._connection.sendall(self._outgoing.read())
                if received := self._connection.recv(TLS_RECORD_BYTES):
                    self._incoming.write(received)
                else:
                    self._incoming.write_eof()
            else:
                return


def _encrypted(given: Mapping[str, str]) -> bool:
    return given.get("security.protocol", "").endswith("SSL")


def context(given: Mapping[str, str]) -> ssl.SSLContext:
    """Make the TLS context that the properties describe."""
    authority, certificate = given.get("ssl.ca.location"), given.get("ssl.certificate.location")
    with _named("ssl_cafile", authority):
        made = ssl.create_default_context(cafile=authority)
    made.check_hostname = given.get("ssl.endpoint.identification.algorithm") != "none"
    if certificate:
        key = given.get("ssl.key.location")
        with _named("ssl_client_cert_file and ssl_client_key_file", f"{certificate}, {key}"):
            made.load_cert_chain(certificate, key, given.get("ssl.key.password", ""))
    return made


@contextlib.contextmanager
def _named(option: str, path: str | None) -> Iterator[None]:
    """Name the file, which neither kind of error does."""
    try:
        yield
    except OSError as error:  # ssl.SSLError is one as well
        reason = getattr(error, "reason", None)
        text = reason.replace("_", " ").lower() if reason else error.strerror
        raise ConfigurationError(f"[drivers_kafka] {option} = {path}: {text}") from None
