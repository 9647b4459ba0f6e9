"""On which line of a configuration file something stands: oslo.config forgets it."""

import pathlib
import re

from oslo_config import cfg

from notifier_kafka.config import ini_files

_CUT = re.compile(r"[:=]")

Lines = dict[tuple[str, str], int]
"""The line of each name by its section, the last where there are several; "" is the section itself."""


def read(path: pathlib.Path) -> Lines:
    """Find the lines of a file that oslo.config could read."""
    found: Lines = {}
    section = "DEFAULT"
    try:
        text = path.expanduser().read_text("utf-8", "replace")
    except OSError:
        return found
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("["):
            section = line.strip()[1:-1]
            found.setdefault((section, ""), number)
        elif line.strip() and not line.startswith((" ", "\t", "#", ";")):
            found[section, _CUT.split(line, 1)[0].strip()] = number
    return found


def locate(conf: cfg.ConfigOpts, text: str) -> str:
    """Add the line to each "FILE, [section] name" in an error's text."""
    for file in ini_files.read(conf):
        path = str(file.path)
        if path in text:
            for (section, name), number in read(file.path).items():
                text = _place(path, section, name).sub(rf"\g<0>, line {number}", text)
    return text


def _place(path: str, section: str, name: str) -> re.Pattern[str]:
    section, name = re.escape(f"[{section}]"), re.escape(name)
    # As options.read_group says it of a name that is unknown, and of a value.
    told = rf"{section}: unknown option '{name}'|{section} {name}(?![\w-])" if name else rf"{section}(?! |:)"
    return re.compile(rf"{re.escape(path)}(?=, (?:{told}))")
