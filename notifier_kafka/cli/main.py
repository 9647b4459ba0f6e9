"""The program ``notifier-kafka``: global options, the way to a command, and its exit code.

cliff finds the commands by entry point and formats lists. Its own ``run`` is not used: it
turns every error into exit code 1, prints some of them on stdout and offers a shell that
takes long to import.
"""

import argparse
import contextlib
import difflib
import logging
import sys
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Never

import stevedore
from cliff import app, commandmanager
from cliff.command import Command

from notifier_kafka.cli import error_report
from notifier_kafka.cli.exits import Exit, UsageError
from notifier_kafka.cli.output import text
from notifier_kafka.errors import (
    ConfigurationError,
    DriverLoadFailure,
    MessagingException,
    TransportUnavailable,
)
from notifier_kafka.version import __version__

if TYPE_CHECKING:
    from oslo_config import cfg

    from notifier_kafka.publishing.transport import NotificationTransport

PROG = "notifier-kafka"
NAMESPACE = "notifier_kafka.commands"
DESCRIPTION = "Publish notifications, listen to them and look after the log that carries them."
CONFIG_HELP = (
    "An INI file; again for more, where the last one wins. Without it those of oslo.config: "
    f"{PROG}.conf in ~/.{PROG}, ~, /etc/{PROG} or /etc."
)
LEVELS = (logging.ERROR, logging.WARNING, logging.INFO, logging.DEBUG)


class Commands(commandmanager.CommandManager):
    """Commands by entry point, loaded when one is called for."""

    def add_command(self, name: str, command_class: type[Command]) -> None:
        # cliff brings commands of its own; of one that we have as well ours counts.
        if name not in self.commands:
            super().add_command(name, command_class)

    def find_command(self, argv: list[str]) -> tuple[type[Command], str, list[str]]:
        # cliff takes an abbreviation as well: "list" would listen for ever, "topics p" purge.
        for length in range(len(argv), 0, -1):
            if (name := " ".join(argv[:length])) in self.commands:
                return self.commands[name].load(), name, argv[length:]
        raise ValueError(argv)

    def load_commands(self, namespace: str) -> None:
        # cliff imports every command to run one, and drops what fails to import.
        self.group_list.append(namespace)
        for entry in stevedore.NamedExtensionManager(namespace, names=()).list_entry_points():
            self.commands[entry.name] = entry


class App(app.App):
    """What the commands of the program share: its options, configuration and transport."""

    NAME = PROG

    def __init__(self) -> None:
        super().__init__(DESCRIPTION, __version__, Commands(NAMESPACE))
        self.options = argparse.Namespace()
        self.conf: cfg.ConfigOpts | None = None

    def build_option_parser(
        self,
        description: str | None,
        version: str | None,
        argparse_kwargs: dict[str, object] | None = None,  # noqa: ARG002 - the signature is cliff's
    ) -> argparse.ArgumentParser:
        parser = argparse.ArgumentParser(
            prog=PROG,
            description=description,
            add_help=False,
            # An abbreviation would swallow a command's own option.
            allow_abbrev=False,
            usage=f"{PROG} [option ...] command [argument ...]",
        )
        add = parser.add_argument
        add("-h", "--help", action="store_true", help="Show this help, or that of a command.")
        add("--version", action="version", version=f"{PROG} {version}")
        add("-v", "--verbose", action="count", default=0, help="Log more; again for still more.")
        add("-q", "--quiet", action="store_true", help="Log errors only.")
        add("--debug", action="store_true", help="Show where an error comes from.")
        add("--config-file", action="append", default=[], metavar="FILE", help=CONFIG_HELP)
        add("--transport-url", metavar="URL", help="Where notifications travel, whatever a file says.")
        return parser

    def configure_logging(self) -> None:
        """Log to stderr, in UTC."""
        handler = logging.StreamHandler(self.stderr)
        handler.setFormatter(_Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        chosen = 0 if self.options.quiet else min(1 + self.options.verbose, len(LEVELS) - 1)
        logging.basicConfig(level=LEVELS[chosen], handlers=[handler], force=True)
        if LEVELS[chosen] > logging.DEBUG:
            # It warns of a plugin that is missing before the error that says what is installed.
            logging.getLogger("stevedore").setLevel(logging.ERROR)

    def run(self, argv: Sequence[str]) -> int:
        """Run the command that ``argv`` names. Errors are left to the caller."""
        _raise_usage_errors(self.parser)
        self.options, rest = self.parser.parse_known_args(argv)
        self.configure_logging()
        if rest[:1] == ["help"]:
            return self._help(rest[1:])
        if self.options.help or not rest:
            return self._help(rest)
        return self.run_subcommand(rest)

    def run_subcommand(self, argv: list[str]) -> int:
        command, parser, arguments = self.find(argv)
        _raise_usage_errors(parser)
        return command.run(parser.parse_args(arguments))

    def find(self, argv: list[str]) -> tuple[Command, argparse.ArgumentParser, list[str]]:
        """Return the command that is named, its parser, and its arguments."""
        try:
            factory, name, arguments = self.command_manager.find_command(argv)
        except ValueError:
            raise UsageError(self._unknown(argv)) from None
        except ImportError as error:
            raise DriverLoadFailure(f"command {argv[0]}", error) from error
        command = factory(self, self.options, cmd_name=name)
        return command, command.get_parser(f"{PROG} {name}"), arguments

    def _unknown(self, argv: list[str]) -> str:
        if argv[0].startswith("-"):
            return f"unknown option {argv[0]}; see '{PROG} --help'"
        names = self.command_manager.get_command_names()
        within = sorted(name for name in names if name.startswith(f"{argv[0]} "))
        if within:
            return f"{argv[0]}: say which: {', '.join(within)}"
        near = sorted(name for name in names if name.endswith(f" {argv[0]}"))
        near = near or difflib.get_close_matches(argv[0], {name.partition(" ")[0] for name in names}, 1)
        hint = f" did you mean {' or '.join(near)}?" if near else ""
        return f"no command {argv[0]!r};{hint} see '{PROG} --help'"

    def _help(self, argv: list[str]) -> int:
        # cliff's help goes through a pager with colours, and stops at a command's arguments.
        if argv and not self._is_group(argv):
            self.stdout.write(self.find(argv)[1].format_help())
            return Exit.OK
        self.stdout.write(f"{self.parser.format_help()}\ncommands:\n")
        for name, entry in sorted(self.command_manager):
            if not argv or name.startswith(f"{argv[0]} "):
                self.stdout.write(f"  {name:<22}{_one_line(entry)}\n")
        self.stdout.write(f"\n'{PROG} help COMMAND' tells more about one.\n")
        return Exit.OK

    def _is_group(self, argv: list[str]) -> bool:
        names = self.command_manager.get_command_names()
        return argv[0] not in names and len(argv) == 1 and any(n.startswith(f"{argv[0]} ") for n in names)

    def configuration(self) -> "cfg.ConfigOpts":
        """Read the files that the command line names, or the usual ones."""
        from oslo_config import cfg

        from notifier_kafka.config import ini_files

        conf = cfg.ConfigOpts()
        files = [argument for path in self.options.config_file for argument in ("--config-file", path)]
        try:
            conf(files, project=PROG, prog=PROG)
        except cfg.Error as error:
            raise ConfigurationError(ini_files.describe(error)) from None
        self.conf = conf
        return conf

    @contextlib.contextmanager
    def transport(self, url: str | None = None) -> "Iterator[NotificationTransport]":
        """Lend the transport of the command line, else ``url``, else that of the configuration.

        Raises ``TransportUnavailable`` when it cannot be reached. What comes later waits for
        a log that is away, as a program's calls do, and a person at a terminal must not.
        """
        from notifier_kafka.publishing import transport

        chosen = self.options.transport_url or url
        lent = transport.get_notification_transport(self.configuration(), chosen)
        try:
            lent.driver.admin().list_topics()
            yield lent
        except TransportUnavailable as error:
            error.args = (f"{error} ({self._blamed(chosen)}; '{PROG} doctor' looks further)",)
            raise
        finally:
            lent.cleanup()

    def _blamed(self, url: str | None) -> str:
        from notifier_kafka.config import options

        assert self.conf is not None  # noqa: S101 - for mypy; the transport was made of it
        return "the transport URL given" if url else options.origin(self.conf, "transport_url")

    def explain(self, error: BaseException) -> str:
        """Say in one line what an error is, with the lines of the files that it names."""
        if isinstance(error, MessagingException) and self.conf is not None:
            from notifier_kafka.cli import config_lines

            return config_lines.locate(self.conf, str(error))
        return str(error)


class _Formatter(logging.Formatter):
    """Times in UTC; nothing in a message can steer the terminal."""

    converter = staticmethod(time.gmtime)
    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"

    def format(self, record: logging.LogRecord) -> str:
        return "\n".join(text.visible(line) for line in super().format(record).split("\n"))


def _raise_usage_errors(parser: argparse.ArgumentParser) -> None:
    # argparse would print the whole usage before the line that says what is wrong.
    def error(message: str) -> Never:
        name = parser.prog.removeprefix(PROG).strip()
        raise UsageError(f"{name}{': ' if name else ''}{message}; see '{parser.prog} --help'")

    parser.error = error  # type: ignore[method-assign]


def _one_line(entry: commandmanager.EntryPointT) -> str:
    try:
        lines = (entry.load().__doc__ or "").strip().splitlines()
    except ImportError as error:
        return f"(cannot be loaded: {error})"
    return lines[0].rstrip(".") if lines else ""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; return its exit code."""
    program = None
    try:
        for stream in (sys.stdout, sys.stderr):
            # A terminal that has no such character is no reason to fail.
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
        program = App()
        result = program.run(sys.argv[1:] if argv is None else argv)
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the last resort of the program
        debug = bool(program and getattr(program.options, "debug", False))
        return error_report.report(error, program.explain if program else str, debug=debug)
    return result


if __name__ == "__main__":
    sys.exit(main())
