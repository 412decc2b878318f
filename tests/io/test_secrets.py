"""Passwords and signatures in locations never reach an error's text."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rookery.io import (
    create_sink,
    list_files,
    local_path,
    open_source,
    scheme_of,
    shown,
)
from rookery.io.redaction import redact
from rookery.model import StorageError, UsageError
from tests.io.conformance import assert_silent_about, fill
from tests.io.conftest import KEY_ID, SECRET
from tests.io.web import Web

SIGNATURE = "X-Sig=aB%2Fc%2Bd%3D&X-Token=tOkEn"
SECRETS = ("pa55word", "aB%2Fc", "aB/c", "tOkEn")


def _signed(web: Web, name: str) -> str:
    return f"http://me:pa55word@{web.address}/{name}?{SIGNATURE}"


@pytest.mark.parametrize("refused", [False, True])
@pytest.mark.parametrize(
    "deed",
    [
        lambda url: open_source(url).size,
        lambda url: open_source(url).read(0, 4),
        lambda url: list_files(url, (".bin",)),
    ],
    ids=["size", "read", "list"],
)
def test_web_errors(web: Web, refused: bool, deed: Callable[[str], object]) -> None:
    if refused:
        web.refused.add("a.bin")
    with pytest.raises(StorageError) as caught:
        deed(_signed(web, "a.bin"))
    assert f"http://{web.address}/a.bin" in caught.value.message
    assert_silent_about(caught.value, *SECRETS)


def test_web_sink(web: Web) -> None:
    with pytest.raises(StorageError) as caught:
        fill(create_sink(_signed(web, "a.bin")))
    assert_silent_about(caught.value, *SECRETS)


def _closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_unreachable_web() -> None:
    with pytest.raises(StorageError) as caught:
        open_source(f"http://me:pa55word@127.0.0.1:{_closed_port()}/a.bin?{SIGNATURE}").read(0, 4)
    assert_silent_about(caught.value, *SECRETS)


@pytest.mark.parametrize("scheme", ["s3", "s3a", "gs"])
def test_a_location_with_credentials(scheme: str, caplog: pytest.LogCaptureFixture) -> None:
    location = f"{scheme}://{KEY_ID}:{SECRET}@bucket/a.bin"
    for deed in (
        lambda: open_source(location).read(0, 4),
        lambda: list_files(location, (".bin",)),
        lambda: fill(create_sink(location)),
    ):
        with pytest.raises(UsageError) as caught:
            deed()
        assert_silent_about(caught.value, SECRET, KEY_ID)
    assert SECRET not in caplog.text


def test_store_errors(s3_properties: Mapping[str, str]) -> None:
    for deed in (
        lambda: open_source("s3://nobody-has-this/a.bin", s3_properties).read(0, 4),
        lambda: list_files("s3://nobody-has-this/a", (".bin",), s3_properties),
    ):
        with pytest.raises(StorageError) as caught:
            deed()
        assert "s3://nobody-has-this/a" in caught.value.message
        assert_silent_about(caught.value, SECRET, KEY_ID)


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("/tmp/a.puffin", "/tmp/a.puffin"),
        ("/tmp/odd?name#here@x", "/tmp/odd?name#here@x"),
        ("file:///tmp/odd?name", "file:///tmp/odd?name"),
        ("s3://bucket/a/b.puffin", "s3://bucket/a/b.puffin"),
        ("https://me:pw@host:8080/a?sig=1#part", "https://host:8080/a"),
        ("https://token@host/a", "https://host/a"),
        ("https://me:p@ss@host/a", "https://host/a"),
        ("abfss://box@account.dfs.core/a", "abfss://box@account.dfs.core/a"),
        ("s3://[bad/a?sig=1", "s3://[bad/a"),
    ],
)
def test_shown(location: str, expected: str) -> None:
    assert shown(location) == expected


@pytest.mark.parametrize(
    ("text", "location", "expected"),
    [
        ("403 for https://me:pw1@host/a?sig=abc", "https://me:pw1@host/a?sig=abc", "403 for https://host/a"),
        ("bad query sig=abc", "https://host/a?sig=abc", "bad query ***"),
        ("no sig abcd", "https://host/a?sig=abcd", "no sig ***"),
        ("login of me:pw1 failed", "https://me:pw1@host/a", "login of *** failed"),
        ("password pw1 is wrong", "https://me:pw1@host/a", "password *** is wrong"),
        ("sig=a/b+c= is wrong", "https://host/a?sig=a%2Fb%2Bc%3D", "*** is wrong"),
        ("plain words", "https://host/a", "plain words"),
        ("plain words", "/tmp/a", "plain words"),
    ],
)
def test_what_is_quoted_of_a_location(text: str, location: str, expected: str) -> None:
    assert redact(text, location=location) == expected


_WORD = st.text("abcdefghXYZ0123", min_size=4, max_size=12).map("s3cr3t".__add__)


@given(user=_WORD, password=_WORD, signature=_WORD)
def test_no_form_of_a_secret_is_shown(user: str, password: str, signature: str) -> None:
    location = f"https://{user}:{password}@host/a?sig={signature}"
    text = f"GET {location}: {password} {signature} {user}:{password}"
    for result in (shown(location), redact(text, location=location)):
        assert password not in result
        assert signature not in result


@pytest.mark.parametrize(
    ("location", "scheme", "path"),
    [
        ("a b", None, "a b"),
        ("file:/a%20b", None, "/a%20b"),
        ("file:///a", None, "/a"),
        ("file://localhost/a", None, "/a"),
        ("S3://bucket/a", "s3", "S3://bucket/a"),
        ("a:b", None, "a:b"),
    ],
)
def test_local_or_not(location: str, scheme: str | None, path: str) -> None:
    assert (scheme_of(location), local_path(location)) == (scheme, path)
