"""Nothing secret in what is printed."""

from __future__ import annotations

from urllib.parse import quote, quote_plus

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
        "api_key",
        "some.access.key",
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


_SECRET = st.text("abcXYZ0189_-.~", min_size=6, max_size=20).map("s3cr3t".__add__)
_KEY = st.sampled_from(
    ["client_secret", "token", "sig", "X-Amz-Signature", "code", "k", "password", "AccessKey"]
)
_ADDRESS = st.sampled_from(
    [
        "http://host/tok?{key}={secret}",
        "https://host:8181/v1?a=1&{key}={secret}&b=2",
        "https://me:{secret}@host/cat",
        "https://{secret}@host/cat",
        "postgresql+psycopg2://me:{secret}@host:5432/db?sslmode=require",
        "postgresql://me:p/{secret}?x@host/db",
        "jdbc:postgresql://host/db?user=me&{key}={secret}",
        "http://host/cat#{key}={secret}",
        "s3://id:{secret}@bucket/warehouse",
    ]
)
_QUOTED = st.sampled_from(
    [
        "cannot reach {address}",
        "HTTPConnectionPool(host='host', port=80): Max retries exceeded with url: {path} (Caused by x)",
        "got {part!r} from server",
        "redirect={encoded}",
        'File "x.py", line 1\n    raise E\nE: {address!r}, {{"url": "{address}"}}',
        "<Response [401]> for url: {address}.",
        "invalid value {secret}",
    ]
)


@given(_ADDRESS, _KEY, _SECRET, _QUOTED, st.sampled_from(["uri", "oauth2-server-uri", "s3.endpoint"]))
def test_addresses_of_properties(form: str, key: str, secret: str, quoted: str, name: str) -> None:
    address = form.format(key=key, secret=secret)
    rest = address.partition("://")[2]
    text = quoted.format(
        address=address,
        path="/" + rest.partition("/")[2],
        part=rest,
        encoded=quote(address, safe=""),
        secret=secret,
    )
    assert secret not in redact(text, {name: address})
    assert secret not in redact(text, location=address)


@given(_SECRET, st.sampled_from(["credential", "token", "s3.secret-access-key"]))
def test_secrets_as_libraries_quote_them(secret: str, key: str) -> None:
    odd = f"{secret}/+=\\ é'"
    for text in (odd, quote(odd, safe=""), quote_plus(odd), repr(odd)):
        assert secret not in redact(f"refused: {text}", {key: odd})
    assert secret not in redact(f"secret {secret} refused", {"credential": f"client:{secret}"})


@pytest.mark.parametrize(
    ("text", "properties"),
    [
        ("timeout after 30 s, mode rwc", {"uri": "sqlite:////tmp/c.db?timeout=30&mode=rwc"}),
        ("postgresql refused", {"uri": "postgresql://postgres@host/db"}),
        ("container refused", {"warehouse": "abfss://container@account.dfs.core.windows.net/w"}),
        ("what? a=b", {"uri": "http://host"}),
    ],
)
def test_what_is_no_secret_stays(text: str, properties: dict[str, str]) -> None:
    assert redact(text, properties) == text
