from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notifier_kafka.contract import secret_masking


@pytest.mark.parametrize(
    "name",
    ["password", "adminPass", "X-Auth-Token", "auth_token", "client_secret", "Set-Cookie", "api_key"],
)
def test_names_of_secrets(name: str) -> None:
    assert secret_masking.is_secret(name)


@pytest.mark.parametrize("name", ["key_name", "compass", "state", "passive", "author", "host"])
def test_other_names(name: str) -> None:
    assert not secret_masking.is_secret(name)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mysql://me:s3cret@db/nova", "mysql://***@db/nova"),
        ("mysql://me:p@ss@db/nova", "mysql://***@db/nova"),
        ("http://host/path@2", "http://host/path@2"),
        ("login with password=s3cret and go", "login with password=*** and go"),
        ('{"adminPass": "s3 cret", "a": 1}', '{"adminPass": ***, "a": 1}'),
        (r"{\"token\": \"s3cret\"}", r"{\"token\": ***}"),
        ("Authorization: Bearer s3cret", "Authorization: ***"),
        ("token='s3cret", "token=***"),
        ("the password is lost", "the password is lost"),
    ],
)
def test_secrets_inside_text(text: str, expected: str) -> None:
    assert secret_masking.mask_text(text) == expected


def test_members_are_masked_at_any_depth_and_the_original_stays() -> None:
    value: dict[str, Any] = {
        "user": "me",
        "password": "s3cret",
        "passwords": ["s3cret"],
        "token": {"id": 1, "secret": 5},
        "servers": [{"adminPass": "s3cret"}, ("url", "http://me:s3cret@host")],
        "none_token": None,
        "5": 5.0,
    }
    before = repr(value)
    assert secret_masking.mask_members(value) == {
        "user": "me",
        "password": "***",
        "passwords": "***",
        "token": {"id": 1, "secret": "***"},
        "servers": [{"adminPass": "***"}, ["url", "http://***@host"]],
        "none_token": "***",
        "5": 5.0,
    }
    assert repr(value) == before


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=3), inner),
    max_leaves=10,
)


@given(json_values)
def test_what_is_no_secret_stays(value: Any) -> None:
    assert secret_masking.mask_members(value) == value
