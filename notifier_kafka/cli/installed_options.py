"""Every option of what is installed: its value, where that comes from and what is wrong with it."""

import difflib
import pathlib
from collections.abc import Iterator
from importlib import metadata
from typing import Any, NamedTuple

from oslo_config import cfg

from notifier_kafka.cli import config_lines
from notifier_kafka.config import ini_files, options, reading, transport_url
from notifier_kafka.contract.secret_masking import MASK, mask_transport_url
from notifier_kafka.errors import MessagingException
from notifier_kafka.publishing import notifier, transport

NAMESPACE = "oslo.config.opts"
# Those of this distribution, and of drivers that name theirs alike.
OURS = ("notifier_kafka", "spark_sinks")
ALIKE = 0.85
DEFAULT = "DEFAULT"


class Setting(NamedTuple):
    """An option with the value that counts and where it was given; without a place, the default."""

    group: str
    option: str
    value: Any
    place: str


class Problem(NamedTuple):
    """Something wrong: where, what, and what to do about it where that is known."""

    place: str
    what: str
    advice: str = ""

    def __str__(self) -> str:
        return f"{self.place}: {self.what}" + (f"; {self.advice}" if self.advice else "")


def namespaces() -> list[str]:
    """List the names by which oslo-config-generator knows the options."""
    return sorted({e.name for e in metadata.entry_points(group=NAMESPACE) if e.name.startswith(OURS)})


def groups() -> dict[str, list[cfg.Opt]]:
    """Return the options by the name of their section."""
    found: dict[str, list[cfg.Opt]] = {}
    for entry in metadata.entry_points(group=NAMESPACE):
        if entry.name.startswith(OURS):
            for group, opts in entry.load()():
                found[group or DEFAULT] = opts
    return found


def settings(conf: cfg.ConfigOpts, given_url: str | None) -> Iterator[Setting]:
    """Yield every option with what counts. Raises for a value that cannot be read."""
    ours = options.notifications(conf)
    address = transport_url.TransportURL.parse(conf, given_url)
    for group, opts in groups().items():
        register(conf, group, opts)
        for opt in opts:
            if group == DEFAULT and opt.dest == "transport_url":
                place = "the command line" if given_url else options.origin(conf, opt.dest)
                yield Setting(group, opt.dest, address.masked(), _told(conf, place))
            elif group == options.NOTIFICATIONS:
                # What oslo.messaging's group says counts where ours is silent.
                value = getattr(ours, opt.dest)
                # A URL that is not set here may be set for all, under another name.
                place = "" if value is None else _told(conf, options.origin(conf, opt.dest))
                yield Setting(group, opt.dest, _shown(opt, value), place)
            elif group == f"drivers_{address.transport}" and opt.dest in address.query:
                value = getattr(address.settings(group, opts), opt.dest)
                yield Setting(group, opt.dest, _shown(opt, value), "the transport URL's query")
            else:
                value = reading.value(conf, _section(group), opt)
                yield Setting(group, opt.dest, _shown(opt, value), _place(conf, group, opt))


def problems(conf: cfg.ConfigOpts, given_url: str | None) -> Iterator[Problem]:
    """Yield what is wrong with the files, the values and what they name. Reaches for nothing."""
    known = groups()
    for group, opts in known.items():
        register(conf, group, opts)
    wrong = [*_unknown(conf, known), *_unreadable(conf, known)]
    yield from wrong
    if not wrong:
        # Only now, because what follows stops at the first error, and those were some.
        yield from _meaningless(conf, known, given_url)


def register(conf: cfg.ConfigOpts, group: str, opts: list[cfg.Opt]) -> None:
    """Register options of a section; again is harmless."""
    options.register(conf)
    if group != DEFAULT:
        conf.register_opts(opts, group=group)


def java_option(conf: cfg.ConfigOpts, group: str) -> str | None:
    """Read ``java`` of a section, if the room that it belongs to is installed."""
    for opt in groups().get(group, []):
        if opt.dest == "java":
            register(conf, group, [opt])
            found: str | None = reading.value(conf, group, opt)
            return found
    return None


def _section(group: str) -> str | None:
    return None if group == DEFAULT else group


def _place(conf: cfg.ConfigOpts, group: str, opt: cfg.Opt) -> str:
    if not reading.is_set(conf, _section(group), opt.dest):
        return ""
    return config_lines.locate(conf, reading.where(conf, group, opt))


def _told(conf: cfg.ConfigOpts, origin: str) -> str:
    return "" if origin.startswith("the default of ") else config_lines.locate(conf, origin)


def _shown(opt: cfg.Opt, value: Any) -> Any:
    if value and opt.dest == "transport_url":
        return mask_transport_url(str(value))
    if value and isinstance(opt, reading.PartlySecretOpt):
        return [opt.masked(each) for each in value]
    return MASK if value and opt.secret else value


def _unknown(conf: cfg.ConfigOpts, known: dict[str, list[cfg.Opt]]) -> Iterator[Problem]:
    for file in ini_files.read(conf):
        places = config_lines.read(file.path)
        for section, number in [(section, n) for (section, name), n in places.items() if not name]:
            near = [] if section in _sections(known) else _near(section, list(_sections(known)))
            if near:
                yield Problem(
                    f"{file.path}, line {number}", f"nothing reads [{section}]", _meant(near, "[{}]")
                )
        for (section, name), number in places.items():
            names = _sections(known).get(section)
            if not name or names is None or name in names:
                continue
            # The section of everybody: another library's option is no slip.
            near = _near(name, names) if section == DEFAULT else difflib.get_close_matches(name, names, 1)
            if near or section != DEFAULT:
                what = f"[{section}] has no option {name!r}"
                yield Problem(f"{file.path}, line {number}", what, _meant(near, "{}"))


def _sections(known: dict[str, list[cfg.Opt]]) -> dict[str, list[str]]:
    """Return the names that count in each section, those of oslo.messaging included."""
    found: dict[str, list[str]] = {group: [opt.dest for opt in opts] for group, opts in known.items()}
    found[options.OSLO_NOTIFICATIONS] = found[options.NOTIFICATIONS]
    found |= {group: list(names) for group, names in reading.OTHERS_GROUPS.items()}
    for group, opts in known.items():
        for opt in opts:
            for old in opt.deprecated_opts:
                # Of oslo.messaging's other driver groups we know nothing.
                if old.name and (old.group or group) in found:
                    found[old.group or group].append(old.name)
    return found


def _near(name: str, names: list[str]) -> list[str]:
    return difflib.get_close_matches(name, names, 1, ALIKE)


def _meant(near: list[str], form: str) -> str:
    return f"did you mean {form.format(near[0])}?" if near else "'config sample' lists what there is"


def _unreadable(conf: cfg.ConfigOpts, known: dict[str, list[cfg.Opt]]) -> Iterator[Problem]:
    sections = {**known, options.OSLO_NOTIFICATIONS: known[options.NOTIFICATIONS]}
    for group, opts in sections.items():
        for opt in opts:
            try:
                reading.value(conf, _section(group), opt)
            except MessagingException as error:
                yield _problem(conf, error)


def _meaningless(
    conf: cfg.ConfigOpts, known: dict[str, list[cfg.Opt]], given_url: str | None
) -> Iterator[Problem]:
    try:
        lent = transport.get_notification_transport(conf, given_url)
    except MessagingException as error:
        yield _problem(conf, error)
        return
    try:
        group = f"drivers_{lent.url.transport}"
        lent.url.settings(group, known.get(group, []))
        silent = not options.notifications(conf).driver
        notifier.Notifier(lent, "notifier-kafka", driver="noop" if silent else None)
    except MessagingException as error:
        yield _problem(conf, error)
    finally:
        lent.cleanup()


def _problem(conf: cfg.ConfigOpts, error: MessagingException) -> Problem:
    text = config_lines.locate(conf, str(error))
    for file in ini_files.read(conf):
        if text.startswith(f"{file.path}, line "):
            place, _, what = text.removeprefix(f"{file.path}, ").partition(", ")
            return Problem(f"{file.path}, {place}", what)
    place, _, what = text.partition(": ")
    return Problem(place, what)


def files(conf: cfg.ConfigOpts) -> list[pathlib.Path]:
    """List the files that were read, the later ones last."""
    return [file.path for file in ini_files.read(conf)]
