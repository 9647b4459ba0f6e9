"""What is fuzzed: each a function of bytes that may raise errors of the package and nothing else."""

import pathlib
import tempfile
from collections.abc import Callable

from oslo_config import cfg

from notifier_kafka import client_config, codec, options, url
from notifier_kafka.channels import routing
from notifier_kafka.driver import Record
from notifier_kafka.errors import MessagingException

SECRET = "hunter2"
SECRET_PLACES = (b":hunter2@", b': "x required username=\\"u\\" password=\\"hunter2\\";"')
EXPECTED = (MessagingException,)
_HOME = tempfile.TemporaryDirectory(prefix="faults-fuzz-")
_FILE = pathlib.Path(_HOME.name) / "case.yaml"


def _conf() -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    conf([], project="faults", default_config_files=[], default_config_dirs=[])
    options.register(conf)
    return conf


_CONF = _conf()


def decoder(case: bytes) -> None:
    """Decode a record: headers on the first lines of the form name:value, an empty line, the value."""
    head, found, value = case.partition(b"\n\n")
    if not found:
        head, value = b"", case
    headers = tuple(
        (name.decode(errors="replace"), text)
        for name, _, text in (line.partition(b":") for line in head.split(b"\n"))
    )
    notification = codec.decode(Record("t", value, b"key", headers))
    # What was read can be written again.
    again = codec.encode(notification, "flat", None)
    codec.decode(Record("t", again.value, None, again.headers))


def transport_url(case: bytes) -> None:
    parsed = url.TransportURL.parse(_CONF, case.decode(errors="surrogateescape"))
    for host in parsed.hosts:
        shown = f":{host.password}@" if host.password else None
        assert not shown or shown == ":***@" or shown not in parsed.masked(), "a password is shown"
    url.TransportURL.parse(_CONF, str(parsed))


def client(case: bytes) -> None:
    text = case.decode(errors="replace")
    kind = client_config.CONSUMER if client_config.CONSUMER in text else client_config.PRODUCER
    client_config.url(client_config.read(text, kind), kind)


def routes(case: bytes) -> None:
    _FILE.write_bytes(case)
    routing.read_routes(str(_FILE))


def metrics(case: bytes) -> None:
    # Here, because an installation without Spark has no use for it.
    from spark_sinks import metrics_file

    _FILE.write_bytes(case)
    metrics_file.read(str(_FILE))


TARGETS: dict[str, Callable[[bytes], None]] = {
    "decoder": decoder,
    "url": transport_url,
    "client": client,
    "routes": routes,
    "metrics": metrics,
}
