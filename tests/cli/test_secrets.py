"""No secret in what is printed, in errors and with --debug."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.cli.conftest import Rookery

SECRET = "qqS3cr3tPw9"


@pytest.fixture
def port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


FORMS = [
    "http://127.0.0.1:{port}/cat?token={secret}",
    "http://127.0.0.1:{port}/cat?k={secret}",
    "http://me:{secret}@127.0.0.1:{port}/cat",
]


@pytest.mark.parametrize("debug", [[], ["--debug"]])
@pytest.mark.parametrize("form", FORMS)
def test_address_of_a_catalog(rookery: Rookery, port: int, form: str, debug: list[str]) -> None:
    uri = form.format(port=port, secret=SECRET)
    for option in (["--uri", uri], [f"--uri={uri}"]):
        code, out, err = rookery("stats", "db.t", *option, *debug)
        assert (code, out) == (2, "")
        assert "Traceback" in err or not debug
        assert SECRET not in err
        assert "/cat" in err


@pytest.mark.parametrize("debug", [[], ["--debug"]])
@pytest.mark.parametrize("property_name", ["oauth2-server-uri", "uri"])
def test_properties_of_a_catalog(
    rookery: Rookery,
    port: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    property_name: str,
    debug: list[str],
) -> None:
    address = f"http://127.0.0.1:{port}"
    properties = {"uri": address, "credential": f"me:{SECRET}2", "oauth2-server-uri": f"{address}/tok"}
    properties[property_name] = f"{address}/tok?client_secret={SECRET}"
    lines = "".join(f"    {name}: {value}\n" for name, value in properties.items())
    (tmp_path / ".pyiceberg.yaml").write_text(f"catalog:\n  cat:\n    type: rest\n{lines}")
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    for words in (["stats", "db.t", "--catalog", "cat"], ["doctor", "--catalog", "cat", "--only", "catalog"]):
        code, out, err = rookery(*words, *debug)
        assert code in (1, 2)
        assert SECRET not in out + err


def test_traceback_of_a_file(rookery: Rookery, port: int) -> None:
    url = f"http://me:{SECRET}@127.0.0.1:{port}/a.puffin?sig={SECRET}x"
    code, _, err = rookery("--debug", "puffin", "inspect", url)
    assert code == 2
    assert err.startswith("Traceback")
    assert SECRET not in err


def test_fault_of_our_own(rookery: Rookery, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(url: str, *_: object) -> None:
        raise LookupError(f"{url} or {url.partition('://')[2]}")

    monkeypatch.setattr("rookery.api.puffin_files.inspect", fail)
    for debug in ([], ["--debug"]):
        code, _, err = rookery("puffin", "inspect", f"gopher://me:{SECRET}@host/a?sig={SECRET}", *debug)
        assert code == 2
        assert SECRET not in err
