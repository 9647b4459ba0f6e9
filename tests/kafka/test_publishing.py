"""What the driver adds to the clients' publishing: topics on first use, sizes, forks, outages."""

import gc
import os
import subprocess
import sys
import threading
import time
from typing import Any

import pytest
from oslo_config import cfg

from notifier_kafka.contract.driver import Limits, Partition, Receipt, Record
from notifier_kafka.errors import DeliveryFailed, MessagingException, OutboxFull
from notifier_kafka.publishing.notifier import Notifier
from notifier_kafka.publishing.transport import get_notification_transport
from tests.shared.checkout import ROOT
from tests.shared.kafka.kafka_rig import PATIENCE, Connect, gather, publish, until

WITHOUT_CODECS = ROOT / "tests/shared/kafka/without_codecs.py"
KILOBYTE = 1024
MEGABYTE = 1024 * 1024


def contents(driver: Any, topic: str) -> list[bytes]:
    return [d.record.value for span in driver.spans([topic]) for d in driver.read(span)]


def test_a_topic_is_made_on_first_use_as_the_options_say(connect: Connect, topic: str) -> None:
    driver = connect(topic_partitions=5, topic_replication=1)
    publish(driver, Record(topic, b"1"))
    described = driver.admin().describe_topic(topic)
    assert len(described.spans) == 5
    assert described.details["partition 4"] == "leader 1; replicas 1; in sync 1"


def test_records_of_many_new_topics_all_arrive_in_order(connect: Connect, topic: str) -> None:
    driver = connect()
    names = [f"{topic}-{n}" for n in range(5)]
    publish(driver, *(Record(name, b"%d" % n, b"k") for n in range(50) for name in names))
    for name in names:
        assert contents(driver, name) == [b"%d" % n for n in range(50)]


def test_more_replicas_than_brokers_is_told_with_the_option(connect: Connect, topic: str) -> None:
    failures: list[tuple[Record, MessagingException]] = []
    publisher = connect(topic_replication=3).publisher(lambda *failure: failures.append(failure), Limits())
    record = Record(topic, b"1", b"k", (("h", b"x"),))
    publisher.offer(record)
    assert publisher.flush(30) == 0
    ((failed, error),) = failures
    assert failed == record
    assert isinstance(error, DeliveryFailed)
    assert "topic_replication" in str(error)


# kafka-python takes a batch at a time; what waits before it is the outbox's, and that has a test.
@pytest.mark.parametrize("client", ["confluent-kafka"])
def test_what_is_under_way_is_little_work_for_the_collector(connect: Connect, topic: str) -> None:
    publisher = connect(linger=60).publisher(lambda *_: None, Limits())
    publisher.offer(Record(topic, b"1"))
    assert publisher.flush(PATIENCE) == 0
    gc.collect()
    before = len(gc.get_objects())
    for n in range(5_000):
        publisher.offer(Record(topic, b"%d" % n, b"key", (("own", b"%d" % n), ("name", b"value"))))
    gc.collect()
    gc.collect()
    # One for each record, which its report calls.
    assert len(gc.get_objects()) - before < 5_500
    assert publisher.flush(PATIENCE) == 0


@pytest.mark.parametrize("size", [256 * KILOBYTE, 1000 * KILOBYTE])
def test_large_records_work_untuned(connect: Connect, topic: str, size: int) -> None:
    driver = connect()
    value = os.urandom(size)
    publish(driver, Record(topic, value, b"k"))
    assert contents(driver, topic) == [value]


def test_ten_megabytes_work_with_one_option(connect: Connect, topic: str) -> None:
    driver = connect(max_request_size=10 * MEGABYTE)
    value = os.urandom(10 * MEGABYTE - 10)
    publish(driver, Record(topic, value, b"k"))
    assert contents(driver, topic) == [value]
    (heard,) = gather(driver.subscribe([topic], topic, "earliest"), 1)
    assert heard.record.value == value


def test_a_record_larger_than_the_topic_allows_costs_itself_alone(connect: Connect, topic: str) -> None:
    # A batch is refused as a whole: the large one is alone only in one that it fills.
    driver = connect(batch_size=16384)
    driver.admin().create_topic(topic, 1, {"max.message.bytes": "20000"})
    failures: list[tuple[Record, MessagingException]] = []
    settled: list[Any] = []
    publisher = driver.publisher(lambda *failure: failures.append(failure), Limits())
    large = Record(topic, os.urandom(30_000), b"k", (("h", b"x"),))
    publisher.offer(Record(topic, b"before", b"k"), settled.append)
    publisher.offer(large)
    publisher.offer(Record(topic, b"after", b"k"), settled.append)
    assert publisher.flush(30) == 0
    ((failed, error),) = failures
    assert failed == large
    assert "max.message.bytes" in str(error)
    assert [type(outcome) for outcome in settled] == [Receipt, Receipt]
    assert contents(driver, topic) == [b"before", b"after"]


def test_a_closed_driver_leaves_no_thread_behind(connect: Connect, topic: str) -> None:
    before = set(threading.enumerate())
    driver = connect()
    publish(driver, Record(topic, b"1"))
    idle = driver.publisher(lambda *_: None, Limits())
    idle.offer(Record(topic, b"2"))
    assert idle.flush(30) == 0
    idle.close()
    driver.close()
    until(lambda: set(threading.enumerate()) <= before, "the end of all threads")


@pytest.mark.parametrize("compression", ["gzip", "snappy", "lz4", "zstd"])
def test_compression(connect: Connect, topic: str, compression: str) -> None:
    driver = connect(compression=compression)
    publish(driver, *(Record(topic, b"%d" % n * 1000, b"k") for n in range(20)))
    for reader in ("kafka-python", "confluent-kafka"):
        assert contents(connect(client=reader), topic) == [b"%d" % n * 1000 for n in range(20)]


@pytest.mark.parametrize("client", ["confluent-kafka"])
@pytest.mark.parametrize("compression", ["snappy", "lz4", "zstd"])
def test_without_its_library_a_codec_is_refused_again_and_again(
    connect: Connect, kafka_cluster: Any, topic: str, compression: str
) -> None:
    publish(connect(compression=compression), *(Record(topic, b"x" * 1000, b"k") for _ in range(5)))
    program = [sys.executable, "-W", "error", str(WITHOUT_CODECS), kafka_cluster.url, topic, compression]
    done = subprocess.run(program, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    published, *polled, read = done.stdout.splitlines()
    advice = "kafka-python needs another library for it: pip install 'notifier-kafka[compression]'"
    assert published == f"ConfigurationError: [drivers_kafka] compression = {compression}: {advice}"
    assert [said.startswith("ConfigurationError: poll: ") for said in (*polled, read)] == [True] * 4
    assert [said.endswith(f": {advice}") for said in (*polled, read)] == [True] * 4


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_acks(connect: Connect, topic: str, acks: str) -> None:
    driver = connect(acks=acks)
    publish(driver, *(Record(topic, b"%d" % n, b"k") for n in range(20)))
    until(lambda: contents(driver, topic) == [b"%d" % n for n in range(20)], "all records")


def test_without_retries(connect: Connect, topic: str) -> None:
    driver = connect(retries=0)
    publish(driver, *(Record(topic, b"%d" % n, b"k") for n in range(50)))
    assert contents(driver, topic) == [b"%d" % n for n in range(50)]


@pytest.mark.long_with("confluent-kafka")
def test_a_topic_deleted_in_use_is_made_again(connect: Connect, topic: str) -> None:
    driver = connect()
    settled: list[Any] = []
    publisher = driver.publisher(lambda *_: None, Limits(retry=3))
    publisher.offer(Record(topic, b"before"), settled.append)
    assert publisher.flush(30) == 0
    driver.admin().delete_topic(topic)
    until(lambda: topic not in driver.admin().list_topics(), "the topic to go")

    told: list[Any] = []

    def published() -> bool:
        del settled[:]
        publisher.offer(Record(topic, b"after"), settled.append)
        assert publisher.flush(60) == 0
        told.extend(settled)
        return isinstance(settled[0], Receipt)

    until(published, "publishing to go on", 120.0)
    # What came too early, if anything did, failed and says of which topic.
    assert all(isinstance(each, DeliveryFailed) and topic in str(each) for each in told[:-1])
    assert set(contents(driver, topic)) == {b"after"}


def test_a_child_process_publishes_with_the_publisher_of_its_parent(connect: Connect, topic: str) -> None:
    driver = connect()
    driver.admin().create_topic(topic, 1)
    publisher = driver.publisher(lambda *_: None, Limits())
    publisher.offer(Record(topic, b"parent before", b"k"))
    assert publisher.flush(30) == 0
    child = os.fork()
    if not child:
        code = 1
        try:
            publisher.offer(Record(topic, b"child", b"k"))
            code = publisher.flush(30)
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    publisher.offer(Record(topic, b"parent after", b"k"))
    assert publisher.flush(30) == 0
    assert contents(driver, topic) == [b"parent before", b"child", b"parent after"]


def test_a_publisher_without_a_broker_takes_what_fits_and_does_not_wait(connect_to: Connect) -> None:
    failures: list[tuple[Record, MessagingException]] = []
    driver = connect_to("kafka://127.0.0.1:1")
    publisher = driver.publisher(lambda *failure: failures.append(failure), Limits(records=10))
    began = time.monotonic()
    for n in range(10):
        publisher.offer(Record("t", b"%d" % n))
    with pytest.raises(OutboxFull):
        publisher.offer(Record("t", b"10"))
    assert time.monotonic() - began < 3.0
    assert publisher.flush(0.1) == 10
    publisher.close()
    assert [record.value for record, _ in failures] == [b"%d" % n for n in range(10)]


def test_receipts_say_where_a_record_lies(connect: Connect, topic: str) -> None:
    driver = connect()
    driver.admin().create_topic(topic, 1)
    settled: list[Any] = []
    publisher = driver.publisher(lambda *_: None, Limits())
    for n in range(3):
        publisher.offer(Record(topic, b"%d" % n), settled.append)
    assert publisher.flush(30) == 0
    assert settled == [Receipt(Partition(topic, 0), n) for n in range(3)]


@pytest.mark.long_with("kafka-python")
def test_who_waits_in_vain_for_a_receipt_is_told_what_is_wrong(client: str) -> None:
    conf = cfg.ConfigOpts()
    conf([], project="test", default_config_files=[], default_config_dirs=[])
    transport = get_notification_transport(conf, f"kafka://127.0.0.1:1/?client={client}")
    conf.set_override("wait_timeout", 0.5, group="notifications")
    conf.set_override("exit_timeout", 0.0, group="notifications")
    notifier = Notifier(transport, "host1", "messagingv2", topics=["t"]).prepare(wait=True)
    with pytest.raises(DeliveryFailed) as caught:
        notifier.info({}, "event", 1)
    assert str(caught.value) == (
        "not durable within 0.5 s; it may still arrive "
        "(no broker is reached: 127.0.0.1:1: connection refused)"
    )
    transport.cleanup()
