"""An account book that has each payment once, whatever crashes.

``python ledger.py TRANSPORT_URL BOOK`` listens as the pool ``ledger``; SIGTERM ends it.
"""

import signal
import sqlite3
import sys
from typing import Any

from oslo_config import cfg

import notifier_kafka

SCHEMA = """
    PRAGMA journal_mode = WAL;
    CREATE TABLE IF NOT EXISTS payment (id TEXT, amount INTEGER);
    CREATE TABLE IF NOT EXISTS position (
        topic TEXT, number INTEGER, next INTEGER, PRIMARY KEY (topic, number));
"""
MOVE_ON = """
    INSERT INTO position VALUES (?, ?, ?)
    ON CONFLICT DO UPDATE SET next = excluded.next WHERE next < excluded.next
"""


class Ledger:
    """Books each payment together with the position behind it."""

    def __init__(self, book: sqlite3.Connection) -> None:
        self._book = book
        self.listener: Any = None

    def info(self, _ctxt: Any, _publisher: str, _event: str, payload: Any, _metadata: Any) -> None:
        ((partition, following),) = self.listener.positions().items()
        with self._book:  # one transaction: both, or neither
            if self._book.execute(MOVE_ON, (*partition, following)).rowcount:
                self._book.execute("INSERT INTO payment VALUES (?, ?)", (payload["id"], payload["amount"]))
            # Else another member, who has the partition now, was faster.

    def position_of(self, partition: tuple[str, int]) -> int | None:
        row = self._book.execute(
            "SELECT next FROM position WHERE topic = ? AND number = ?", partition
        ).fetchone()
        return row and int(row[0])


def main(url: str, path: str) -> None:
    """Keep the book at ``path``."""
    conf = cfg.ConfigOpts()
    conf([], project="ledger")
    transport = notifier_kafka.get_notification_transport(conf, url)
    # The listener calls from a thread of its own, and from no other.
    book = sqlite3.connect(path, check_same_thread=False, timeout=30.0)
    book.executescript(SCHEMA)
    ledger = Ledger(book)
    targets = [notifier_kafka.Target(topic="payments")]
    listener = notifier_kafka.get_notification_listener(transport, targets, [ledger], pool="ledger")
    ledger.listener = listener
    listener.resume_from(ledger.position_of)
    signal.signal(signal.SIGTERM, lambda *_: listener.stop())
    listener.start()
    listener.wait()
    transport.cleanup()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
