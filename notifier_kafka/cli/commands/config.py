"""``notifier-kafka config ...``: print a sample, show and validate the configuration, import JSON."""

import argparse
import json
from collections.abc import Iterable, Sequence
from typing import Any

from oslo_config import cfg, generator

from notifier_kafka.bytes_client import json_config
from notifier_kafka.cli import installed_options, payloads
from notifier_kafka.cli.command import Command, LineLister, Lister
from notifier_kafka.cli.exits import Exit
from notifier_kafka.cli.output import text
from notifier_kafka.cli.output.cells import ABSENT
from notifier_kafka.config import transport_url
from notifier_kafka.errors import ConfigurationError

WRAP_WIDTH = "79"  # that of the sample in the repository
# Properties that the bytes client handles itself, and the options that mean the same here.
_EQUIVALENT_OPTIONS = {
    "buffer.memory": ("notifications", "outbox_bytes"),
    "retries": ("notifications", "retry"),
    "group.id": ("listener", "group"),
    "auto.offset.reset": ("listener", "start"),
    "max.poll.records": ("listener", "batch_size"),
}
_KINDS = (json_config.PRODUCER, json_config.CONSUMER)
_WITHOUT_EQUIVALENT = ("auto.offset.reset", "enable.auto.commit", "producer.type")


class ShowSample(Command):
    """Print a sample configuration file: every option, explained and commented out."""

    def take_action(
        self,
        parsed_args: argparse.Namespace,  # noqa: ARG002 - the signature is cliff's
    ) -> None:
        conf = cfg.ConfigOpts()
        generator.register_cli_opts(conf)
        names = [word for name in installed_options.generator_namespaces() for word in ("--namespace", name)]
        conf([*names, "--wrap-width", WRAP_WIDTH], default_config_files=[], default_config_dirs=[])
        generator.generate(conf, self.app.stdout)


class ShowConfig(Lister):
    """Show the effective value of each option, and where it was set.

    Secrets are masked.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("--set", action="store_true", help="Only options that are set.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        settings = installed_options.settings(
            self.program.configuration(), self.program.options.transport_url
        )
        rows = [_row(each) for each in settings if each.origin or not parsed_args.set]
        return ("group", "option", "value", "origin"), rows


class ValidateConfig(LineLister):
    """Check the configuration, and print one line per problem.

    The exit code is 5 if there is a problem. Checks the names of options, their values, the
    plugins that they name, and the transport URL. Does not connect to the log; 'doctor' does.
    """

    def take_action(
        self,
        parsed_args: argparse.Namespace,  # noqa: ARG002 - the signature is cliff's
    ) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        self._conf = self.program.configuration()
        self._problems = list(installed_options.find_problems(self._conf, self.program.options.transport_url))
        rows = [tuple(text.visible(each) for each in problem) for problem in self._problems]
        return installed_options.Problem._fields, rows

    def run(self, parsed_args: argparse.Namespace) -> int:
        super().run(parsed_args)
        if self._problems:
            return Exit.CONFIGURATION
        if parsed_args.formatter == "table":
            files = ", ".join(map(str, installed_options.config_files(self._conf)))
            checked = files or "no file was read; defaults and environment variables apply"
            self.app.stdout.write(f"no problems found: {text.visible(checked)}\n")
        return Exit.OK

    def format_row(self, *row: Any) -> str:
        return f"{installed_options.Problem(*row)}\n"


class ImportConfig(Command):
    """Convert the JSON configuration of a plain Kafka client to an INI file.

    The JSON looks like {"Type": "KafkaProducerConfig", "Properties": {...}}, or has the type
    KafkaConsumerConfig. The output includes the passwords.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("json", metavar="JSON", help="JSON text, @FILE, or - for standard input.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        given = payloads.read_one(parsed_args.json, as_text=True)
        self.app.stdout.write(ini(given))


def ini(config: str) -> str:
    """Format the configuration of a plain client as an INI file."""
    kind = _kind(config)
    properties = json_config.read(config, kind)
    # A line break in a value would begin another option.
    for name, value in properties.items():
        if not value.isprintable():
            raise ConfigurationError(f"property {name}: an INI file cannot hold control characters")
    address = transport_url.TransportURL.parse(cfg.ConfigOpts(), json_config.url(properties, kind))
    query, address.query = address.query, {}
    sections = {"DEFAULT": {"transport_url": str(address)}, "notifications": {"driver": "messagingv2"}}
    if kind == json_config.CONSUMER:
        del sections["notifications"]
    comments = []
    for name, value in properties.items():
        if name in _EQUIVALENT_OPTIONS and value != "none":
            group, option = _EQUIVALENT_OPTIONS[name]
            sections.setdefault(group, {})[option] = value
        elif name in _WITHOUT_EQUIVALENT:
            comments.append(f"# {name} = {value} has no equivalent option.\n")
    sections[f"drivers_{address.transport}"] = query
    return "".join(comments) + "\n".join(
        _section(name, values) for name, values in sections.items() if values
    )


def _kind(config: str) -> str:
    try:
        parsed = json.loads(config)
    except ValueError:
        parsed = None  # json_config.read reports it
    kind = parsed.get("Type", "") if isinstance(parsed, dict) else json_config.PRODUCER
    if kind not in _KINDS:
        raise ConfigurationError(f'"Type" is {kind!r}, not one of {", ".join(_KINDS)}')
    return str(kind)


def _section(name: str, values: dict[str, str]) -> str:
    return f"[{name}]\n" + "".join(f"{option} = {_quoted(value)}\n" for option, value in values.items())


def _quoted(value: str) -> str:
    value = value.replace("$", "$$")
    # The parser removes one pair of quotes, and spaces at the ends.
    needs_no_quotes = value == value.strip() and value[:1] not in ("'", '"')
    return value if needs_no_quotes else f'"{value}"'


def _row(setting: installed_options.Setting) -> Sequence[Any]:
    value = setting.value
    if value is None:
        value = ABSENT
    elif isinstance(value, list):
        value = ",".join(map(str, value))
    elif isinstance(value, dict):
        value = ",".join(f"{name}:{each}" for name, each in value.items())
    cell = text.visible(value) if isinstance(value, str) else value
    return setting.group, setting.option, cell, text.visible(setting.origin or "default")
