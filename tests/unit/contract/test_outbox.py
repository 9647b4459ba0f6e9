"""The outbox, with functions that block, fail and refuse records as a client library may."""

import gc
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence

import pytest

from notifier_kafka.contract.driver import Limits, Partition, Receipt, Record
from notifier_kafka.contract.outbox import BATCH_RECORDS, Outbox
from notifier_kafka.errors import (
    DeliveryBarred,
    DeliveryFailed,
    LogUnusable,
    MessagingException,
    OutboxFull,
    TransportUnavailable,
)

PARTITION = Partition("t", 0)
LONG = 20.0


class Log:
    """A list as a durable log. It can be held by a gate, and raises given errors first."""

    def __init__(self) -> None:
        self.values: list[bytes | None] = []
        self.batches: list[int] = []
        self.gate = threading.Event()
        self.gate.set()
        self.errors: list[Exception] = []
        self.poison: bytes | None = None
        self.calls = 0
        self.failures: list[tuple[Record, MessagingException]] = []

    def deliver(self, records: Sequence[Record]) -> Sequence[Receipt]:
        self.calls += 1
        self.gate.wait(LONG)
        if self.errors:
            raise self.errors.pop(0)
        if any(record.value == self.poison for record in records):
            raise DeliveryFailed("poison")
        first = len(self.values)
        self.values += [record.value for record in records]
        self.batches.append(len(records))
        return [Receipt(PARTITION, first + i) for i in range(len(records))]

    def on_failure(self, record: Record, error: MessagingException) -> None:
        self.failures.append((record, error))


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def outbox_of(log: Log) -> Iterator[Callable[..., Outbox]]:
    made: list[Outbox] = []

    def make(**limits: int) -> Outbox:
        made.append(Outbox(log.deliver, log.on_failure, Limits(**limits)))
        return made[-1]

    yield make
    log.gate.set()
    for outbox in made:
        outbox.close()


def record(n: int) -> Record:
    return Record("t", b"%d" % n)


def await_true(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def test_what_comes_while_it_lingers_goes_with_the_first(log: Log) -> None:
    outbox = Outbox(log.deliver, log.on_failure, Limits(), linger=1.0)
    for n in range(50):
        outbox.offer(Record("t", b"%d" % n))
    assert outbox.flush(LONG) == 0
    assert log.batches == [50]
    outbox.close()


def test_what_waits_is_soon_no_work_for_the_collector(log: Log, outbox_of: Callable[..., Outbox]) -> None:
    outbox = outbox_of()
    log.gate.clear()
    outbox.offer(record(0))
    await_true(lambda: log.calls == 1)
    gc.collect()
    before = len(gc.get_objects())
    for n in range(5_000):
        outbox.offer(Record("t", b"%d" % n, b"key", (("own", b"%d" % n), ("name", b"value"))))
    # A tuple of tuples may have been before them.
    gc.collect()
    gc.collect()
    assert len(gc.get_objects()) - before < 500


def test_a_record_of_a_kind_of_its_own_stays_itself(log: Log, outbox_of: Callable[..., Outbox]) -> None:
    class Own(Record):
        number: int

    taken: list[Record] = []

    def deliver(records: Sequence[Record]) -> Sequence[Receipt]:
        taken.extend(records)
        return log.deliver(records)

    outbox = Outbox(deliver, log.on_failure, Limits())
    own = Own("t", b"1")
    own.number = 7
    outbox.offer(own)
    outbox.offer(record(2))
    assert outbox.flush(LONG) == 0
    outbox.close()
    assert taken == [own, record(2)]
    assert taken[0] is own
    assert type(taken[1]) is Record


def test_delivers_all_in_order_in_shared_batches(log: Log, outbox_of: Callable[..., Outbox]) -> None:
    outbox = outbox_of()
    log.gate.clear()
    outbox.offer(record(0))
    await_true(lambda: log.calls == 1)  # the worker stands before the gate: the rest waits
    for n in range(1, 5_000):
        outbox.offer(record(n))
    log.gate.set()
    assert outbox.flush(LONG) == 0
    assert log.values == [b"%d" % n for n in range(5_000)]
    assert log.batches == [1, BATCH_RECORDS, 4_999 - BATCH_RECORDS]


def test_a_batch_is_bounded_in_bytes(log: Log, outbox_of: Callable[..., Outbox]) -> None:
    outbox = outbox_of()
    log.gate.clear()
    for _ in range(12):
        outbox.offer(Record("t", bytes(1024 * 1024)))
    log.gate.set()
    assert outbox.flush(LONG) == 0
    assert max(log.batches) <= 4


def test_no_thread_before_the_first_offer(outbox_of: Callable[..., Outbox]) -> None:
    before = threading.active_count()
    outbox = outbox_of()
    assert threading.active_count() == before
    outbox.offer(record(0))
    assert threading.active_count() == before + 1


def test_full_by_records_refuses_and_keeps_nothing_of_it(log: Log, outbox_of: Callable[..., Outbox]) -> None:
    outbox = outbox_of(records=10)
    log.gate.clear()
    for n in range(10):
        outbox.offer(record(n))
    with pytest.raises(OutboxFull, match="10 records"):
        outbox.offer(record(99))
    log.gate.set()
    assert outbox.flush(LONG) == 0
    outbox.offer(record(10))
    assert outbox.flush(LONG) == 0
    assert log.values == [b"%d" % n for n in range(11)]


def test_full_by_bytes_counts_value_key_and_headers(log: Log, outbox_of: Callable[..., Outbox]) -> None:
    outbox = outbox_of(bytes=100)
    log.gate.clear()
    outbox.offer(Record("t", bytes(50), bytes(20), (("name", bytes(16)),)))
    outbox.offer(Record("t", bytes(10)))
    with pytest.raises(OutboxFull):
        outbox.offer(Record("t", b"x"))
    log.gate.set()
    assert outbox.flush(LONG) == 0
    outbox.offer(Record("t", bytes(100)))


def test_a_record_that_never_fits_is_refused_for_good(outbox_of: Callable[..., Outbox]) -> None:
    with pytest.raises(DeliveryFailed) as caught:
        outbox_of(bytes=100).offer(Record("t", bytes(101)))
    assert not caught.value.retriable


def test_retriable_errors_are_tried_again_in_order(log: Log, outbox_of: Callable[..., Outbox]) -> None:
    log.errors = [TransportUnavailable("locked"), TransportUnavailable("locked")]
    outbox = outbox_of()
    for n in range(100):
        outbox.offer(record(n))
    assert outbox.flush(LONG) == 0
    assert log.values == [b"%d" % n for n in range(100)]
    assert log.failures == []


@pytest.mark.parametrize("retry", [0, 2])
def test_retries_end_where_the_limit_says(log: Log, outbox_of: Callable[..., Outbox], retry: int) -> None:
    log.errors = [TransportUnavailable("locked") for _ in range(retry + 1)]
    outbox = outbox_of(retry=retry)
    outbox.offer(record(0))
    assert outbox.flush(LONG) == 0
    assert log.calls == retry + 1
    ((failed, error),) = log.failures
    assert failed == record(0)
    assert isinstance(error, DeliveryFailed)
    assert isinstance(error.__cause__, TransportUnavailable)


def test_a_log_that_cannot_be_used_is_not_asked_record_by_record(
    log: Log, outbox_of: Callable[..., Outbox]
) -> None:
    outbox = outbox_of()
    log.gate.clear()
    settled: list[Receipt | MessagingException] = []
    outbox.offer(record(0), settled.append)
    until_called(log)
    for n in range(1, 20):
        outbox.offer(record(n), settled.append)
    log.errors = [LogUnusable("corrupt"), LogUnusable("corrupt")]
    log.gate.set()
    assert outbox.flush(LONG) == 0
    assert log.calls == 2
    assert [type(fate) for fate in settled] == [DeliveryBarred] * 20


def until_called(log: Log) -> None:
    deadline = time.monotonic() + LONG
    while not log.calls:
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_only_the_guilty_record_of_a_batch_fails(log: Log, outbox_of: Callable[..., Outbox]) -> None:
    log.poison = b"7"
    log.gate.clear()
    outbox = outbox_of()
    settled: list[Receipt | MessagingException] = []
    for n in range(20):
        outbox.offer(record(n), settled.append)
    log.gate.set()
    assert outbox.flush(LONG) == 0
    assert log.values == [b"%d" % n for n in range(20) if n != 7]
    assert [i for i, outcome in enumerate(settled) if isinstance(outcome, DeliveryFailed)] == [7]
    assert len(settled) == 20
    assert log.failures == [], "a record with on_settled is reported to that alone"


def test_an_untranslated_error_costs_its_record_only(
    log: Log, outbox_of: Callable[..., Outbox], caplog: pytest.LogCaptureFixture
) -> None:
    log.errors = [ZeroDivisionError("bug")]
    outbox = outbox_of()
    outbox.offer(record(0))
    assert outbox.flush(LONG) == 0
    outbox.offer(record(1))
    assert outbox.flush(LONG) == 0
    assert log.values == [b"1"]
    assert [failed for failed, _ in log.failures] == [record(0)]
    assert "should have translated" in caplog.text


def test_a_callback_that_raises_is_logged_and_survived(
    log: Log, outbox_of: Callable[..., Outbox], caplog: pytest.LogCaptureFixture
) -> None:
    def explode(_: Receipt | MessagingException) -> None:
        raise ZeroDivisionError("callback")

    outbox = outbox_of()
    outbox.offer(record(0), explode)
    assert outbox.flush(LONG) == 0
    outbox.offer(record(1))
    assert outbox.flush(LONG) == 0
    assert log.values == [b"0", b"1"]
    assert "callback for a settled record" in caplog.text


def test_flush_waits_for_what_came_before_it_only(log: Log, outbox_of: Callable[..., Outbox]) -> None:
    outbox = outbox_of(records=1_000)
    stop = threading.Event()

    def keep_publishing() -> None:
        while not stop.is_set():
            try:
                outbox.offer(record(0))
            except OutboxFull:
                time.sleep(0.001)

    thread = threading.Thread(target=keep_publishing)
    thread.start()
    try:
        assert outbox.flush(LONG) == 0
    finally:
        stop.set()
        thread.join()


def test_flush_returns_how_many_are_unsettled(log: Log, outbox_of: Callable[..., Outbox]) -> None:
    outbox = outbox_of()
    log.gate.clear()
    for n in range(3):
        outbox.offer(record(n))
    assert outbox.flush(0.01) == 3
    assert outbox.flush(0) == 3


def test_close_reports_leftovers_once_and_ends_the_backoff(
    log: Log, outbox_of: Callable[..., Outbox]
) -> None:
    log.errors = [TransportUnavailable("away") for _ in range(1_000)]
    outbox = outbox_of()
    settled: list[Receipt | MessagingException] = []
    for n in range(50):
        outbox.offer(record(n), settled.append)
    await_true(lambda: log.calls > 2)
    outbox.close()
    outbox.close()
    assert len(settled) == 50
    assert all(isinstance(outcome, DeliveryFailed) for outcome in settled)
    assert outbox.flush(0) == 0
    with pytest.raises(DeliveryFailed, match="closed"):
        outbox.offer(record(0))


def test_close_from_a_callback_does_not_wait_for_itself(outbox_of: Callable[..., Outbox]) -> None:
    outbox = outbox_of()
    outbox.offer(record(0), lambda _: outbox.close())
    assert outbox.flush(LONG) == 0
    await_true(lambda: outbox.closed)


def test_many_threads_lose_nothing(log: Log, outbox_of: Callable[..., Outbox]) -> None:
    outbox = outbox_of()

    def publish(base: int) -> None:
        for n in range(2_000):
            outbox.offer(record(base + n))

    threads = [threading.Thread(target=publish, args=(i * 10_000,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outbox.flush(LONG) == 0
    values = [int(value or b"") for value in log.values]
    assert len(values) == len(set(values)) == 16_000
    for i in range(8):
        mine = [n for n in values if n // 10_000 == i]
        assert mine == sorted(mine)


def test_a_signal_handler_may_publish_in_the_middle_of_an_offer(
    log: Log, outbox_of: Callable[..., Outbox]
) -> None:
    outbox = outbox_of()
    from_handler = 0

    def handler(*_: object) -> None:
        nonlocal from_handler
        from_handler += 1
        outbox.offer(record(-1))

    previous = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    try:
        for n in range(30_000):
            outbox.offer(record(n))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert outbox.flush(LONG) == 0
    assert from_handler > 0
    assert len(log.values) == 30_000 + from_handler


# Newer Pythons warn of forking with threads, which is what is tested.
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_sends_its_own_records_and_none_of_its_parents(
    log: Log, outbox_of: Callable[..., Outbox]
) -> None:
    outbox = outbox_of()
    log.gate.clear()
    for n in range(100):
        outbox.offer(record(n))
    pid = os.fork()
    if pid == 0:
        log.gate = threading.Event()
        log.gate.set()
        outbox.offer(record(-1))
        good = outbox.flush(LONG) == 0 and log.values == [b"-1"]
        os._exit(0 if good else 1)
    log.gate.set()
    assert os.waitpid(pid, 0)[1] == 0
    assert outbox.flush(LONG) == 0
    assert log.values == [b"%d" % n for n in range(100)]


def test_what_failed_alone_is_reported_alone_and_not_tried_again() -> None:
    fates: list[object] = []
    failures: list[tuple[Record, MessagingException]] = []
    calls: list[int] = []

    def deliver(records: Sequence[Record]) -> Sequence[Receipt | MessagingException]:
        calls.append(len(records))
        return [
            LogUnusable("too large") if entry.value in (b"1", b"2") else Receipt(PARTITION, 0)
            for entry in records
        ]

    outbox = Outbox(deliver, lambda entry, error: failures.append((entry, error)), Limits())
    for n in range(4):
        outbox.offer(record(n), fates.append if n >= 2 else None)
    assert outbox.flush(LONG) == 0
    outbox.close()
    assert sum(calls) == 4
    assert [(entry.value, str(error)) for entry, error in failures] == [(b"1", "too large")]
    assert isinstance(failures[0][1], DeliveryFailed)
    assert [str(fates[0]), fates[1]] == ["too large", Receipt(PARTITION, 0)]
    assert isinstance(fates[0], DeliveryFailed)


@pytest.mark.parametrize("receipts", [[], [Receipt(PARTITION, 0)] * 3, None])
def test_a_wrong_number_of_receipts_costs_its_records_only(
    caplog: pytest.LogCaptureFixture, receipts: list[Receipt] | None
) -> None:
    log = Log()
    answers = [receipts]

    def deliver(records: Sequence[Record]) -> Sequence[Receipt]:
        good = log.deliver(records)
        return answers.pop() if answers else good  # type: ignore[return-value]

    outbox = Outbox(deliver, log.on_failure, Limits())
    outbox.offer(record(1))
    assert outbox.flush(LONG) == 0
    assert [(lost, type(error)) for lost, error in log.failures] == [(record(1), DeliveryFailed)]
    assert [entry.levelname for entry in caplog.records] == ["ERROR"]
    outbox.offer(record(2))
    assert outbox.flush(LONG) == 0
    assert len(log.failures) == 1
    assert log.calls == 2
    outbox.close()
