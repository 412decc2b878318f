"""`rookery doctor`, on machines that have and that lack."""

from __future__ import annotations

import json
import socket
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from rookery.api import doctor as doctor_api
from rookery.api.lake import connect
from rookery.model import CheckOutcome, UsageError
from rookery.tables.config import embedded
from tests.cli.conftest import Rookery

ALL = ["python", "java", "spark", "jars", "catalog", "read", "write"]


@pytest.fixture(autouse=True)
def java(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A script that calls itself Java 17, so that the tests need none."""
    script = home / "jdk" / "bin" / "java"
    script.parent.mkdir(parents=True)
    script.write_text("#!/bin/sh\necho 'openjdk version \"17.0.15\"' >&2\n")
    script.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(home / "jdk"))
    return script


def test_all_is_well(rookery: Rookery, home: Path, java: Path) -> None:
    code, out, err = rookery("doctor")
    assert (code, err) == (0, "")
    lines = [line.split() for line in out.splitlines()]
    assert [line[1] for line in lines] == ALL
    assert {line[0] for line in lines} <= {"✓", "·"}
    assert f"17 at {java}" in out
    assert f"created by the first table, in {home}/.rookery" in out
    assert f"{home}/.rookery/warehouse is created by the first table" in out
    assert not (home / ".rookery").exists()


def test_the_write_check_leaves_nothing(rookery: Rookery, home: Path) -> None:
    (home / ".rookery" / "warehouse").mkdir(parents=True)
    assert rookery("doctor", "--only", "write")[0] == 0
    assert [path for path in (home / ".rookery").rglob("*") if path.is_file()] == []


def test_only(rookery: Rookery) -> None:
    code, out, _ = rookery("doctor", "--only", "python", "--only", "java")
    assert code == 0
    assert [line.split()[1] for line in out.splitlines()] == ["python", "java"]


def test_json(rookery: Rookery) -> None:
    code, out, _ = rookery("doctor", "--output", "json")
    assert code == 0
    assert [check["subject"] for check in json.loads(out)["checks"]] == ALL


def test_jars_at_hand_and_not(rookery: Rookery, home: Path) -> None:
    assert "downloaded by the first session" in rookery("doctor", "--only", "jars")[1]
    for package in doctor_api.spark_catalog(embedded()).packages:
        jar = home / doctor_api._IVY_JARS / doctor_api._jar_name(package)
        jar.parent.mkdir(parents=True, exist_ok=True)
        jar.touch()
    assert "✓" in rookery("doctor", "--only", "jars")[1]


def test_missing_java(rookery: Rookery, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    code, out, err = rookery("doctor", "--only", "java")
    assert (code, err) == (1, "")
    assert out.startswith("✗  java")
    assert "hint: java: install a JDK or JRE 17 or newer" in out


def test_what_is_optional_is_not_broken(rookery: Rookery, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(doctor_api, "version", nothing)
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    words = [word for check in ("java", "spark", "jars") for word in ("--only", check)]
    code, out, _ = rookery("doctor", *words)
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == ["·", "·", "·", "hint:"]
    assert out.count("optional, for commands that start Spark") == 3
    assert "hint: spark: pip install 'rookery[spark]'" in out


def test_old_spark(rookery: Rookery, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_api, "version", lambda _: "3.5.1")
    code, out, _ = rookery("doctor", "--only", "spark")
    assert code == 1
    assert "3.5.1" in out
    assert "pip install 'pyspark==4.1.*'" in out


def test_unreachable_catalog(rookery: Rookery, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__TOKEN", "t0ken-s3cret")
    code, out, err = rookery("doctor", "--catalog", "prod", "--uri", f"http://me:pw-s3cret@127.0.0.1:{port}")
    assert (code, err) == (1, "")
    assert "s3cret" not in out
    lines = out.splitlines()
    assert [line.split()[:2] for line in lines if line[0] == "✗"] == [["✗", "catalog"], ["✗", "read"]]
    assert any(line.startswith("hint: catalog: ") for line in lines)


def test_warehouse_that_cannot_be_written_to(rookery: Rookery, home: Path) -> None:
    (home / "file").touch()
    code, out, _ = rookery(
        "doctor", "--only", "write", "--uri", "sqlite:///c.db", "--warehouse", f"file://{home}/file/w"
    )
    assert code == 1
    assert out.startswith("✗  write")
    assert "hint: write: " in out


def test_warehouse_without_an_address(rookery: Rookery) -> None:
    code, out, _ = rookery("doctor", "--only", "write", "--uri", "https://rest", "--warehouse", "main")
    assert code == 0
    assert out.startswith("·  write")


def test_catalog_without_an_address(rookery: Rookery) -> None:
    code, out, _ = rookery("doctor", "--only", "jars", "--only", "catalog", "--warehouse", "/w")
    assert code == 1
    assert out.count("✗") == 2
    assert "which is a warehouse and not a catalog" in out


def test_report() -> None:
    report = doctor_api.doctor(connect(), ("python",))
    assert [check.outcome for check in report.checks] == [CheckOutcome.OK]
    with pytest.raises(UsageError, match="no check 'x'") as caught:
        doctor_api.doctor(connect(), ("x",))
    assert "python, java" in (caught.value.hint or "")
