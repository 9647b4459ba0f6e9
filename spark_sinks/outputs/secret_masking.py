"""Masks the secrets in outputs and in Spark's properties. Imports no pyarrow."""

import re
from urllib import parse

from notifier_kafka.contract import secret_masking

NEXT = re.compile(r",(?=\s*spark\.[\w.-]+\s*:)")
"""The comma between two properties."""

# A semicolon belongs to the value unless another name follows.
_MEMBER = re.compile(r"([?&;])([^=&;]*)=((?:[^&;]|;(?![^=&;]*=))*)")
# More names than in payloads: fs.s3a.access.key is a credential. The name of a key store is not.
_SECRET = re.compile(r"key(?!s?tore)|pwd", re.IGNORECASE)


def output(text: str) -> str:
    """Return an output with its passwords masked."""
    # Parsers of URLs ignore these.
    text = re.sub(r"[\t\r\n]", "", text)
    if "://" not in text:
        return text
    # Up to the last @: a password that is not percent-encoded may hold one.
    without = re.sub(r"(://[^:@]*):.*@", rf"\1:{secret_masking.MASK}@", text)
    return _MEMBER.sub(_hide, without)


def properties(line: str) -> str:
    """Return a line of Spark's properties, with values masked whose names look secret."""
    return ",".join(_property(each) for each in NEXT.split(line))


def _property(text: str) -> str:
    # Also with a wrong separator instead of the colon: the value may still be a secret.
    found = re.fullmatch(r"(\s*[^\s:=]*\s*[:=\s]\s*)(.*)", text, re.DOTALL)
    if found is None:
        return text
    name, value = found.groups()
    secret = secret_masking.is_secret(name) or _SECRET.search(name)
    return name + (secret_masking.MASK if secret else secret_masking.mask_text(value))


def _hide(member: re.Match[str]) -> str:
    before, name, value = member.groups()
    secret = re.search("password|secret|token", parse.unquote(name), re.IGNORECASE)
    return f"{before}{name}={secret_masking.MASK if secret else value}"
