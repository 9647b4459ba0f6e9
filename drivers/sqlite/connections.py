"""Transactions and checkpoints on one connection."""

import contextlib
import os
import sqlite3
from collections.abc import Iterator

from .opening import FOREIGN_TIMEOUT_SECONDS


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Commit at the end of the block; roll back after an error."""
    if connection.in_transaction:
        # An earlier error was so bad that even its rollback failed.
        connection.execute("ROLLBACK")
    process = os.getpid()
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # After some errors SQLite has rolled back by itself. In a child process that was forked
        # inside the block, the transaction is the parent's.
        if connection.in_transaction and os.getpid() == process:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
        raise


def truncate_wal(connection: sqlite3.Connection) -> None:
    """Move the WAL into the database (checkpoint). The caller holds the log's lock."""
    # Do not wait for readers: then SQLite moves what it can, and the rest soon after.
    connection.execute("PRAGMA busy_timeout = 0").fetchall()
    try:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    finally:
        connection.execute(f"PRAGMA busy_timeout = {int(FOREIGN_TIMEOUT_SECONDS * 1000)}").fetchall()
