"""``notifier-kafka doctor``: check everything that is needed, and tell what to do if it is missing."""

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

CHECK_COLUMNS = 25
MIN_TEXT_COLUMNS = 30
COLOURS = {"FAIL": text.RED, "WARN": text.YELLOW}


class Doctor(LineLister):
    """Check everything that is needed: print OK, WARN or FAIL for each item, and how to fix it.

    Checks Python, the extras, each Java that is found and whether it is used, the jars in the
    cache, the configuration and where each value was set, the connection to the log, and the
    free disk space. The exit code is that of the first FAIL: 6 for a Java or a plugin, 5 for
    the configuration, 3 for the log or the disk. Without a FAIL it is 0.
    """

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        self._code = Exit.OK
        return ("status", "check", "found", "fix"), self._rows(parsed_args)

    def run(self, parsed_args: argparse.Namespace) -> int:
        super().run(parsed_args)
        return self._code

    def format_row(self, *row: Any) -> str:
        status, check, found, fix = row
        margin = " " * (5 + CHECK_COLUMNS)
        coloured = text.coloured(status, COLOURS[status]) if status in COLOURS else status
        line = f"{coloured}{'':<{5 - len(status)}}{check:<{CHECK_COLUMNS}}{_wrap(found, margin)}\n"
        return line + (f"{margin}-> {_wrap(fix, margin + '   ')}\n" if fix else "")

    def _rows(self, parsed_args: argparse.Namespace) -> Iterator[Sequence[str]]:  # noqa: ARG002
        files = [word for path in self.program.options.config_file for word in ("--config-file", path)]
        program = shlex.join([main.PROG, *files])
        for finding in self._findings():
            self._code = self._code or finding.code
            # With the same configuration files as this command.
            fix = finding.fix.replace(f"{main.PROG} ", f"{program} ")
            yield finding.status, finding.check, text.visible(finding.found), text.visible(fix)

    def _findings(self) -> Iterator[Finding]:
        url = self.program.options.transport_url
        conf, wrong = self._configuration()
        yield from doctor_checks.check_python()
        yield from doctor_checks.check_extras()
        yield from doctor_checks.check_javas(conf)
        yield from doctor_checks.check_jars()
        if conf is None:
            fix = f"correct the line, then run: {main.PROG} config validate"
            yield Finding("FAIL", "configuration", wrong, fix, Exit.CONFIGURATION)
            return
        findings = list(doctor_checks.check_configuration(conf, url))
        yield from findings
        if all(each.status != "FAIL" for each in findings):
            yield from doctor_checks.check_transport(conf, url)
            yield from doctor_checks.check_disk(conf)

    def _configuration(self) -> tuple[cfg.ConfigOpts | None, str]:
        try:
            return self.program.configuration(), ""
        except ConfigurationError as error:
            return None, str(error)


def _wrap(words: str, margin: str) -> str:
    """Wrap words at the terminal's width, below themselves. A path stays whole, so that it can be copied."""
    if not sys.stdout.isatty():
        return words
    width = max(MIN_TEXT_COLUMNS, shutil.get_terminal_size().columns - len(margin))
    lines = textwrap.wrap(words, width, break_long_words=False, break_on_hyphens=False)
    return f"\n{margin}".join(lines)
