"""Says why brokers cannot be reached.

The client libraries tell it late or in their logs only: kafka-python's error after five
seconds is that it timed out. So we try by ourselves, once, what a connection is made of.
"""

import socket
import ssl
from collections.abc import Mapping

from notifier_kafka.errors import ConfigurationError

from .properties import spell

PATIENCE = 1.0  # seconds for each step with each broker; it follows a timeout already


def why_not(servers: list[tuple[str, int]], properties: Mapping[str, str]) -> str:
    """Name each address with what is wrong there, in one line."""
    return "; ".join(f"{spell(*address)}: {_why_not(*address, properties)}" for address in servers)


def _why_not(host: str, port: int, properties: Mapping[str, str]) -> str:
    try:
        with socket.create_connection((host, port), PATIENCE) as connection:
            if properties.get("security.protocol", "").endswith("SSL"):
                with context(properties).wrap_socket(connection, server_hostname=host):
                    pass
    except socket.gaierror:
        return "no such host name"
    except ssl.SSLCertVerificationError as error:
        return f"TLS: its certificate is refused: {error.verify_message}"
    except ssl.SSLError as error:
        return f"TLS: {error.reason or error}: is security_protocol right for this port?"
    except TimeoutError:
        return "no answer to a connection"
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return "it accepts connections and does not answer: hung, or of another security_protocol"


def context(properties: Mapping[str, str]) -> ssl.SSLContext:
    """Make the TLS context that the properties describe; also tells a wrong file before use."""
    try:
        made = ssl.create_default_context(cafile=properties.get("ssl.ca.location"))
        made.check_hostname = properties.get("ssl.endpoint.identification.algorithm") != "none"
        certificate = properties.get("ssl.certificate.location")
        if certificate:
            made.load_cert_chain(
                certificate, properties.get("ssl.key.location"), properties.get("ssl.key.password", "")
            )
    except OSError as error:
        names = [
            value for name, value in properties.items() if name.startswith("ssl.") and "location" in name
        ]
        # ssl.SSLError is an OSError as well; neither says which of the files it is.
        raise ConfigurationError(f"TLS files {', '.join(names)}: {error.strerror or error}") from None
    return made
