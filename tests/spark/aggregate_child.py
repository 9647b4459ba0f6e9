"""The command in a process of its own, which kills itself at a moment that it is told.

``aggregate_child.py WHEN ARGUMENT...``: WHEN is a pattern of paths, and the moment is when
one is there; or the end of a line of the log; or nothing, for never.
"""

import glob
import logging
import os
import signal
import sys
import threading
import time

from notifier_kafka.cli import main


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Watch(logging.Handler):
    """Dies when a line ends with some words."""

    def __init__(self, words: str) -> None:
        super().__init__()
        self.words = words

    def emit(self, record: logging.LogRecord) -> None:
        if record.getMessage().endswith(self.words):
            die()


def look_out(pattern: str) -> None:
    while not glob.glob(pattern, include_hidden=True):
        time.sleep(0.001)
    die()


if __name__ == "__main__":
    when, *arguments = sys.argv[1:]
    if "/" in when:
        threading.Thread(target=look_out, args=(when,), daemon=True).start()
    elif when:
        logging.getLogger("spark_sinks.job").addHandler(Watch(when))
    sys.exit(main.main(["-v", *arguments]))
