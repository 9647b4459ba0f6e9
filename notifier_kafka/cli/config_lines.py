"""The lines of a configuration file on which names stand: oslo.config does not keep them."""

import pathlib
import re

from oslo_config import cfg

from notifier_kafka.config import ini_files

_SEPARATOR = re.compile(r"[:=]")

LineNumbers = dict[tuple[str, str], int]
"""The line of each (section, name), the last where there are several; the name "" is the section itself."""


def find_line_numbers(path: pathlib.Path) -> LineNumbers:
    """Find the line of each section and name of a file that oslo.config could read."""
    line_numbers: LineNumbers = {}
    section = "DEFAULT"
    try:
        text = path.expanduser().read_text("utf-8", "replace")
    except OSError:
        return line_numbers
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("["):
            section = line.strip()[1:-1]
            line_numbers.setdefault((section, ""), number)
        elif line.strip() and not line.startswith((" ", "\t", "#", ";")):
            line_numbers[section, _SEPARATOR.split(line, 1)[0].strip()] = number
    return line_numbers


def add_line_numbers(conf: cfg.ConfigOpts, text: str) -> str:
    """Add the line to each "FILE, [section] name" in an error's text."""
    for file in ini_files.read(conf):
        path = str(file.path)
        if path in text:
            for (section, name), number in find_line_numbers(file.path).items():
                text = _mention(path, section, name).sub(rf"\g<0>, line {number}", text)
    return text


def _mention(path: str, section: str, name: str) -> re.Pattern[str]:
    section, name = re.escape(f"[{section}]"), re.escape(name)
    # The two forms in which config.reading mentions them: an unknown name, and a wrong value.
    after = rf"{section}: unknown option '{name}'|{section} {name}(?![\w-])" if name else rf"{section}(?! |:)"
    return re.compile(rf"{re.escape(path)}(?=, (?:{after}))")
