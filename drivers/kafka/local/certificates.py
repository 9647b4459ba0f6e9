"""A private certificate authority and the certificates it signs, made with the command ``openssl``.

Keys are on the curve P-256, unencrypted, in files that only their owner may read. Kafka reads
PEM, so the ``keytool`` of a JDK is not needed.
"""

import ipaddress
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from notifier_kafka.errors import ConfigurationError, DriverLoadFailure

_VALID_DAYS = "3650"
_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


class Authority:
    """An authority in a directory: ``ca.pem``, and ``NAME.pem`` and ``NAME.key`` for each signed name."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @property
    def certificate(self) -> Path:
        """The certificate of the authority, which clients and servers trust."""
        return self.directory / "ca.pem"

    def certificate_of(self, name: str) -> Path:
        """The certificate of a name."""
        return self.directory / f"{name}.pem"

    def key_of(self, name: str) -> Path:
        """The private key of a name."""
        return self.directory / f"{name}.key"

    @property
    def keystore(self) -> Path:
        """Key and certificate of the brokers in one file, as Kafka reads them."""
        return self.directory / "server.keystore"

    def create(self) -> None:
        """Create the authority, unless it exists."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self.certificate.exists():
            self._openssl(
                *("req", "-x509", "-days", _VALID_DAYS, *_KEY, "-subj", "/CN=notifier-kafka local authority"),
                *("-addext", "basicConstraints=critical,CA:TRUE"),
                *("-addext", "keyUsage=critical,keyCertSign,cRLSign"),
                *("-keyout", str(self.directory / "ca.key"), "-out", str(self.certificate)),
            )

    def sign(self, name: str, hosts: Sequence[str] = ()) -> None:
        """Create a key and a certificate, unless they exist: for servers at ``hosts``, or for a client."""
        certificate = self.certificate_of(name)
        if certificate.exists():
            return
        request = self.directory / f"{name}.csr"
        extensions = self.directory / f"{name}.ext"
        usage = "serverAuth,clientAuth" if hosts else "clientAuth"
        names = f"subjectAltName={','.join(map(_alternative_name, hosts))}\n" if hosts else ""
        extensions.write_text(f"basicConstraints=CA:FALSE\nextendedKeyUsage={usage}\n{names}")
        self._openssl(
            *("req", "-new", *_KEY, "-subj", f"/CN={name}"),
            *("-keyout", str(self.key_of(name)), "-out", str(request)),
        )
        self._openssl(
            *("x509", "-req", "-days", _VALID_DAYS, "-in", str(request), "-extfile", str(extensions)),
            *("-CA", str(self.certificate), "-CAkey", str(self.directory / "ca.key"), "-CAcreateserial"),
            *("-out", str(certificate)),
        )
        request.unlink()
        extensions.unlink()

    def _openssl(self, *arguments: str) -> None:
        program = shutil.which("openssl")
        if not program:
            raise DriverLoadFailure(
                "TLS",
                "the command openssl, which creates the certificates, is not on the PATH; install openssl",
            )
        ran = subprocess.run(  # noqa: S603 - built here
            [program, *arguments], capture_output=True, text=True, check=False, umask=0o077
        )
        if ran.returncode:
            printed = ran.stderr.strip().splitlines() or ["it printed nothing"]
            raise ConfigurationError(f"openssl {arguments[0]} failed in {self.directory}: {printed[-1]}")


def _alternative_name(host: str) -> str:
    try:
        return f"IP:{ipaddress.ip_address(host)}"
    except ValueError:
        return f"DNS:{host}"
