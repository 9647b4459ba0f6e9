"""What the configuration files set: oslo.config says which value counts, not where it stands."""

import difflib
import logging
import pathlib
from collections.abc import Collection
from typing import NamedTuple

from oslo_config import cfg, iniparser

from notifier_kafka.contract import did_you_mean

LOG = logging.getLogger(__name__)

# How alike two names are of which one is taken for a slip of the other. Groups that differ by
# intention, as those of two drivers, are less alike.
_ALIKE = 0.85
_MEMORY = "_notifier_kafka_files"


class ConfigFile(NamedTuple):
    """A file with the names that it sets in each section, whose names count in any case."""

    path: pathlib.Path
    sections: dict[str, list[str]]

    def names(self, section: str) -> list[str]:
        return self.sections.get(section.lower(), [])


class _Memory:
    """What the files of one configuration held when it was first asked for them.

    A program may change its directory or its user later and go on, as oslo.config does.
    """

    def __init__(self, conf: cfg.ConfigOpts, namespace: object) -> None:
        self.namespace = namespace
        self.files = [file for path in _paths(conf) if (file := _read(path))]
        self.searched: set[str] = set()


def read(conf: cfg.ConfigOpts) -> list[ConfigFile]:
    """List the files that ``conf`` was read from, the later ones last."""
    return _recall(conf).files


def warn_of_slips(conf: cfg.ConfigOpts, group: str, names: Collection[str]) -> bool:
    """Warn of sections that look like ``group`` misspelt; once, and say whether it was now."""
    memory = _recall(conf)
    if group in memory.searched:
        return False
    memory.searched.add(group)
    for path, sections in memory.files:
        for section in difflib.get_close_matches(group.lower(), sections, 3, _ALIKE):
            # The registered groups have an owner, however alike their names are.
            other = section != group.lower() and section not in conf
            if other and not set(names).isdisjoint(sections[section]):
                LOG.warning("%s: nothing reads [%s]: did you mean [%s]?", path, section, group)
    return True


def warn_of_unknown(conf: cfg.ConfigOpts, group: str, known: Collection[str]) -> None:
    """Warn of options that nothing reads in a group of which others may know more."""
    for file in read(conf):
        for name in file.names(group):
            if name not in known and (group not in conf or name not in conf[group]):
                choices = did_you_mean.hint_and_choices(name, sorted(known))
                LOG.warning("%s, [%s]: nothing reads %r: %s", file.path, group, name, choices)


def warn_of_default(conf: cfg.ConfigOpts, name: str) -> None:
    """Warn of names in ``[DEFAULT]``, which is everybody's, that look like ``name`` misspelt."""
    for file in read(conf):
        for other in difflib.get_close_matches(name, file.names("DEFAULT"), 3, _ALIKE):
            if other != name and other not in conf:
                LOG.warning("%s, [DEFAULT]: nothing reads %r: did you mean %s?", file.path, other, name)


def describe(error: cfg.Error) -> str:
    """Say in one line what oslo.config has against a file.

    Its own words quote the line, which may hold a password.
    """
    if not isinstance(error, cfg.ConfigFileParseError):
        return " ".join(str(error).split())
    fault = error.__context__
    if isinstance(fault, iniparser.ParseError):
        return f"{error.config_file}, line {fault.lineno}: {fault.msg}"
    return f"{error.config_file}: not an INI file"


def _recall(conf: cfg.ConfigOpts) -> _Memory:
    # oslo.config makes a new namespace when it reads files, also when it reads them again.
    # There is no other sign of that, and a ConfigOpts is no key for a dictionary.
    namespace = getattr(conf, "_namespace", None)
    memory: _Memory | None = vars(conf).get(_MEMORY)
    if memory is None or memory.namespace is not namespace:
        memory = vars(conf)[_MEMORY] = _Memory(conf, namespace)
    return memory


def _paths(conf: cfg.ConfigOpts) -> list[pathlib.Path]:
    if "config_file" not in conf:
        return []  # never called, so no file was read
    files = [pathlib.Path(path) for path in conf.config_file or []]
    for directory in conf.config_dir or []:
        files += sorted(pathlib.Path(directory).expanduser().glob("*.conf"))
    return files


def _read(path: pathlib.Path) -> ConfigFile | None:
    parsed: dict[str, dict[str, list[str]]] = {}
    try:
        cfg.ConfigParser(str(path.expanduser()), parsed).parse()
    except (OSError, ValueError, iniparser.ParseError):
        return None  # oslo.config has read it; it has been changed or taken away since
    sections: dict[str, list[str]] = {}
    for section, names in parsed.items():
        sections.setdefault(section.lower(), []).extend(names)
    return ConfigFile(path, sections)
