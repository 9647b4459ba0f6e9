"""Masks what looks like a secret before it reaches a log, an error or another process."""

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib import parse

MASK = "***"

_WORDS = (
    r"passw|passphrase|[-_]pass\b|adminpass|pswd|secret|token|cookie|credential|authorization|"
    r"(?:api|access|private|encrypted|signing)[-_]?key|signature|configdrive|chappass"
)
_SECRET = re.compile(_WORDS, re.IGNORECASE)
# Bounded repetitions: the text may come from an attacker, and a search must stay linear.
_ASSIGNED = re.compile(
    rf"((?:{_WORDS})[\w-]{{0,40}}\\{{0,2}}[\"']?\s{{0,4}}[=:]\s{{0,4}})"
    r"(?:\\{0,2}\"[^\"]*\"?|\\{0,2}'[^']*'?|(?:(?:bearer|basic)\s{1,4})?[^\s\"',;&]+)",
    re.IGNORECASE,
)
_USERINFO = re.compile(r"(://)[^\s/?#]{1,1024}@")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")


def is_secret(name: str) -> bool:
    """Say whether the value of a member or parameter with this name may be a secret."""
    return _SECRET.search(name) is not None


def is_secret_option(name: str) -> bool:
    """Say whether an option in a transport URL's query may hold a secret."""
    return "password" in name or "secret" in name or "token" in name or name == "client_properties"


def mask_text(text: str) -> str:
    """Mask the login in URLs, and values written as ``password=...`` or ``"token": "..."``."""
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
    # As oslo.utils does: "token": {"user": ...} stays readable, and its members are looked at.
    return isinstance(value, Mapping)


def mask_transport_url(text: str) -> str:
    """Mask whatever may be a password in a transport URL that could not be parsed.

    Rather too much than too little: a password with a character that should have been
    encoded can end up in any part.
    """
    scheme, mark, rest = text.partition("://")
    if not _SCHEME.fullmatch(scheme) or "://" in rest:
        scheme, mark, rest = "", "", text  # where the driver's name ends is unclear
    login, at, place = rest.rpartition("@")
    base, question, _ = place.partition("?")
    base = re.sub(r":(?!\d*(?:[],/:]|$)).*", f":{MASK}", base.partition("#")[0])
    if at and "?" in login:
        base = ""  # an @ in the query: where the hosts end is unclear
    return f"{scheme}{mark}{MASK + at if at else ''}{base}" + (f"?{MASK}" if question else "")


def mask_query_of(url: str, is_secret: Callable[[str], bool]) -> str:
    """Mask the values of secret parameters in the query of a URL."""
    base, question, rest = url.partition("?")
    query, mark, fragment = rest.partition("#")
    return base + question + mask_query(query, is_secret) + mark + fragment


def mask_query(query: str, is_secret: Callable[[str], bool]) -> str:
    """Mask the values of secret parameters in a query."""
    return "&".join(_mask_parameter(part, is_secret) for part in query.split("&"))


def _mask_parameter(part: str, is_secret: Callable[[str], bool]) -> str:
    name, equals, _ = part.partition("=")
    if equals and is_secret(parse.unquote_plus(name)):
        # Also what follows a semicolon: it may be part of the secret.
        return f"{name}={MASK}"
    # Some applications separate parameters by semicolons.
    return ";".join(_mask_parameter(each, is_secret) for each in part.split(";")) if ";" in part else part
