"""``notifier-kafka doctor``: is everything here that is needed, and what to do if not."""

import argparse
import shlex
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from oslo_config import cfg

from notifier_kafka.cli import doctor_checks, main
from notifier_kafka.cli.command import LineLister
from notifier_kafka.cli.doctor_checks import Finding
from notifier_kafka.cli.exits import Exit
from notifier_kafka.cli.output import text
from notifier_kafka.errors import ConfigurationError

WIDTH = 25
MOST_NARROW = 30
COLOURS = {"FAIL": text.RED, "WARN": text.YELLOW}


class Doctor(LineLister):
    """Look at everything that is needed, and say OK, WARN or FAIL of each with what mends it.

    Python, each Java and why it is taken or not, the extras, the jars in the cache, the
    configuration and where each value comes from, whether the transport is reached, and
    room on the disk. Exit code 0 without a FAIL, else that of the first: 6 for a Java or a
    plugin, 5 for the configuration, 3 for the transport or the disk.
    """

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        self._code = Exit.OK
        return ("status", "check", "found", "fix"), self._rows(parsed_args)

    def run(self, parsed_args: argparse.Namespace) -> int:
        super().run(parsed_args)
        return self._code

    def line(self, *row: Any) -> str:
        status, check, found, fix = row
        margin = " " * (5 + WIDTH)
        told = text.coloured(status, COLOURS[status]) if status in COLOURS else status
        line = f"{told}{'':<{5 - len(status)}}{check:<{WIDTH}}{_wrapped(found, margin)}\n"
        return line + (f"{margin}-> {_wrapped(fix, margin + '   ')}\n" if fix else "")

    def _rows(self, parsed_args: argparse.Namespace) -> Iterator[Sequence[str]]:  # noqa: ARG002
        files = [word for path in self.program.options.config_file for word in ("--config-file", path)]
        program = shlex.join([main.PROG, *files])
        for finding in self._findings():
            self._code = self._code or finding.code
            # As this one was given them, or another file would be looked at.
            fix = finding.fix.replace(f"{main.PROG} ", f"{program} ")
            yield finding.status, finding.check, text.visible(finding.found), text.visible(fix)

    def _findings(self) -> Iterator[Finding]:
        url = self.program.options.transport_url
        conf, wrong = self._configuration()
        yield from doctor_checks.python()
        yield from doctor_checks.extras()
        yield from doctor_checks.javas(conf)
        yield from doctor_checks.cached_jars()
        if conf is None:
            fix = f"mend the line, then look again: {main.PROG} config validate"
            yield Finding("FAIL", "configuration", wrong, fix, Exit.CONFIGURATION)
            return
        found = list(doctor_checks.configuration(conf, url))
        yield from found
        if all(each.status != "FAIL" for each in found):
            yield from doctor_checks.reachable(conf, url)
            yield from doctor_checks.disk(conf)

    def _configuration(self) -> tuple[cfg.ConfigOpts | None, str]:
        try:
            return self.program.configuration(), ""
        except ConfigurationError as error:
            return None, str(error)


def _wrapped(words: str, margin: str) -> str:
    """Have words go on below themselves where a terminal ends; a path stays whole, to be copied."""
    if not sys.stdout.isatty():
        return words
    width = max(MOST_NARROW, shutil.get_terminal_size().columns - len(margin))
    lines = textwrap.wrap(words, width, break_long_words=False, break_on_hyphens=False)
    return f"\n{margin}".join(lines)
