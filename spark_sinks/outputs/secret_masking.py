"""What is shown of outputs and of Spark's properties: all but the secrets in them. Imports no pyarrow."""

import re
from urllib import parse

from notifier_kafka.contract import secret_masking

NEXT = re.compile(r",(?=\s*spark\.[\w.-]+\s*:)")
"""Where a property ends and the next begins."""

# A ; in a value is part of it unless another name comes behind.
_MEMBER = re.compile(r"([?&;])([^=&;]*)=((?:[^&;]|;(?![^=&;]*=))*)")
# Wider than in payloads: a fs.s3a.access.key is a login. The name of a key store is none.
_SECRET = re.compile(r"key(?!s?tore)|pwd", re.IGNORECASE)


def output(text: str) -> str:
    """Name an output without the passwords that may be in it."""
    # Who takes it for a URL passes over these.
    text = re.sub(r"[\t\r\n]", "", text)
    if "://" not in text:
        return text
    # To the last @: a password that was not percent-encoded may hold what ends a host.
    without = re.sub(r"(://[^:@]*):.*@", rf"\1:{secret_masking.MASK}@", text)
    return _MEMBER.sub(_hide, without)


def properties(line: str) -> str:
    """Spell a line of Spark's properties without the values that look secret by their name."""
    return ",".join(_property(each) for each in NEXT.split(line))


def _property(text: str) -> str:
    # With a wrong sign in the place of the colon as well: what is shown need not be right.
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
