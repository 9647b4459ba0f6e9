"""Both ways between oslo.messaging, with its own Kafka driver, and us, over a real broker."""

import datetime
import json
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from notifier_kafka.contract.driver import Record
from notifier_kafka.publishing.notifier import Notifier
from tests.long.interop.interop_kit import (
    CLIENTS,
    Endpoint,
    Got,
    compare_all,
    connected,
    contents,
    listening,
    opened,
    until,
)
from tests.long.interop.interop_samples import PRIORITIES, Sample, samples
from tests.shared.checkout import ROOT

SPELLED = tuple(each for each in PRIORITIES if each != "warning")
PUBLISHER = "compute.höst1"
VHOST = "tenant"


def start(python: Path, *arguments: str) -> "subprocess.Popen[bytes]":
    command = [str(python), "-W", "ignore", "-m", "tests.long.interop.peer_process", *arguments]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE)


def write_ini(path: Path, url: str, channels: tuple[str, ...], topics: list[str]) -> Path:
    """Write a file as a service of oslo.messaging's has it; ours is given the same."""
    path.write_text(
        "[DEFAULT]\n"
        f"transport_url = {url}\n"
        "[oslo_messaging_notifications]\n"
        + "".join(f"driver = {each}\n" for each in channels)
        + f"topics = {','.join(topics)}\n"
        "[oslo_messaging_kafka]\n"
        f"consumer_group = group-of-{path.stem}\n"
        "kafka_max_fetch_bytes = 2097152\n"
        "kafka_consumer_timeout = 0.5\n"
        "producer_batch_timeout = 0.01\n"
        "producer_batch_size = 1000\n"
        "compression_codec = gzip\n"
        "enable_auto_commit = false\n"
        "max_poll_records = 100\n"
        "security_protocol = PLAINTEXT\n"
        "sasl_mechanism = PLAIN\n"
        "ssl_cafile =\n"
    )
    return path


def bus_topics(topics: list[str], suffix: str = "") -> list[str]:
    return [f"{topic}.{priority}{suffix}" for topic in topics for priority in SPELLED]


class Published(NamedTuple):
    """What a process of oslo.messaging's published, and between which moments."""

    ini: Path
    topics: list[str]
    times: int
    since: datetime.datetime
    until: datetime.datetime


CHANNELS = [("messaging",), ("messagingv2",), ("messaging", "messagingv2")]


@pytest.fixture(scope="module", params=CHANNELS, ids="+".join)
def published(
    request: pytest.FixtureRequest,
    peer: Path,
    kafka_cluster: Any,
    tmp_path_factory: pytest.TempPathFactory,
) -> Published:
    unique = uuid.uuid4().hex[:8]
    topics = [f"theirs-{unique}-a", f"theirs-{unique}-b"]
    ini = write_ini(
        tmp_path_factory.mktemp("theirs") / f"{unique}.conf", f"{kafka_cluster.url}/", request.param, topics
    )
    since = _now()
    process = start(peer, "publish", str(ini), PUBLISHER)
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(120) == 0
    return Published(ini, topics, len(request.param), since, _now())


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC).replace(tzinfo=None)


@pytest.mark.parametrize("client", CLIENTS)
def test_their_notifier_reaches_our_listener(published: Published, kafka_cluster: Any, client: str) -> None:
    sent = samples()
    copies = len(published.topics) * published.times
    with connected(f"{kafka_cluster.url}/?client={client}") as transport:
        with listening(transport, *published.topics, pool=f"pool-{uuid.uuid4()}") as endpoint:
            got = endpoint.await_count(len(sent) * copies)
        records = [delivery.record for delivery in contents(transport, *bus_topics(published.topics))]
    assert all(record.key is None and record.headers == () for record in records)
    compare_all(got, sent, [opened(record.value) for record in records], PUBLISHER, copies)
    _check_stamps(got, published)


def _check_stamps(got: list[Got], published: Published) -> None:
    for each in got:
        assert uuid.UUID(each.metadata["message_id"]).version == 4
        moment = datetime.datetime.fromisoformat(each.metadata["timestamp"])
        assert published.since <= moment <= published.until


def test_a_file_written_for_it_configures_our_listener_as_it_is(published: Published) -> None:
    with connected(ini=published.ini) as transport:
        with listening(transport, *published.topics) as endpoint:
            got = endpoint.await_count(len(samples()) * len(published.topics) * published.times)
        group = transport.driver.admin().describe_group(f"group-of-{published.ini.stem}")
        assert {each.event_type for each in got} == {sample.event_type for sample in samples()}
        assert sum(group.positions.values()) == len(got)
        assert set(group.lag.values()) == {0}


class Theirs(NamedTuple):
    """A listener of oslo.messaging's that is known to be at the end of its topics."""

    topics: list[str]
    path: Path

    def got(self, publisher_id: str) -> list[Got]:
        lines = [line for line in self.path.read_text().splitlines(keepends=True) if line.endswith("\n")]
        found = [Got(*json.loads(line)) for line in lines]
        return [each for each in found if each.publisher_id == publisher_id]


@pytest.fixture(scope="module")
def theirs(peer: Path, kafka_cluster: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Theirs]:
    """Start it first: it begins at the end, and throws away what its first poll brings.

    Its URL has a virtual host, which it then leaves out of the names that it listens to.
    """
    directory = tmp_path_factory.mktemp("listener")
    unique = uuid.uuid4().hex[:8]
    topics = [f"ours-{unique}-a", f"ours-{unique}-b"]
    ini = write_ini(directory / "theirs.conf", f"{kafka_cluster.url}/{VHOST}", (), topics)
    listener = Theirs(topics, directory / "got")
    listener.path.touch()
    with connected(kafka_cluster.url) as transport:
        for name in bus_topics(topics):
            transport.driver.admin().create_topic(name, 1)
        process = start(peer, "listen", str(ini), str(listener.path), f"pool-{unique}", *topics)
        try:
            _sacrifice(transport, listener, process)
            yield listener
        finally:
            process.communicate(timeout=60)
    assert process.returncode == 0


def _sacrifice(transport: Any, listener: Theirs, process: "subprocess.Popen[bytes]") -> None:
    """Send until something came on each topic: from then on nothing is lost."""
    notifiers = [Notifier(transport, "sacrifice", "messagingv2", topics=[each]) for each in listener.topics]
    wanted = {(topic, priority) for topic in listener.topics for priority in SPELLED}

    def arrived() -> bool:
        assert process.poll() is None, "oslo.messaging's listener ended"
        for topic, notifier in zip(listener.topics, notifiers, strict=True):
            for priority in SPELLED:
                getattr(notifier, priority)({}, "sacrifice", topic)
        transport.flush(30)
        return {(each.payload, each.priority) for each in listener.got("sacrifice")} == wanted

    until(arrived, "oslo.messaging's listener to be at the end of each topic")


@pytest.mark.parametrize("channel", ["messaging", "messagingv2"])
@pytest.mark.parametrize("client", CLIENTS)
def test_our_notifier_reaches_their_listener(
    theirs: Theirs, kafka_cluster: Any, client: str, channel: str
) -> None:
    sent, publisher = samples(), f"höst-{uuid.uuid4()}"
    with connected(f"{kafka_cluster.url}/?client={client}") as transport:
        notifier = Notifier(transport, publisher, channel, topics=theirs.topics, key="event_type")
        records = publish(notifier, sent, *bus_topics(theirs.topics))
    until(lambda: len(theirs.got(publisher)) >= len(records), "everything to reach oslo.messaging")
    bus = [opened(record.value) for record in records]
    compare_all(theirs.got(publisher), sent, bus, publisher, len(theirs.topics))
    for record, found in zip(records, bus, strict=True):
        assert record.topic.endswith(f".{found['priority'].lower()}")
        assert record.key == found["event_type"].encode()
        assert dict(record.headers) == {
            "content-type": b"application/json",
            **{
                name: found[name.replace("-", "_")].encode()
                for name in ("message-id", "event-type", "publisher-id", "priority")
            },
        }


def publish(notifier: Notifier, sent: list[Sample], *names: str) -> list[Record]:
    """Send everything; return the records that became of it in the topics of those names."""
    since = {
        span.partition: span.stop for span in notifier.transport.driver.spans(_existing(notifier, names))
    }
    for each in sent:
        getattr(notifier, each.priority)(each.context, each.event_type, each.payload)
    assert notifier.transport.flush(60) == 0
    found = contents(notifier.transport, *names)
    return [each.record for each in found if each.offset >= since.get(each.partition, 0)]


def _existing(notifier: Notifier, names: tuple[str, ...]) -> list[str]:
    return sorted(set(names) & set(notifier.transport.driver.admin().list_topics()))


def test_their_virtual_host_is_ours(peer: Path, kafka_cluster: Any, tmp_path: Path) -> None:
    """What it publishes to a virtual host, its own listeners never get; ours do, in either way."""
    topic = f"vhost-{uuid.uuid4().hex[:8]}"
    ini = write_ini(tmp_path / "vhost.conf", f"{kafka_cluster.url}/{VHOST}", ("messagingv2",), [topic])
    process = start(peer, "publish", str(ini), PUBLISHER)
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(120) == 0
    # With the same virtual host, and without one by naming the topic.
    for path, name in ((VHOST, topic), ("", f"{topic}.{{priority}}.{VHOST}")):
        with connected(f"{kafka_cluster.url}/{path}") as transport:
            with listening(transport, name, pool=f"pool-{uuid.uuid4()}") as endpoint:
                got = endpoint.await_count(len(samples()))
            bus = [opened(d.record.value) for d in contents(transport, *bus_topics([topic], f".{VHOST}"))]
            compare_all(got, samples(), bus, PUBLISHER, 1)


@pytest.mark.parametrize("client", CLIENTS)
def test_our_virtual_host_and_the_other_spelling(theirs: Theirs, kafka_cluster: Any, client: str) -> None:
    publisher = f"host-{uuid.uuid4()}"
    sent = samples()[:3]
    (topic, _) = theirs.topics
    url = f"{kafka_cluster.url}/{VHOST}?client={client}"
    with connected(url) as transport:
        # Ours go to the name with the virtual host, where nobody of theirs listens ...
        notifier = Notifier(transport, publisher, "messagingv2", topics=[topic])
        assert len(publish(notifier, sent, f"{topic}.info.{VHOST}", f"{topic}.audit.{VHOST}")) == 2
        # ... unless the topic is named in the other spelling.
        notifier = Notifier(transport, publisher, "messagingv2", topics=[f"{topic}.{{priority}}"])
        records = publish(notifier, sent, *bus_topics([topic]))
        until(lambda: len(theirs.got(publisher)) >= len(sent), "all to reach oslo.messaging")
        compare_all(theirs.got(publisher), sent, [opened(each.value) for each in records], publisher, 1)
        pools = [f"pool-{uuid.uuid4()}" for _ in range(2)]
        with (
            listening(transport, topic, pool=pools[0]) as usual,
            listening(transport, f"{topic}.{{priority}}", pool=pools[1]) as other,
        ):
            until(lambda: len(_of(usual, publisher)) >= len(sent), "what has the virtual host's name")
            until(lambda: len(_of(other, publisher)) >= len(sent), "what has the other name")
        ids = [{each.metadata["message_id"] for each in _of(one, publisher)} for one in (usual, other)]
        assert [len(one) for one in ids] == [len(sent), len(sent)]
        assert ids[0].isdisjoint(ids[1])
        assert ids[1] == {opened(each.value)["message_id"] for each in records}


def _of(endpoint: Endpoint, publisher: str) -> list[Got]:
    return [each for each in endpoint.got if each.publisher_id == publisher]
