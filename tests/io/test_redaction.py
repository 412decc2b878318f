"""Nothing secret in what is printed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rookery.io.redaction import is_secret, redact


@pytest.mark.parametrize(
    "key",
    [
        "token",
        "credential",
        "password",
        "s3.secret-access-key",
        "s3.access-key-id",
        "s3.session-token",
        "adls.account-key",
        "adls.sas-token",
        "gcs.oauth2.token",
        "client.secret-access-key",
        "adls.connection-string",
        "header.Authorization",
        "header.X-Api-Key",
    ],
)
def test_secret_keys(key: str) -> None:
    assert is_secret(key)


@pytest.mark.parametrize(
    "key", ["uri", "warehouse", "type", "s3.endpoint", "s3.region", "client.region", "oauth2-server-uri"]
)
def test_open_keys(key: str) -> None:
    assert not is_secret(key)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("postgresql://me:pw@host/db", "postgresql://host/db"),
        ("postgresql://me:p/w@host/db", "postgresql://host/db"),
        ("two: aa://u:p1@h and bb://u:p2@h", "two: aa://h and bb://h"),
        ("http://host:8181/v1/config refused", "http://host:8181/v1/config refused"),
        ("http://host:8181/v1, mail me@home", "http://host:8181/v1, mail me@home"),
        ("no secret at all", "no secret at all"),
    ],
)
def test_passwords_in_urls(text: str, expected: str) -> None:
    assert redact(text) == expected


def test_values_of_secret_properties() -> None:
    properties = {"token": "abc123", "uri": "http://h", "password": "", "s3.session-token": "xyz"}
    assert redact("abc123 at http://h with xyz", properties) == "*** at http://h with ***"


def test_a_secret_that_holds_another() -> None:
    assert redact("it is abcdef", {"token": "abc", "password": "abcdef"}) == "it is ***"


_WORD = st.text("abcXYZ0189/+=%-_", min_size=4, max_size=20).map("s3cr3t".__add__)


@given(user=st.text("abcdef", min_size=1), password=_WORD, token=_WORD)
def test_no_secret_survives(user: str, password: str, token: str) -> None:
    text = f"cannot reach postgresql://{user}:{password}@host:5432/db with {token}"
    result = redact(text, {"token": token})
    assert password not in result
    assert token not in result
