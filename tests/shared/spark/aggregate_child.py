"""The command in a process of its own, which kills itself at a moment that it is told.

``aggregate_child.py WHEN ARGUMENT...``: WHEN is the end of a line of the log; or the end of a
path with a slash in it, and the moment is before a file that is written gets that name; or
nothing, for never. After ``SIGTERM`` it is a line of the log, at which it is asked to end.
"""

import logging
import os
import signal
import sys

from notifier_kafka.cli import main


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Watch(logging.Handler):
    """Gets a signal when a line ends with some words."""

    def __init__(self, words: str, number: int = signal.SIGKILL) -> None:
        super().__init__()
        self.words, self.number = words, number

    def emit(self, record: logging.LogRecord) -> None:
        if record.getMessage().endswith(self.words):
            os.kill(os.getpid(), self.number)


def look_out(path: str) -> None:
    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event == "os.rename" and str(arguments[1]).endswith(path):
            die()

    sys.addaudithook(hook)


if __name__ == "__main__":
    when, *arguments = sys.argv[1:]
    if when.startswith("SIGTERM "):
        words = when.removeprefix("SIGTERM ")
        logging.getLogger("spark_sinks.job.job").addHandler(Watch(words, signal.SIGTERM))
    elif "/" in when and not when.startswith("batch "):
        look_out(when)
    elif when:
        logging.getLogger("spark_sinks.job.job").addHandler(Watch(when))
    sys.exit(main.main(["-v", *arguments]))
