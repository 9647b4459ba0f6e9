"""Base classes of the commands."""

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

# The formats of an endless output: not YAML, which is one document.
STREAM_FORMATS = ("csv", "json", "table", "value")


class Command(command.Command):
    """A command of this program."""

    @property
    def program(self) -> main.App:
        return cast(main.App, self.app)

    def get_epilog(self) -> str:
        # cliff's own reads the file list of every installed distribution to name the one with the command.
        return self._epilog or ""


class _FormattedCommand(Command):
    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_json(parser, "formatter")
        # Otherwise a table without rows would be an empty line.
        parser.set_defaults(print_empty=True)
        return parser

    def _generate_columns_and_selector(self, parsed_args: argparse.Namespace, column_names: Any) -> Any:
        for name in parsed_args.columns:
            if name not in column_names:
                raise UsageError(f"there is no column {name!r}; the columns are {', '.join(column_names)}")
        return super()._generate_columns_and_selector(parsed_args, column_names)  # type: ignore[misc]


class Lister(_FormattedCommand, lister.Lister):
    """A command that prints a list: ``-f table|json|csv|value|yaml``, or ``--json``."""

    def produce_output(
        self, parsed_args: argparse.Namespace, column_names: Sequence[str], data: Iterable[Sequence[Any]]
    ) -> int:
        if parsed_args.formatter == "csv":
            data = [[_csv_cell(cell) for cell in row] for row in data]
        return int(super().produce_output(parsed_args, column_names, data))


class LineLister(Lister):
    """A list that is too wide for a table: a person gets lines, each as soon as it is known."""

    @abc.abstractmethod
    def format_row(self, *row: Any) -> str:
        """Format a row for a person."""

    def produce_output(
        self, parsed_args: argparse.Namespace, column_names: Sequence[str], data: Iterable[Sequence[Any]]
    ) -> int:
        if parsed_args.formatter != "table":
            return int(super().produce_output(parsed_args, column_names, list(data)))
        for row in data:
            self.app.stdout.write(self.format_row(*row))
            self.app.stdout.flush()
        return 0


class ShowOne(_FormattedCommand, show.ShowOne):
    """A command that prints one thing: ``-f table|json|csv|value|yaml|shell``, or ``--json``."""

    def _load_formatter_plugins(self) -> Any:
        formatters = super()._load_formatter_plugins()
        # cliff has CSV for lists only.
        formatters.extensions.append(
            extension.Extension("csv", cast(Any, None), cast(Any, None), _OneAsCsv())
        )
        formatters["shell"].obj = _OneAsShell()
        return formatters


class _OneAsCsv(base.SingleFormatter):
    """CSV with a line of names and a line of values, as for a list with one row."""

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
    """Variables for a shell's eval. With cliff's own, the shell would run a name such as $(id)."""

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
    # cliff unwraps cells later, too late for the check for formulas.
    return text.csv_cell(_unwrapped(cell))


def _unwrapped(cell: Any) -> Any:
    return cell.machine_readable() if isinstance(cell, columns.FormattableColumn) else cell


def add_stream_format(parser: argparse.ArgumentParser, default: str) -> None:
    """Add ``-f`` and ``--json`` to a command with an endless output; ``format`` has the choice."""
    parser.add_argument(
        "-f",
        "--format",
        choices=STREAM_FORMATS,
        default=default,
        help="Output format; json is JSON lines. Default: %(default)s.",
    )
    _add_json(parser, "format")


def _add_json(parser: argparse.ArgumentParser, name: str) -> None:
    parser.add_argument(
        "--json",
        dest=name,
        action="store_const",
        const="json",
        default=argparse.SUPPRESS,
        help="Same as -f json.",
    )
