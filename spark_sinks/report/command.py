"""``notifier-kafka report``: the page of an output."""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from notifier_kafka.cli.arguments import page_file
from notifier_kafka.cli.command import ShowOne
from notifier_kafka.cli.output import text
from notifier_kafka.errors import ConfigurationError, DriverLoadFailure
from spark_sinks.state import safe_files
from spark_sinks.state.ledger import CHECKPOINT_DIRECTORY


class Report(ShowOne):
    """Make a page of charts from a parquet output.

    The page is one file that needs no network. The key figures are printed as well. Spark is not started.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add = parser.add_argument
        add(
            "--input",
            metavar="DIR",
            required=True,
            type=_directory,
            help="Directory that 'aggregate --output parquet:DIR' wrote.",
        )
        add(
            "--checkpoint-dir",
            metavar="DIR",
            help="Checkpoint directory of the job. Default: _job in the input.",
        )
        page_file(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Sequence[Any]]:
        gathering, page, sections = _modules()
        directory = Path(parsed_args.input)
        if not directory.is_dir():
            raise ConfigurationError(f"report of {directory}: there is no such directory")
        checkpoint = Path(parsed_args.checkpoint_dir or directory / CHECKPOINT_DIRECTORY)
        named = ["--checkpoint-dir", parsed_args.checkpoint_dir] if parsed_args.checkpoint_dir else []
        command = ("notifier-kafka", "report", "--input", str(directory), *named, "-o")
        try:
            found = gathering.gather(directory, checkpoint, (*command, parsed_args.output_file))
        except ConfigurationError as error:
            raise ConfigurationError(f"report of {directory}: {error}") from error
        _write(Path(parsed_args.output_file), page.make(found))
        figures = sections.summary(found)
        return tuple(figures), tuple(figures.values())

    def run(self, parsed_args: argparse.Namespace) -> int:
        result: int = super().run(parsed_args)
        self.app.stdout.flush()
        text.note(f"page written to {Path(parsed_args.output_file).absolute()}")
        return result


def _modules() -> tuple[ModuleType, ...]:
    # Imported late: they take a second.
    try:
        from spark_sinks.report import gathering, page, sections
    except ModuleNotFoundError as error:
        raise DriverLoadFailure(
            "report", f"{error}; install it with: pip install 'notifier-kafka[report,spark]'"
        ) from error
    return gathering, page, sections


def _directory(argument: str) -> str:
    """Accept DIR and parquet:DIR."""
    return argument.removeprefix("parquet:")


def _write(file: Path, page: str) -> None:
    part = file.with_name(f".{file.name}.part")
    try:
        with open(part, "w", encoding="utf-8", opener=safe_files.open_new) as written:
            written.write(page)
        os.replace(part, file)
    except OSError as error:
        raise ConfigurationError(f"report: {file} cannot be written: {error.strerror}") from error
