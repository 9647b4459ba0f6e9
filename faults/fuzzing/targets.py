"""The targets: functions of bytes that may raise errors of the package and nothing else."""

import pathlib
import tempfile
from collections.abc import Callable

from oslo_config import cfg

from notifier_kafka import get_notification_transport, url
from notifier_kafka.bytes_client import json_config
from notifier_kafka.config import options
from notifier_kafka.driver import Delivery, Partition, Record
from notifier_kafka.errors import MessagingException
from notifier_kafka.listening import requeue
from notifier_kafka.publishing.channels import routing
from notifier_kafka.wire import codec

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
_TOPICS = ["notifications.info"]
_REQUEUE = requeue.Requeue(
    get_notification_transport(_CONF, f"sqlite:///{_HOME.name}/log.db").driver, "group", _TOPICS, 1.0
)


def _record(topic: str, case: bytes) -> Record:
    """Read headers on the first lines of the form name:value, an empty line, the value."""
    head, found, value = case.partition(b"\n\n")
    if not found:
        head, value = b"", case
    headers = tuple(
        (name.decode(errors="replace"), text)
        for name, _, text in (line.partition(b":") for line in head.split(b"\n"))
    )
    return Record(topic, value, b"key", headers)


def decoder(case: bytes) -> None:
    notification = codec.decode(_record("t", case))
    # What was decoded can be encoded again.
    again = codec.encode(notification, "flat", None)
    codec.decode(Record("t", again.value, None, again.headers))


def requeued(case: bytes) -> None:
    """Requeue a record from a public topic and from the topic of the group, and revive it."""
    for topic in (_TOPICS[0], _REQUEUE.topics[0]):
        delivery = Delivery(_record(topic, case), Partition(topic, 3), 42, 0.0)
        failures, attempts = _REQUEUE.failures(delivery), _REQUEUE.attempts(delivery)
        assert failures >= 0, "a negative number of failures"
        assert attempts >= 0, "a negative number of attempts"
        _REQUEUE.is_due(delivery)
        for made in (_REQUEUE.again(delivery, failed=True), _REQUEUE.dead_letter(delivery, "why", attempts)):
            assert topic != _TOPICS[0] or requeue.origin(made) == f"{topic} 3:42", (
                "an origin from the headers of a stranger"
            )
            back = requeue.revived(made, "group")
            assert back is not None, "nothing to revive"
            assert len(back.topic) < 250, "the topic is too long"
            assert requeue.attempts(back) == 0, "attempts are counted before it is revived"
        again = delivery._replace(record=_REQUEUE.again(delivery, failed=True))
        assert _REQUEUE.failures(again) > failures or failures > 2**50, "the failure is not counted"


def transport_url(case: bytes) -> None:
    parsed = url.TransportURL.parse(_CONF, case.decode(errors="surrogateescape"))
    for host in parsed.hosts:
        shown = f":{host.password}@" if host.password else None
        assert not shown or shown == ":***@" or shown not in parsed.masked(), "a password is shown"
    url.TransportURL.parse(_CONF, str(parsed))


def output(case: bytes) -> None:
    # Imported here: an installation without Spark lacks what they need.
    from spark_sinks.outputs import postgresql, secret_masking

    # Options and arguments are lines.
    text = "".join(case.decode(errors="surrogateescape").split())
    kind, _, place = text.partition(":")
    if kind == "kafka":
        found = [host.password for host in url.TransportURL.parse(_CONF, text).hosts]
    else:
        # Only this kind of place has a password.
        found = (
            [postgresql.connection_arguments(place)["password"]]
            if text.startswith("jdbc:postgresql:")
            else []
        )
    # A password that is also in another part of the text cannot be masked there.
    if any(SECRET in (password or "") for password in found) and text.count(SECRET) == 1:
        assert SECRET not in secret_masking.output(text), "a password is shown"


def client(case: bytes) -> None:
    text = case.decode(errors="replace")
    kind = json_config.CONSUMER if json_config.CONSUMER in text else json_config.PRODUCER
    json_config.url(json_config.read(text, kind), kind)


def routes(case: bytes) -> None:
    _FILE.write_bytes(case)
    routing.read_routes(str(_FILE))


def metrics(case: bytes) -> None:
    # Imported here: an installation without Spark lacks what it needs.
    from spark_sinks.language import metrics_file

    _FILE.write_bytes(case)
    metrics_file.read(str(_FILE))


TARGETS: dict[str, Callable[[bytes], None]] = {
    "decoder": decoder,
    "url": transport_url,
    "requeue": requeued,
    "output": output,
    "client": client,
    "routes": routes,
    "metrics": metrics,
}
