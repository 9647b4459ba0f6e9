"""What is done with one connection."""

import contextlib
import ctypes
import os
import sqlite3
from collections.abc import Iterator

from .opening import FOREIGN_WAIT


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Commit at the end of the block, roll back on an error."""
    if connection.in_transaction:
        # Left by an error so bad that even the roll-back failed.
        connection.execute("ROLLBACK")
    process = os.getpid()
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # After some errors SQLite has rolled back by itself. In a child that was forked in here
        # the transaction is the parent's.
        if connection.in_transaction and os.getpid() == process:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
        raise


def truncate_wal(connection: sqlite3.Connection) -> None:
    """Move the WAL into the database. The caller holds the log's lock."""
    # Without waiting for readers: then it moves what it can, and the next time is soon.
    connection.execute("PRAGMA busy_timeout = 0").fetchall()
    try:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    finally:
        connection.execute(f"PRAGMA busy_timeout = {int(FOREIGN_WAIT * 1000)}").fetchall()


def leak(connection: sqlite3.Connection) -> None:
    """Keep a connection from ever being freed, because freeing it closes it."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
