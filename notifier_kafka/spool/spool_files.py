"""The spool files of one process: those that it took over, and its own."""

import logging
import pathlib
from collections import deque
from collections.abc import Callable

from notifier_kafka.contract.driver import Record
from notifier_kafka.errors import LogUnusable, MessagingException, SpoolFull
from notifier_kafka.spool import spool_directory
from notifier_kafka.spool.spool_file import SpoolFile
from notifier_kafka.stats.losses import Losses

LOG = logging.getLogger(__name__)

LOOK = 500  # records between looks whether to stop

Make = Callable[[spool_directory.Owned], SpoolFile]
Still = Callable[[int], bool]


class Files:
    """Files in the order in which they are sent. The caller sees to it that one thread at a time is here."""

    def __init__(
        self, directory: pathlib.Path, most: int, make: Make, losses: Losses, still: Still = lambda _: False
    ) -> None:
        """``still`` tells of the number of a copy that is deleted whether its record is not lost thereby."""
        self._directory = directory
        self._most = most
        self._make = make
        self._losses = losses
        self._still = still
        self._why = SpoolFull(f"the spool {directory} exceeded spool_bytes")
        self.files: deque[SpoolFile] = deque()
        self.current: SpoolFile | None = None
        """The one that is written to."""
        self.surplus: deque[SpoolFile] = deque()
        """Those that are too many, and to be given up."""
        self._before: set[pathlib.Path] = set()

    def first(self) -> SpoolFile | None:
        """Return the one that is to be sent now."""
        file = self.files[0] if self.files else None
        return None if file is self.current and self.must_wait() else file

    def must_wait(self) -> bool:
        """Tell whether another process is still to send what an earlier life of this one may have left."""
        self._before = {path for path in self._before if spool_directory.is_there(path)}
        return bool(self._before)

    def own(self) -> SpoolFile:
        """Return the one to write to, which may be new."""
        if self.current is None:
            self.current = self._make(spool_directory.create(self._directory))
            self.current.tell_deleted(self._lose)
            self.files.append(self.current)
        return self.current

    def start(self) -> None:
        """Find what is to be sent before anything of this process."""
        _, self._before = self._adopt()

    def adopt(self) -> bool:
        """Take over what dead processes left; tell whether that was something."""
        found, _ = self._adopt()
        return bool(found)

    def _adopt(self) -> tuple[list[SpoolFile], set[pathlib.Path]]:
        owned, others = spool_directory.adopt(self._directory)
        found = [self._make(each) for each in owned]
        for file in found:
            self._before.discard(file.path)
            # Before the current one, which is the last.
            self.files.insert(len(self.files) - (self.current is not None), file)
        if found:
            LOG.info("What %d processes left in the spool %s is sent first", len(found), self._directory)
            self._bound()
        return found, others

    def take_out(self, file: SpoolFile) -> None:
        """Have no more to do with a file."""
        self.files.remove(file)
        if file is self.current:
            self.current = None

    def give_up_surplus(self, stopped: Callable[[], bool]) -> None:
        """Tell of each record in the files that are too many, and delete them.

        May take long, so nobody should have to wait for it. Stops early when it is ``stopped``.
        """
        while self.surplus:
            file = self.surplus[0]
            try:
                for number, record in enumerate(file.unsent()):
                    if not number % LOOK and stopped():
                        return
                    self._losses.lose(record, self._why)
            except MessagingException as error:
                LOG.error("What is lost with a spool file is not known: %s", error)
                self._losses.count("SpoolFull", 1, str(self._why))
            self.surplus.popleft()
            file.remove()

    def _lose(self, number: int, record: Record) -> None:
        if not (number and self._still(number)):
            self._losses.lose(record, self._why)

    def set_aside(self, error: LogUnusable) -> None:
        """Go on without the first, which cannot be read."""
        file = self.files[0]
        self.take_out(file)
        LOG.error("A spool file is set aside, with what may be in it: %s", error)
        file.set_aside()

    def _bound(self) -> None:
        """Give up the oldest where there are too many, as when a service dies again and again."""
        total = sum(spool_directory.size(file.path) for file in self.files)
        # The first may be under way, and the current one bounds itself.
        for file in [each for each in list(self.files)[1:] if each is not self.current]:
            if total <= self._most:
                return
            total -= spool_directory.size(file.path)
            self.take_out(file)
            self.surplus.append(file)
