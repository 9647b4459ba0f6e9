"""The program ``notifier-kafka``: global options, dispatch to a command, and the exit code.

cliff finds the commands by entry point and formats lists. Its own ``run`` is not used: it
turns every error into exit code 1, prints some of them on stdout, and offers a shell that
is slow to import.
"""

import argparse
import contextlib
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
from notifier_kafka.contract import did_you_mean
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
DESCRIPTION = "Publish notifications, listen to them, and administer the log that stores them."
CONFIG_HELP = (
    "A configuration file (INI); repeatable, the last one wins. Default: "
    f"{PROG}.conf in ~/.{PROG}, ~, /etc/{PROG} or /etc."
)
LOG_LEVELS = (logging.ERROR, logging.WARNING, logging.INFO, logging.DEBUG)


class CommandRegistry(commandmanager.CommandManager):
    """Commands by entry point, each loaded when it is needed."""

    def add_command(self, name: str, command_class: type[Command]) -> None:
        # cliff adds commands of its own, which must not replace ours.
        if name not in self.commands:
            super().add_command(name, command_class)

    def find_command(self, argv: list[str]) -> tuple[type[Command], str, list[str]]:
        # cliff accepts abbreviations too: "list" would listen for ever, "topics p" purge.
        for length in range(len(argv), 0, -1):
            if (name := " ".join(argv[:length])) in self.commands:
                return self.commands[name].load(), name, argv[length:]
        raise ValueError(argv)

    def load_commands(self, namespace: str) -> None:
        # cliff imports every command to run one, and hides those that fail to import.
        self.group_list.append(namespace)
        for entry in stevedore.NamedExtensionManager(namespace, names=()).list_entry_points():
            self.commands[entry.name] = entry


class App(app.App):
    """What all commands share: global options, configuration and transport."""

    NAME = PROG

    def __init__(self) -> None:
        super().__init__(DESCRIPTION, __version__, CommandRegistry(NAMESPACE))
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
            # An abbreviation could be an option of a command.
            allow_abbrev=False,
            usage=f"{PROG} [option ...] command [argument ...]",
        )
        add = parser.add_argument
        add("-h", "--help", action="store_true", help="Show this help, or the help of a command.")
        add("--version", action="version", version=f"{PROG} {version}", help="Show the version.")
        add("-v", "--verbose", action="count", default=0, help="Log more; repeatable.")
        add("-q", "--quiet", action="store_true", help="Log errors only.")
        add("--debug", action="store_true", help="Show the traceback of an error.")
        add("--config-file", action="append", default=[], metavar="FILE", help=CONFIG_HELP)
        add("--transport-url", metavar="URL", help="URL of the log; overrides the configuration.")
        return parser

    def configure_logging(self) -> None:
        """Log to stderr, in UTC."""
        handler = logging.StreamHandler(self.stderr)
        handler.setFormatter(_Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        index = 0 if self.options.quiet else min(1 + self.options.verbose, len(LOG_LEVELS) - 1)
        logging.basicConfig(level=LOG_LEVELS[index], handlers=[handler], force=True)
        if LOG_LEVELS[index] > logging.DEBUG:
            # It logs a warning for a missing plugin; our error follows and tells more.
            logging.getLogger("stevedore").setLevel(logging.ERROR)

    def run(self, argv: Sequence[str]) -> int:
        """Run the command that ``argv`` names; the caller handles errors."""
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
        """Return the command that ``argv`` names, its parser, and its arguments."""
        try:
            factory, name, arguments = self.command_manager.find_command(argv)
        except ValueError:
            raise UsageError(self._describe_unknown(argv)) from None
        except ImportError as error:
            raise DriverLoadFailure(f"command {argv[0]}", error) from error
        command = factory(self, self.options, cmd_name=name)
        return command, command.get_parser(f"{PROG} {name}"), arguments

    def _describe_unknown(self, argv: list[str]) -> str:
        if argv[0].startswith("-"):
            return f"unknown option {argv[0]}; see '{PROG} --help'"
        names = self.command_manager.get_command_names()
        members = sorted(name for name in names if name.startswith(f"{argv[0]} "))
        if members:
            return f"{argv[0]} is a group of commands; say which: {', '.join(members)}"
        near = " or ".join(sorted(name for name in names if name.endswith(f" {argv[0]}")))
        near = near or did_you_mean.nearest(argv[0], {name.partition(" ")[0] for name in names}) or ""
        hint = f" did you mean {near}?" if near else ""
        return f"there is no command {argv[0]!r};{hint} see '{PROG} --help'"

    def _help(self, argv: list[str]) -> int:
        # cliff's help uses a pager with colours, and fails if arguments follow the command.
        if argv and not self._is_group(argv):
            self.stdout.write(self.find(argv)[1].format_help())
            return Exit.OK
        self.stdout.write(f"{self.parser.format_help()}\ncommands:\n")
        for name, entry in sorted(self.command_manager):
            if not argv or name.startswith(f"{argv[0]} "):
                self.stdout.write(f"  {name:<22}{_summary(entry)}\n")
        self.stdout.write(f"\n'{PROG} help COMMAND' explains a command.\n")
        return Exit.OK

    def _is_group(self, argv: list[str]) -> bool:
        names = self.command_manager.get_command_names()
        return argv[0] not in names and len(argv) == 1 and any(n.startswith(f"{argv[0]} ") for n in names)

    def configuration(self) -> "cfg.ConfigOpts":
        """Read the files of --config-file, or those in the default places."""
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
        """Lend the transport of the command line, else of ``url``, else of the configuration.

        Raises ``TransportUnavailable`` if the log cannot be reached. Later calls would wait for
        it, as those of a service do; a person at a terminal must not wait.
        """
        from notifier_kafka.publishing import transport

        given = self.options.transport_url or url
        connected = transport.get_notification_transport(self.configuration(), given)
        try:
            connected.driver.admin().list_topics()
            yield connected
        except TransportUnavailable as error:
            error.args = (f"{error} ({self._url_origin(given)}; '{PROG} doctor' checks more)",)
            raise
        finally:
            connected.cleanup()

    def _url_origin(self, url: str | None) -> str:
        from notifier_kafka.config import options

        assert self.conf is not None  # noqa: S101 - for mypy; the transport needed it
        return "the given transport URL" if url else options.origin(self.conf, "transport_url")

    def explain(self, error: BaseException) -> str:
        """Describe an error in one line, with line numbers for the files that it names."""
        if isinstance(error, MessagingException) and self.conf is not None:
            from notifier_kafka.cli import config_lines

            return config_lines.add_line_numbers(self.conf, str(error))
        return str(error)


class _Formatter(logging.Formatter):
    """Formats times in UTC, and escapes what could control the terminal."""

    converter = staticmethod(time.gmtime)
    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"

    def format(self, record: logging.LogRecord) -> str:
        return "\n".join(text.visible(line) for line in super().format(record).split("\n"))


def _raise_usage_errors(parser: argparse.ArgumentParser) -> None:
    # argparse would print the whole usage before the error.
    def error(message: str) -> Never:
        name = parser.prog.removeprefix(PROG).strip()
        raise UsageError(f"{name}{': ' if name else ''}{message}; see '{parser.prog} --help'")

    parser.error = error  # type: ignore[method-assign]


def _summary(entry: commandmanager.EntryPointT) -> str:
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
            # Escape a character that the terminal cannot show, instead of failing.
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
        program = App()
        code = program.run(sys.argv[1:] if argv is None else argv)
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - every error ends in an exit code
        debug = bool(program and getattr(program.options, "debug", False))
        return error_report.report(error, program.explain if program else str, debug=debug)
    return code


if __name__ == "__main__":
    sys.exit(main())
