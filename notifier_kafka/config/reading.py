"""Reads the values of a group of options, and explains a wrong one."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from oslo_config import cfg

from notifier_kafka.config import ini_files
from notifier_kafka.contract import did_you_mean
from notifier_kafka.errors import ConfigurationError

# What oslo.config raises for a value that cannot be read. It turns other errors into
# NoSuchOptError, which also means a $name without such an option.
UNREADABLE = (cfg.TemplateSubstitutionError, cfg.NoSuchOptError, ValueError)

OTHERS_GROUPS = {"oslo_messaging_kafka": ("enable_auto_commit", "kafka_consumer_timeout", "max_poll_records")}
"""Groups whose options are all known: deprecated names of ours, and these, which have no effect here."""


class PartlySecretOpt(cfg.MultiStrOpt):
    """An option whose values may hold a secret; ``masked`` returns a value without it."""

    def __init__(self, name: str, masked: Callable[[str], str], **described: Any) -> None:
        # Secret for all who do not know this class, such as oslo.config's log_opt_values.
        super().__init__(name, secret=True, **described)
        self.masked = masked


def read_group(
    conf: cfg.ConfigOpts,
    group: str,
    opts: Sequence[cfg.Opt],
    overrides: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Read all options of a group; a value in ``overrides`` (as text) wins.

    A wrong value or an unknown name raises ``ConfigurationError`` with the file, the option
    and the valid choices. oslo.config itself ignores a misspelt name in a file.
    """
    by_name = {opt.dest: opt for opt in opts}
    conf.register_opts(by_name.values(), group=group)
    old = [(o.group or group, o.name, opt.dest) for opt in opts for o in opt.deprecated_opts if o.name]
    here = by_name.keys() | {name for section, name, _ in old if section == group}
    for file in ini_files.read(conf):
        _refuse_unknown(file.names(group), here, f"{file.path}, [{group}]")
    ini_files.warn_of_misspelt_sections(conf, group, here)
    for section in sorted({section for section, _, _ in old} - {group}):
        known = {name for each, name, _ in old if each == section}
        if ini_files.warn_of_misspelt_sections(conf, section, known) and section in OTHERS_GROUPS:
            ini_files.warn_of_unknown_options(conf, section, known.union(OTHERS_GROUPS[section]))
    # A URL written for oslo.messaging uses oslo.messaging's names, from any group.
    current = {name: dest for _, name, dest in old} | {name: name for name in by_name}
    _refuse_unknown(overrides or {}, current.keys(), "the transport URL's query")
    values = {name: value(conf, group, opt) for name, opt in by_name.items()}
    for name, text in (overrides or {}).items():
        values[current[name]] = _convert(by_name[current[name]], text, "the transport URL's query")
    return values


def value(conf: cfg.ConfigOpts, group: str | None, opt: cfg.Opt) -> Any:
    """Read one option. The ``ConfigurationError`` for a wrong value says where it is set."""
    section = conf if group is None else conf[group]
    try:
        found = section[opt.dest]
    except UNREADABLE as error:
        place = where(conf, group or "DEFAULT", opt)
        raise ConfigurationError(f"{place}: {_reason(opt, error)}") from None
    return opt.default if found is None else found  # oslo.config reads "name =" as None for a number


def where(conf: cfg.ConfigOpts, group: str, opt: cfg.Opt) -> str:
    """Say which file sets a value. oslo.config itself has only an internal object there."""
    names = [(group, opt.dest), *((old.group or group, old.name) for old in opt.deprecated_opts)]
    found = [
        (file.path, section, name)
        for file in ini_files.read(conf)
        for section, name in reversed(names)
        if name in file.names(section)
    ]
    if not found or not _may_be_of_a_file(conf, group, opt.dest):
        return f"the environment or a call, [{group}] {opt.dest}"
    # The last file that sets an option wins, but values of a multi-valued option add up.
    path, section, name = found[-1]
    paths = dict.fromkeys(str(each) for each, _, _ in found) if opt.multi else [str(path)]
    return f"{' and '.join(paths)}, [{section}] {name}"


def _may_be_of_a_file(conf: cfg.ConfigOpts, group: str, name: str) -> bool:
    try:
        location = conf.get_location(name, group=None if group == "DEFAULT" else group)
    except UNREADABLE:
        return True
    return location is None or location.location is cfg.Locations.user


def _reason(opt: cfg.Opt, error: Exception) -> str:
    if not isinstance(error, ValueError):
        return "a $ begins the name of another option; write $$ for a dollar sign"
    if opt.secret:
        return "the value is not valid"
    # oslo.config gives the reason after "is not valid: ". For numbers it is Python's own message,
    # which the author of an INI file may not understand.
    reason = str(error).rsplit("is not valid: ", 1)[-1]
    shown = reason.rpartition(": ")[2]
    if reason.startswith("invalid literal for int"):
        return f"{shown} is not a whole number"
    if reason.startswith("could not convert string to float"):
        return f"{shown} is not a number"
    return reason


def is_set(conf: cfg.ConfigOpts, group: str | None, name: str) -> bool:
    """Say whether an option is set, to whatever value."""
    try:
        location = conf.get_location(name, group=group)
    except UNREADABLE:
        return True  # to a wrong value: reading it raises the error
    return location is not None and location.location is not cfg.Locations.opt_default


def given(opts: Sequence[cfg.Opt], values: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Check and convert the values that a program gives for some options."""
    by_name = {opt.dest: opt for opt in opts}
    _refuse_unknown(values, by_name.keys(), place)
    return {name: _convert(by_name[name], value, place) for name, value in values.items()}


def _convert(opt: cfg.Opt, text: Any, place: str) -> Any:
    try:
        converted = opt.type(text)
    except (ValueError, TypeError) as error:
        raise ConfigurationError(f"{place}, {opt.name}: {_reason(opt, error)}") from None
    return opt.default if converted is None else converted


def _refuse_unknown(names: Iterable[str], known: Collection[str], where: str) -> None:
    for name in names:
        if name not in known:
            choices = did_you_mean.hint_and_choices(name, sorted(known))
            raise ConfigurationError(f"{where}: unknown option {name!r}: {choices}")
