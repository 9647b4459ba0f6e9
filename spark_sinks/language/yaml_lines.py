"""YAML values that know their lines, so that errors can name them."""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Never

import yaml

from notifier_kafka.contract import did_you_mean
from notifier_kafka.errors import ConfigurationError

MAX_DEPTH = 20
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,199}")
_MERGE = "tag:yaml.org,2002:merge"


@dataclass(frozen=True)
class YamlValue:
    """A scalar, a list of ``YamlValue`` or a dict of ``YamlValue``, with its place in the file."""

    value: Any
    file: str
    line: int

    def refuse(self, text: str) -> Never:
        """Raise ``ConfigurationError`` with the file, the line and the reason."""
        raise ConfigurationError(f"{self.file}, line {self.line}: {text}")

    def text(self, what: str) -> str:
        if not isinstance(self.value, str) or not self.value:
            self.refuse(f"{what} is not text")
        return str(self.value)

    def name(self) -> str:
        """Return the name of a metric: all outputs accept its characters."""
        name = self.text("name")
        if not NAME.fullmatch(name):
            self.refuse(f"name {name!r} is not made of letters, digits, '_', '.', ':' and '-'")
        return name

    def number(self, what: str) -> int | float:
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            self.refuse(f"{what} is not a number")
        number: int | float = self.value
        try:
            finite = math.isfinite(number)
        except OverflowError:
            # An integer may have any length.
            self.refuse(f"{what} is too large")
        if not finite:
            self.refuse(f"{what} is not a number")
        return number

    def items(self, what: str) -> "list[YamlValue]":
        """Return the items of a list. A single value counts as a list of one."""
        if isinstance(self.value, dict):
            self.refuse(f"{what} is a mapping, not a list")
        found: list[YamlValue] = self.value if isinstance(self.value, list) else [self]
        if not found:
            self.refuse(f"{what} is empty")
        return found

    def texts(self, what: str) -> tuple[str, ...]:
        return tuple(item.text(f"{what}: an item") for item in self.items(what))

    def mapping(self, what: str, known: Iterable[str] | None = None) -> "dict[str, YamlValue]":
        """Return the members of a mapping. With ``known``, other keys are refused."""
        if not isinstance(self.value, dict):
            self.refuse(f"{what} is not a mapping")
        found: dict[str, YamlValue] = self.value
        for name, item in found.items():
            if known is not None and name not in known:
                item.refuse(f"{what} has an unknown key {name!r}; {suggest(name, known)}")
        return found


def suggest(name: str, known: Iterable[str]) -> str:
    """Name the nearest of the known names, or all of them."""
    choices = list(known)
    near = did_you_mean.nearest(name, choices)
    return f"did you mean {near!r}?" if near else f"known are {', '.join(choices)}"


def read(file: str) -> YamlValue:
    """Read a YAML file, or raise ``ConfigurationError``."""
    try:
        with open(file, encoding="utf-8") as stream:
            node = yaml.compose(stream, Loader=yaml.SafeLoader)
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise ConfigurationError(f"{file} is not UTF-8 text") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ConfigurationError(f"{file}, line {line}: not YAML: {error.problem}") from None
    except (yaml.YAMLError, RecursionError):
        raise ConfigurationError(f"{file} is not YAML") from None
    if node is None:
        raise ConfigurationError(f"{file} is empty")
    return _convert(node, file, MAX_DEPTH)


def _convert(node: yaml.Node, file: str, depth: int) -> YamlValue:
    here = YamlValue(None, file, node.start_mark.line + 1)
    if not depth:
        here.refuse("nested too deeply")
    if isinstance(node, yaml.SequenceNode):
        return YamlValue([_convert(item, file, depth - 1) for item in node.value], file, here.line)
    if isinstance(node, yaml.MappingNode):
        return YamlValue(_members(node, file, depth - 1), file, here.line)
    return YamlValue(_scalar(node, here), file, here.line)


def _members(node: yaml.MappingNode, file: str, depth: int) -> dict[str, YamlValue]:
    found: dict[str, YamlValue] = {}
    merged: dict[str, YamlValue] = {}
    for key, item in node.value:
        if key.tag == _MERGE:
            merged = _merged(item, file, depth) | merged
            continue
        here = YamlValue(None, file, key.start_mark.line + 1)
        if not isinstance(key, yaml.ScalarNode):
            here.refuse("a key is not text")
        if key.value in found:
            here.refuse(f"the key {key.value!r} occurs twice")
        value = _convert(item, file, depth)
        # An error about a member names the line of its key, where a reader looks.
        found[key.value] = YamlValue(value.value, file, here.line)
    return merged | found


def _merged(node: yaml.Node, file: str, depth: int) -> dict[str, YamlValue]:
    """Return the members of what ``<<`` names: one mapping or several, the first of which wins."""
    whole = _convert(node, file, depth)
    found: dict[str, YamlValue] = {}
    for item in reversed(whole.value if isinstance(whole.value, list) else [whole]):
        found |= item.mapping("<<")
    return found


def _scalar(node: yaml.Node, here: YamlValue) -> Any:
    loader = yaml.SafeLoader("")
    try:
        return loader.construct_object(node)
    except (yaml.YAMLError, ValueError):
        here.refuse(f"{node.value!r} cannot be read as {str(node.tag).rpartition(':')[2]}")
    finally:
        loader.dispose()
