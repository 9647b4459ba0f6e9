"""What the commands have in common."""

import abc
import argparse
import csv
import re
import shlex
from collections.abc import Iterable, Sequence
from typing import Any, TextIO, cast

from cliff import columns, command, lister, show
from cliff.formatters import base, shell
from stevedore import extension

from notifier_kafka.cli import main
from notifier_kafka.cli.exits import UsageError
from notifier_kafka.cli.output import text

# Of what comes bit by bit: a table of all of it is never finished.
STREAMED = ("csv", "json", "table", "value")


class Command(command.Command):
    """A command of this program."""

    @property
    def program(self) -> main.App:
        return cast(main.App, self.app)

    def get_epilog(self) -> str:
        # cliff's reads the file list of every installed distribution to name a command's owner.
        return self._epilog or ""


class _Printing(Command):
    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_json(parser, "formatter")
        # An empty table would be an empty line, which says nothing.
        parser.set_defaults(print_empty=True)
        return parser

    def _generate_columns_and_selector(self, parsed_args: argparse.Namespace, column_names: Any) -> Any:
        for name in parsed_args.columns:
            if name not in column_names:
                raise UsageError(f"there is no column {name!r}; there are {', '.join(column_names)}")
        return super()._generate_columns_and_selector(parsed_args, column_names)  # type: ignore[misc]


class Lister(_Printing, lister.Lister):
    """A command that prints a list: ``-f table|json|csv|value|yaml``, or ``--json``."""

    def produce_output(
        self, parsed_args: argparse.Namespace, column_names: Sequence[str], data: Iterable[Sequence[Any]]
    ) -> int:
        if parsed_args.formatter == "csv":
            data = [[_csv_cell(cell) for cell in row] for row in data]
        return int(super().produce_output(parsed_args, column_names, data))


class LineLister(Lister):
    """A list whose table would be wider than a terminal: a person gets lines, each as it is found."""

    @abc.abstractmethod
    def line(self, *row: Any) -> str:
        """Spell a row for a person."""

    def produce_output(
        self, parsed_args: argparse.Namespace, column_names: Sequence[str], data: Iterable[Sequence[Any]]
    ) -> int:
        if parsed_args.formatter != "table":
            return int(super().produce_output(parsed_args, column_names, list(data)))
        for row in data:
            self.app.stdout.write(self.line(*row))
            self.app.stdout.flush()
        return 0


class ShowOne(_Printing, show.ShowOne):
    """A command that prints one thing: ``-f table|json|csv|value|yaml|shell``, or ``--json``."""

    def _load_formatter_plugins(self) -> Any:
        found = super()._load_formatter_plugins()
        # cliff has it for lists only.
        found.extensions.append(extension.Extension("csv", cast(Any, None), cast(Any, None), _OneAsCsv()))
        found["shell"].obj = _OneAsShell()
        return found


class _OneAsCsv(base.SingleFormatter):
    """A line of names and one of values, as a list of one thing has them."""

    def add_argument_group(self, parser: argparse.ArgumentParser) -> None:
        pass

    def emit_one(
        self,
        column_names: Sequence[str],
        data: Sequence[Any],
        stdout: TextIO,
        parsed_args: argparse.Namespace,  # noqa: ARG002 - the signature is cliff's
    ) -> None:
        writer = csv.writer(stdout, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
        writer.writerow(column_names)
        writer.writerow(map(_csv_cell, data))


class _OneAsShell(shell.ShellFormatter):
    """Variables for a shell's eval. cliff's own would have it run what a name such as $(id) says."""

    def emit_one(
        self,
        column_names: Sequence[str],
        data: Sequence[Any],
        stdout: TextIO,
        parsed_args: argparse.Namespace,
    ) -> None:
        for column, cell in zip(column_names, data, strict=True):
            name = re.sub(r"\W", "_", column.lower(), flags=re.ASCII)
            if name in (parsed_args.variables or [name]):
                value = shlex.quote(str(_unwrapped(cell)))
                stdout.write(f"{parsed_args.prefix}{name}={value}\n")


def _csv_cell(cell: Any) -> Any:
    # Unwrapped first: cliff would do it later, and behind the look for formulas.
    return text.csv_cell(_unwrapped(cell))


def _unwrapped(cell: Any) -> Any:
    return cell.machine_readable() if isinstance(cell, columns.FormattableColumn) else cell


def add_stream_format(parser: argparse.ArgumentParser, default: str) -> None:
    """Add ``-f`` and ``--json`` to a command that prints bit by bit; ``format`` is what was chosen."""
    parser.add_argument(
        "-f",
        "--format",
        choices=STREAMED,
        default=default,
        help="%(default)s without it; json is JSON lines.",
    )
    _add_json(parser, "format")


def _add_json(parser: argparse.ArgumentParser, name: str) -> None:
    parser.add_argument(
        "--json",
        dest=name,
        action="store_const",
        const="json",
        default=argparse.SUPPRESS,
        help="The same as -f json.",
    )
