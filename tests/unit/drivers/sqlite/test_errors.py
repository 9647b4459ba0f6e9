"""Foreign errors are translated in one place, all of them."""

import errno
import sqlite3

import pytest

from notifier_kafka.errors import DeliveryFailed, LogUnusable, MessagingException, TransportUnavailable
from notifier_kafka_drivers.sqlite import errors

RETRIABLE = {"BUSY", "LOCKED", "PROTOCOL", "FULL", "IOERR", "CANTOPEN", "NOMEM", "INTERRUPT"}
SPECIFIC = {"CORRUPT", "NOTADB", "READONLY", "PERM", "AUTH"}
# Every primary result code that the module knows (1 to 28); below 100 are errors.
CODES = {
    name.removeprefix("SQLITE_"): getattr(sqlite3, name)
    for name in dir(sqlite3)
    if name.startswith("SQLITE_") and name in vars(sqlite3)
}
PRIMARY = [
    "ABORT AUTH BUSY CANTOPEN CONSTRAINT CORRUPT EMPTY ERROR FORMAT FULL INTERNAL INTERRUPT IOERR LOCKED "
    "MISMATCH MISUSE NOLFS NOMEM NOTADB NOTFOUND NOTICE PERM PROTOCOL RANGE READONLY SCHEMA TOOBIG WARNING"
][0].split()


def sqlite_error(code: int, name: str) -> sqlite3.Error:
    error = sqlite3.OperationalError("what SQLite says")
    error.sqlite_errorcode = code
    error.sqlite_errorname = name
    return error


def test_the_list_of_codes_is_complete() -> None:
    assert {CODES[name] for name in PRIMARY} == set(range(1, 29))


@pytest.mark.parametrize("name", PRIMARY)
@pytest.mark.parametrize("extended", [0, 3, 10])
def test_every_sqlite_code_has_its_error(name: str, extended: int) -> None:
    error = errors.translate(sqlite_error(CODES[name] | extended << 8, name), "/a/log.db")
    expected: type[MessagingException] = LogUnusable
    if name in RETRIABLE:
        expected = TransportUnavailable
    elif name == "TOOBIG":
        expected = DeliveryFailed
    assert type(error) is expected
    assert "/a/log.db" in str(error)
    assert "what SQLite says" in str(error)
    assert "\n" not in str(error)


def test_what_to_do_differs_where_it_differs() -> None:
    told = {name: str(errors.translate(sqlite_error(CODES[name], ""), "p")) for name in PRIMARY}
    assert "make room" in told["FULL"]
    assert "restore" in told["CORRUPT"]
    assert "not an SQLite database" in told["NOTADB"]
    assert "owner" in told["READONLY"]
    assert "locked" in told["BUSY"]


@pytest.mark.parametrize(
    "error", [sqlite3.ProgrammingError("closed"), sqlite3.InterfaceError("x"), sqlite3.DataError("y")]
)
def test_errors_without_a_code_are_translated_too(error: sqlite3.Error) -> None:
    assert isinstance(errors.translate(error, "p"), LogUnusable)


@pytest.mark.parametrize("number", sorted(errno.errorcode))
def test_every_system_error_has_one(number: int) -> None:
    error = errors.translate(OSError(number, "what the system says"), "p")
    retriable = {"ENOSPC", "EDQUOT", "EFBIG", "EIO", "EMFILE", "ENFILE", "ENOMEM", "EAGAIN"}
    assert error.retriable == (errno.errorcode[number] in retriable)
    assert "what the system says" in str(error)


def test_the_block_lets_only_our_errors_out() -> None:
    with pytest.raises(LogUnusable), errors.translating("p"):
        raise FileNotFoundError(errno.ENOENT, "gone")
    with pytest.raises(ZeroDivisionError), errors.translating("p"):
        raise ZeroDivisionError
