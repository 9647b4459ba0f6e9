"""The security of the local cluster: its users, and the configuration files for clients."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from notifier_kafka.errors import ConfigurationError

from ..options import GROUP
from .certificates import Authority

# These may do everything, whatever the ACLs say: the brokers themselves, and an administrator.
BROKER = "broker"
ADMIN = "admin"
# This one may do what ACLs allow.
CLIENT = "client"

MECHANISMS = {"plain": ("PLAIN",), "scram": ("SCRAM-SHA-512", "SCRAM-SHA-256")}
PLAIN_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule"


@dataclass(frozen=True)
class Security:
    """How clients connect and log in. ``hosts`` are the names in the brokers' certificates."""

    tls: bool = False
    sasl: str | None = None
    acls: bool = False
    hosts: tuple[str, ...] = ("localhost", "127.0.0.1")

    def __post_init__(self) -> None:
        if self.sasl is not None and self.sasl not in MECHANISMS:
            raise ConfigurationError(f"sasl must be plain or scram, not {self.sasl!r}")
        if self.acls and not (self.tls or self.sasl):
            raise ConfigurationError("acls need to know the user of a client: add sasl or tls")

    def __str__(self) -> str:
        login = f"login by {self.sasl}" if self.sasl else "no login"
        return f"{'TLS' if self.tls else 'no TLS'}, {login}, {'ACLs' if self.acls else 'no ACLs'}"

    @property
    def open(self) -> bool:
        """Whether every client may connect, unencrypted and without a login."""
        return not (self.tls or self.sasl)

    @property
    def protocol(self) -> str:
        """The security protocol, as Kafka spells it."""
        if self.sasl:
            return "SASL_SSL" if self.tls else "SASL_PLAINTEXT"
        return "SSL" if self.tls else "PLAINTEXT"

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The SASL mechanisms, the preferred one first."""
        return MECHANISMS[self.sasl] if self.sasl else ()


def new_passwords() -> dict[str, str]:
    """Create a password for each user."""
    return {user: secrets.token_hex(16) for user in (BROKER, ADMIN, CLIENT)}


def scram_arguments(security: Security, passwords: Mapping[str, str]) -> list[str]:
    """Return the arguments of ``StorageTool format`` that create the SCRAM users."""
    if security.sasl != "scram":
        return []
    users = [
        f"{mechanism}=[name={user},password={passwords[user]}]"
        for mechanism in security.mechanisms
        for user in (ADMIN, CLIENT)
    ]
    return [argument for user in users for argument in ("--add-scram", user)]


def client_options(
    security: Security, passwords: Mapping[str, str], authority: Authority, user: str
) -> dict[str, str]:
    """Build the options of the group ``[drivers_kafka]`` with which ``user`` connects."""
    options = {"security_protocol": security.protocol}
    if security.sasl:
        options["sasl_mechanism"] = security.mechanisms[0]
        options["sasl_username"] = user
        options["sasl_password"] = passwords[user]
    if security.tls:
        options["ssl_cafile"] = str(authority.certificate)
        options["ssl_client_cert_file"] = str(authority.certificate_of(user))
        options["ssl_client_key_file"] = str(authority.key_of(user))
    return options


def ini(url: str, options: Mapping[str, str]) -> str:
    """Return the text of a configuration file with which notifier-kafka connects to the cluster."""
    # In oslo.config a dollar begins a reference to another option.
    lines = "".join(f"{name} = {value.replace('$', '$$')}\n" for name, value in options.items())
    return f"[DEFAULT]\ntransport_url = {url}\n\n[{GROUP}]\n{lines}"


def write_private(path: Path, text: str) -> None:
    """Write a file that no other user may read, because it contains passwords or keys."""
    path.touch(mode=0o600)
    path.chmod(0o600)
    path.write_text(text, encoding="utf-8")
