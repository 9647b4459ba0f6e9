"""Which configuration file sets which option: oslo.config tells the value only, not its place."""

import difflib
import logging
import pathlib
from collections.abc import Collection
from typing import NamedTuple

from oslo_config import cfg, iniparser

from notifier_kafka.contract import did_you_mean

LOG = logging.getLogger(__name__)

# The difflib ratio from which one name counts as a misspelling of another. Names that differ on
# purpose, such as the groups of two drivers, are less alike.
_MISSPELT_RATIO = 0.85
_CACHE_ATTRIBUTE = "_notifier_kafka_files"


class ConfigFile(NamedTuple):
    """A file with the names that it sets in each section. Upper and lower case of sections are the same."""

    path: pathlib.Path
    sections: dict[str, list[str]]

    def names(self, section: str) -> list[str]:
        return self.sections.get(section.lower(), [])


class _Cache:
    """What the files of one configuration contained when they were first read.

    The program may change its directory or user later, and then the files cannot be read again.
    """

    def __init__(self, conf: cfg.ConfigOpts, namespace: object) -> None:
        self.namespace = namespace
        self.files = [file for path in _paths(conf) if (file := _read(path))]
        self.searched: set[str] = set()


def read(conf: cfg.ConfigOpts) -> list[ConfigFile]:
    """List the files that ``conf`` was read from, in the order of reading."""
    return _cached(conf).files


def warn_of_misspelt_sections(conf: cfg.ConfigOpts, group: str, names: Collection[str]) -> bool:
    """Warn once of sections that look like a misspelt ``group``. Return whether this was the first call."""
    cache = _cached(conf)
    if group in cache.searched:
        return False
    cache.searched.add(group)
    for path, sections in cache.files:
        for section in difflib.get_close_matches(group.lower(), sections, 3, _MISSPELT_RATIO):
            # A registered group is read by somebody, however alike its name is.
            other = section != group.lower() and section not in conf
            if other and not set(names).isdisjoint(sections[section]):
                LOG.warning("%s: nothing reads [%s]: did you mean [%s]?", path, section, group)
    return True


def warn_of_unknown_options(conf: cfg.ConfigOpts, group: str, known: Collection[str]) -> None:
    """Warn of options that nothing reads, in a group that other packages may use too."""
    for file in read(conf):
        for name in file.names(group):
            if name not in known and (group not in conf or name not in conf[group]):
                choices = did_you_mean.hint_and_choices(name, sorted(known))
                LOG.warning("%s, [%s]: nothing reads %r: %s", file.path, group, name, choices)


def warn_of_misspelt_default(conf: cfg.ConfigOpts, name: str) -> None:
    """Warn of options in ``[DEFAULT]``, which all packages share, that look like a misspelt ``name``."""
    for file in read(conf):
        for other in difflib.get_close_matches(name, file.names("DEFAULT"), 3, _MISSPELT_RATIO):
            if other != name and other not in conf:
                LOG.warning("%s, [DEFAULT]: nothing reads %r: did you mean %s?", file.path, other, name)


def describe(error: cfg.Error) -> str:
    """Say in one line why oslo.config cannot read a file.

    Its own message quotes the line, which may hold a password.
    """
    if not isinstance(error, cfg.ConfigFileParseError):
        return " ".join(str(error).split())
    fault = error.__context__
    if isinstance(fault, iniparser.ParseError):
        return f"{error.config_file}, line {fault.lineno}: {fault.msg}"
    return f"{error.config_file}: not an INI file"


def _cached(conf: cfg.ConfigOpts) -> _Cache:
    # oslo.config makes a new namespace each time it reads the files. There is no other sign of
    # that, and a ConfigOpts cannot be a key of a dictionary.
    namespace = getattr(conf, "_namespace", None)
    cache: _Cache | None = vars(conf).get(_CACHE_ATTRIBUTE)
    if cache is None or cache.namespace is not namespace:
        cache = vars(conf)[_CACHE_ATTRIBUTE] = _Cache(conf, namespace)
    return cache


def _paths(conf: cfg.ConfigOpts) -> list[pathlib.Path]:
    if "config_file" not in conf:
        return []  # the ConfigOpts was never called, so no file was read
    files = [pathlib.Path(path) for path in conf.config_file or []]
    for directory in conf.config_dir or []:
        files += sorted(pathlib.Path(directory).expanduser().glob("*.conf"))
    return files


def _read(path: pathlib.Path) -> ConfigFile | None:
    parsed: dict[str, dict[str, list[str]]] = {}
    try:
        cfg.ConfigParser(str(path.expanduser()), parsed).parse()
    except (OSError, ValueError, iniparser.ParseError):
        return None  # oslo.config could read it; it was changed or removed since
    sections: dict[str, list[str]] = {}
    for section, names in parsed.items():
        sections.setdefault(section.lower(), []).extend(names)
    return ConfigFile(path, sections)
