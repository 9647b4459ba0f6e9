"""What looks like a secret is masked before it reaches a log or leaves a process."""

import re
from collections.abc import Mapping
from typing import Any

from notifier_kafka.contract.url import MASK

_WORDS = (
    r"passw|passphrase|[-_]pass\b|adminpass|pswd|secret|token|cookie|credential|authorization|"
    r"(?:api|access|private|encrypted|signing)[-_]?key|signature|configdrive|chappass"
)
_SECRET = re.compile(_WORDS, re.IGNORECASE)
# Bounded repetitions: the text is a stranger's, and a search must stay linear.
_ASSIGNED = re.compile(
    rf"((?:{_WORDS})[\w-]{{0,40}}\\{{0,2}}[\"']?\s{{0,4}}[=:]\s{{0,4}})"
    r"(?:\\{0,2}\"[^\"]*\"?|\\{0,2}'[^']*'?|(?:(?:bearer|basic)\s{1,4})?[^\s\"',;&]+)",
    re.IGNORECASE,
)
_USERINFO = re.compile(r"(://)[^\s/?#]{1,1024}@")


def is_secret(name: str) -> bool:
    """Say whether a member of this name may hold a secret."""
    return _SECRET.search(name) is not None


def mask_text(text: str) -> str:
    """Hide the login in URLs, and values written as ``password=...`` or ``"token": "..."``."""
    if "://" in text:
        text = _USERINFO.sub(rf"\1{MASK}@", text)
    return _ASSIGNED.sub(rf"\1{MASK}", text) if is_secret(text) else text


def mask_members(value: Any) -> Any:
    """Return a copy of a JSON value in which every secret is masked, at any depth."""
    if isinstance(value, str):
        return mask_text(value)
    if isinstance(value, Mapping):
        return {
            name: MASK
            if isinstance(name, str) and is_secret(name) and not _has_members(member)
            else mask_members(member)
            for name, member in value.items()
        }
    if isinstance(value, list | tuple):
        return [mask_members(member) for member in value]
    return value


def _has_members(value: Any) -> bool:
    # oslo.utils looks into a dict whatever its name is: "token": {"user": ...} stays readable.
    return isinstance(value, Mapping)
