"""Every option of the installed packages: its value, the origin of the value, and what is wrong with it."""

import pathlib
from collections.abc import Iterable, Iterator
from importlib import metadata
from typing import Any, NamedTuple

from oslo_config import cfg

from notifier_kafka.cli import config_lines
from notifier_kafka.config import ini_files, options, reading, transport_url
from notifier_kafka.contract import did_you_mean
from notifier_kafka.contract.secret_masking import MASK, mask_transport_url
from notifier_kafka.errors import MessagingException
from notifier_kafka.publishing import notifier, transport

NAMESPACE = "oslo.config.opts"
# Prefixes of this distribution's entry points, and of drivers that follow its naming.
OUR_PREFIXES = ("notifier_kafka", "spark_sinks")
MIN_SIMILARITY = 0.85
DEFAULT = "DEFAULT"


class Setting(NamedTuple):
    """An option with its effective value and where that was set; an empty origin means the default."""

    group: str
    option: str
    value: Any
    origin: str


class Problem(NamedTuple):
    """Something wrong: where, what, and how to correct it if that is known."""

    place: str
    what: str
    advice: str = ""

    def __str__(self) -> str:
        return f"{self.place}: {self.what}" + (f"; {self.advice}" if self.advice else "")


def generator_namespaces() -> list[str]:
    """List the namespaces under which oslo-config-generator finds the options."""
    return sorted({e.name for e in metadata.entry_points(group=NAMESPACE) if e.name.startswith(OUR_PREFIXES)})


def options_by_section() -> dict[str, list[cfg.Opt]]:
    """Return the options of each section, by the section's name."""
    sections: dict[str, list[cfg.Opt]] = {}
    for entry in metadata.entry_points(group=NAMESPACE):
        if entry.name.startswith(OUR_PREFIXES):
            for group, opts in entry.load()():
                sections[group or DEFAULT] = opts
    return sections


def settings(conf: cfg.ConfigOpts, given_url: str | None) -> Iterator[Setting]:
    """Yield every option with its effective value. Raises for a value that cannot be read."""
    ours = options.notifications(conf)
    address = transport_url.TransportURL.parse(conf, given_url)
    for group, opts in options_by_section().items():
        register(conf, group, opts)
        for opt in opts:
            if group == DEFAULT and opt.dest == "transport_url":
                origin = "the command line" if given_url else options.origin(conf, opt.dest)
                yield Setting(group, opt.dest, address.masked(), _named_origin(conf, origin))
            elif group == options.NOTIFICATIONS:
                # An option that is not set in our section takes its value from oslo.messaging's.
                value = getattr(ours, opt.dest)
                # A URL that is not set here may be set in [DEFAULT].
                origin = "" if value is None else _named_origin(conf, options.origin(conf, opt.dest))
                yield Setting(group, opt.dest, _masked(opt, value), origin)
            elif group == f"drivers_{address.transport}" and opt.dest in address.query:
                value = getattr(address.settings(group, opts), opt.dest)
                yield Setting(group, opt.dest, _masked(opt, value), "the transport URL's query")
            else:
                value = reading.value(conf, _section(group), opt)
                yield Setting(group, opt.dest, _masked(opt, value), _origin(conf, group, opt))


def find_problems(conf: cfg.ConfigOpts, given_url: str | None) -> Iterator[Problem]:
    """Yield what is wrong with the files, the values and the plugins they name. Connects to nothing."""
    known = options_by_section()
    for group, opts in known.items():
        register(conf, group, opts)
    problems = [*_unknown_names(conf, known), *_unreadable_values(conf, known)]
    yield from problems
    if not problems:
        # This check stops at its first error, which would be one of those above.
        yield from _unusable_values(conf, known, given_url)


def register(conf: cfg.ConfigOpts, group: str, opts: list[cfg.Opt]) -> None:
    """Register options of a section; registering them again does no harm."""
    options.register(conf)
    if group != DEFAULT:
        conf.register_opts(opts, group=group)


def java_option(conf: cfg.ConfigOpts, group: str) -> str | None:
    """Read ``java`` of a section, if the package that has this option is installed."""
    for opt in options_by_section().get(group, []):
        if opt.dest == "java":
            register(conf, group, [opt])
            java: str | None = reading.value(conf, group, opt)
            return java
    return None


def _section(group: str) -> str | None:
    return None if group == DEFAULT else group


def _origin(conf: cfg.ConfigOpts, group: str, opt: cfg.Opt) -> str:
    if not reading.is_set(conf, _section(group), opt.dest):
        return ""
    return config_lines.add_line_numbers(conf, reading.where(conf, group, opt))


def _named_origin(conf: cfg.ConfigOpts, origin: str) -> str:
    return "" if origin.startswith("the default of ") else config_lines.add_line_numbers(conf, origin)


def _masked(opt: cfg.Opt, value: Any) -> Any:
    if value and opt.dest == "transport_url":
        return mask_transport_url(str(value))
    if value and isinstance(opt, reading.PartlySecretOpt):
        return [opt.masked(each) for each in value]
    return MASK if value and opt.secret else value


def _unknown_names(conf: cfg.ConfigOpts, known: dict[str, list[cfg.Opt]]) -> Iterator[Problem]:
    sections = _names_by_section(known)
    for file in ini_files.read(conf):
        lines = config_lines.find_line_numbers(file.path)
        for section, number in [(section, n) for (section, name), n in lines.items() if not name]:
            near = None if section in sections else _nearest_alike(section, sections)
            if near:
                what = f"nothing reads [{section}]"
                yield Problem(f"{file.path}, line {number}", what, _advice(near, "[{}]"))
        for (section, name), number in lines.items():
            names = sections.get(section)
            if not name or names is None or name in names:
                continue
            # Other libraries have options in [DEFAULT] too, so only a close match is a mistake.
            find = _nearest_alike if section == DEFAULT else did_you_mean.nearest
            near = find(name, names)
            if near or section != DEFAULT:
                what = f"[{section}] has no option {name!r}"
                yield Problem(f"{file.path}, line {number}", what, _advice(near, "{}"))


def _names_by_section(known: dict[str, list[cfg.Opt]]) -> dict[str, list[str]]:
    """Return the known option names of each section, including those of oslo.messaging."""
    names: dict[str, list[str]] = {group: [opt.dest for opt in opts] for group, opts in known.items()}
    names[options.OSLO_NOTIFICATIONS] = names[options.NOTIFICATIONS]
    names |= {group: list(names) for group, names in reading.OTHERS_GROUPS.items()}
    for group, opts in known.items():
        for opt in opts:
            for old in opt.deprecated_opts:
                # The options of oslo.messaging's other drivers are not known here.
                if old.name and (old.group or group) in names:
                    names[old.group or group].append(old.name)
    return names


def _nearest_alike(name: str, known: Iterable[str]) -> str | None:
    return did_you_mean.nearest(name, known, MIN_SIMILARITY)


def _advice(near: str | None, form: str) -> str:
    return f"did you mean {form.format(near)}?" if near else "'config sample' lists all options"


def _unreadable_values(conf: cfg.ConfigOpts, known: dict[str, list[cfg.Opt]]) -> Iterator[Problem]:
    sections = {**known, options.OSLO_NOTIFICATIONS: known[options.NOTIFICATIONS]}
    for group, opts in sections.items():
        for opt in opts:
            try:
                reading.value(conf, _section(group), opt)
            except MessagingException as error:
                yield _located_problem(conf, error)


def _unusable_values(
    conf: cfg.ConfigOpts, known: dict[str, list[cfg.Opt]], given_url: str | None
) -> Iterator[Problem]:
    try:
        driver_transport = transport.get_notification_transport(conf, given_url)
    except MessagingException as error:
        yield _located_problem(conf, error)
        return
    try:
        group = f"drivers_{driver_transport.url.transport}"
        driver_transport.url.settings(group, known.get(group, []))
        has_no_channel = not options.notifications(conf).driver
        notifier.Notifier(driver_transport, "notifier-kafka", driver="noop" if has_no_channel else None)
    except MessagingException as error:
        yield _located_problem(conf, error)
    finally:
        driver_transport.cleanup()


def _located_problem(conf: cfg.ConfigOpts, error: MessagingException) -> Problem:
    text = config_lines.add_line_numbers(conf, str(error))
    for file in ini_files.read(conf):
        if text.startswith(f"{file.path}, line "):
            place, _, what = text.removeprefix(f"{file.path}, ").partition(", ")
            return Problem(f"{file.path}, {place}", what)
    place, _, what = text.partition(": ")
    return Problem(place, what)


def config_files(conf: cfg.ConfigOpts) -> list[pathlib.Path]:
    """List the configuration files that were read, in the order of reading."""
    return [file.path for file in ini_files.read(conf)]
