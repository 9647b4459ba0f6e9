"""What the commands have in common."""

import argparse
from typing import cast

from cliff import command, lister, show

from notifier_kafka.cli import main


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
        parser.add_argument(
            "--json",
            dest="formatter",
            action="store_const",
            const="json",
            default=argparse.SUPPRESS,
            help="The same as -f json.",
        )
        # An empty table would be an empty line, which says nothing.
        parser.set_defaults(print_empty=True)
        return parser


class Lister(_Printing, lister.Lister):
    """A command that prints a list: ``-f table|json|csv|value|yaml``, or ``--json``."""


class ShowOne(_Printing, show.ShowOne):
    """A command that prints one thing: ``-f table|json|value|yaml|shell``, or ``--json``."""
