"""``notifier-kafka config ...``: a sample, what counts, what is wrong, and a plain client's JSON."""

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

WIDTH = "79"  # that of the sample in the checkout
# What the plain client acts upon itself, and the option that says the same to a listener.
_COUNTERPARTS = {
    "buffer.memory": ("notifications", "outbox_bytes"),
    "retries": ("notifications", "retry"),
    "group.id": ("listener", "group"),
    "auto.offset.reset": ("listener", "start"),
    "max.poll.records": ("listener", "batch_size"),
}
_KINDS = (json_config.PRODUCER, json_config.CONSUMER)
_ALONE = ("auto.offset.reset", "enable.auto.commit", "producer.type")


class ShowSample(Command):
    """Print a configuration file with every option, explained and commented out."""

    def take_action(
        self,
        parsed_args: argparse.Namespace,  # noqa: ARG002 - the signature is cliff's
    ) -> None:
        conf = cfg.ConfigOpts()
        generator.register_cli_opts(conf)
        names = [word for name in installed_options.namespaces() for word in ("--namespace", name)]
        conf([*names, "--wrap-width", WIDTH], default_config_files=[], default_config_dirs=[])
        generator.generate(conf, self.app.stdout)


class ShowConfig(Lister):
    """Show the value of each option that counts and where it comes from; secrets are masked."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("--set", action="store_true", help="Leave out what is at its default.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        found = installed_options.settings(self.program.configuration(), self.program.options.transport_url)
        rows = [_row(each) for each in found if each.place or not parsed_args.set]
        return ("group", "option", "value", "origin"), rows


class ValidateConfig(LineLister):
    """Print a line for each thing that is wrong with the configuration; exit code 5 if any is.

    Looks at names, values, the channels, keys and drivers that they name and the transport
    URL. Reaches for no broker: 'doctor' does.
    """

    def take_action(
        self,
        parsed_args: argparse.Namespace,  # noqa: ARG002 - the signature is cliff's
    ) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        self._conf = self.program.configuration()
        self._found = list(installed_options.problems(self._conf, self.program.options.transport_url))
        rows = [tuple(text.visible(each) for each in problem) for problem in self._found]
        return installed_options.Problem._fields, rows

    def run(self, parsed_args: argparse.Namespace) -> int:
        super().run(parsed_args)
        if self._found:
            return Exit.CONFIGURATION
        if parsed_args.formatter == "table":
            read = (
                ", ".join(map(str, installed_options.files(self._conf)))
                or "no file was read, the defaults count"
            )
            self.app.stdout.write(f"nothing is wrong: {text.visible(read)}\n")
        return Exit.OK

    def line(self, *row: Any) -> str:
        return f"{installed_options.Problem(*row)}\n"


class ImportConfig(Command):
    """Turn the JSON configuration of a plain Kafka client into an INI file.

    It looks like {"Type": "KafkaProducerConfig", "Properties": {...}}, or KafkaConsumerConfig.
    The file may hold a password.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("json", metavar="JSON", help="JSON text, @FILE, or - for standard input.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        given = payloads.read_one(parsed_args.json, as_text=True)
        self.app.stdout.write(ini(given))


def ini(config: str) -> str:
    """Write the INI file that says what the plain client's configuration says."""
    kind = _kind(config)
    properties = json_config.read(config, kind)
    # Text of an INI file that begins a line of its own would be another option.
    for name, value in properties.items():
        if not value.isprintable():
            raise ConfigurationError(f"property {name}: an INI file has no place for control characters")
    address = transport_url.TransportURL.parse(cfg.ConfigOpts(), json_config.url(properties, kind))
    query, address.query = address.query, {}
    sections = {"DEFAULT": {"transport_url": str(address)}, "notifications": {"driver": "messagingv2"}}
    if kind == json_config.CONSUMER:
        del sections["notifications"]
    alone = []
    for name, value in properties.items():
        if name in _COUNTERPARTS and value != "none":
            group, option = _COUNTERPARTS[name]
            sections.setdefault(group, {})[option] = value
        elif name in _ALONE:
            alone.append(f"# {name} = {value} has no counterpart.\n")
    sections[f"drivers_{address.transport}"] = query
    return "".join(alone) + "\n".join(_section(name, values) for name, values in sections.items() if values)


def _kind(config: str) -> str:
    try:
        parsed = json.loads(config)
    except ValueError:
        parsed = None  # read() says what is wrong with it
    found = parsed.get("Type", "") if isinstance(parsed, dict) else json_config.PRODUCER
    if found not in _KINDS:
        raise ConfigurationError(f'"Type" is {found!r}; it is one of {", ".join(_KINDS)}')
    return str(found)


def _section(name: str, values: dict[str, str]) -> str:
    return f"[{name}]\n" + "".join(f"{option} = {_quoted(value)}\n" for option, value in values.items())


def _quoted(value: str) -> str:
    value = value.replace("$", "$$")
    # The parser takes one pair of quotes away, and spaces at the ends.
    bare = value == value.strip() and value[:1] not in ("'", '"')
    return value if bare else f'"{value}"'


def _row(setting: installed_options.Setting) -> Sequence[Any]:
    value = setting.value
    if value is None:
        value = ABSENT
    elif isinstance(value, list):
        value = ",".join(map(str, value))
    elif isinstance(value, dict):
        value = ",".join(f"{name}:{each}" for name, each in value.items())
    shown = text.visible(value) if isinstance(value, str) else value
    return setting.group, setting.option, shown, text.visible(setting.place or "default")
