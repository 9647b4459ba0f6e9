"""A file of a spool that is written, sent and trimmed at once."""

from collections.abc import Callable, Sequence
from pathlib import Path

from oslo_config import cfg

from notifier_kafka.contract.driver import Delivery, Driver, Limits, OnDeleted, Record
from notifier_kafka.spool import spool_directory, spool_file
from notifier_kafka.url import TransportURL
from notifier_kafka_drivers.sqlite.driver import SqliteDriver

PATIENCE = 30.0
SIZE = 1024 * 1024
LARGE = b"x" * 20_000


class Hesitant(SqliteDriver):  # type: ignore[misc]
    """Does something between deleting and telling, the first time."""

    def __init__(self, url: TransportURL) -> None:
        super().__init__(url)
        self.first: Callable[[], object] | None = None

    def on_deleted(self, tell: OnDeleted) -> None:
        def told(deliveries: Sequence[Delivery]) -> None:
            if (act := self.first) is not None:
                self.first = None
                act()
            tell(deliveries)

        super().on_deleted(told)


def _opened(owned: spool_directory.Owned, told: list[int] | None = None) -> spool_file.SpoolFile:
    """Open a file as its writer does, who is told, or as who takes it over."""
    return _over(spool_file.opener(cfg.ConfigOpts(), SIZE)(owned.path), owned, told)


def _over(log: Driver, owned: spool_directory.Owned, told: list[int] | None) -> spool_file.SpoolFile:
    file = spool_file.SpoolFile(owned, log, Limits(), lambda *_: None)
    if told is not None:
        file.tell_deleted(lambda _, record: told.append(_number(record)))
    return file


def _number(record: Record) -> int:
    assert record.value is not None
    return int(record.value.partition(b" ")[0])


def _numbers(chunk: spool_file.Chunk | None) -> list[int]:
    return [_number(record) for _, record, _ in chunk.entries] if chunk else []


def _keep(file: spool_file.SpoolFile, numbers: range) -> None:
    for number in numbers:
        file.keep(Record("t", b"%d %b" % (number, LARGE)))
        assert file.unwritten(PATIENCE) == 0


def test_what_is_deleted_is_told_unless_it_is_being_sent(tmp_path: Path) -> None:
    told: list[int] = []
    file = _opened(spool_directory.create(tmp_path), told)
    _keep(file, range(20))
    under_way = file.read(10)
    assert under_way is not None
    assert _numbers(under_way) == list(range(10))
    _keep(file, range(20, 150))
    assert told == list(range(10, 10 + len(told)))
    assert len(told) > 50
    file.commit(under_way)
    following = file.read(1_000)
    assert following is not None
    assert following.lost == 0
    assert _numbers(following) == list(range(10 + len(told), 150))
    file.commit(following)
    # The next process that has the file does not count again what this one told.
    told.clear()
    _keep(file, range(150, 300))
    assert file.leave() == 150 - len(told) < 100
    ((owned,), _) = spool_directory.adopt(tmp_path)
    file = _opened(owned)
    left = file.read(1_000)
    assert left is not None
    assert left.lost == 0
    assert _numbers(left) == list(range(150 + len(told), 300))
    file.leave()


def test_what_is_deleted_before_it_is_read_is_told_though_it_is_told_late(tmp_path: Path) -> None:
    told: list[int] = []
    chunks: list[spool_file.Chunk | None] = []
    owned = spool_directory.create(tmp_path)
    query = {"partitions": "1", "retention_seconds": "0", "retention_bytes": str(SIZE)}
    log = Hesitant(TransportURL(cfg.ConfigOpts(), "sqlite", str(owned.path), query=query))
    file = _over(log, owned, told)
    log.first = lambda: chunks.append(file.read(10))
    _keep(file, range(150))
    (under_way,) = chunks
    assert under_way is not None
    sending = _numbers(under_way)
    # What was gone when the sender came, and what went later, but not what it had.
    assert told == [number for number in range(told[-1] + 1) if number not in sending]
    assert told[0] == 0 < sending[0]
    assert told[-1] > sending[-1]
    assert under_way.lost == 0
    file.commit(under_way)
    following = file.read(1_000)
    assert following is not None
    assert following.lost == 0
    assert sorted([*told, *sending, *_numbers(following)]) == list(range(150))
    file.leave()


def test_who_takes_a_file_counts_once_what_its_writer_could_not_tell(tmp_path: Path) -> None:
    file = _opened(spool_directory.create(tmp_path))
    _keep(file, range(150))
    kept = file.leave()
    ((owned,), _) = spool_directory.adopt(tmp_path)
    file = _opened(owned)
    chunks = [file.read(10), file.read(10)]
    assert [chunk.lost for chunk in chunks if chunk] == [150 - kept, 0]
    file.leave()
