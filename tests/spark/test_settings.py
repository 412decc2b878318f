"""What a session is started with, worked out without starting one."""

from __future__ import annotations

from pathlib import Path

import pytest

from rookery.spark.catalogs import ICEBERG_RUNTIME, SQLITE_JDBC, spark_catalog
from rookery.spark.settings import EXTENSIONS, parse_properties, settings, spark_defaults
from rookery.tables.config import embedded

KNOWN = spark_catalog(embedded())


@pytest.fixture(autouse=True)
def _no_master(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_MASTER", raising=False)


def test_nothing_said() -> None:
    found = settings("lake", KNOWN, {})
    assert found["spark.master"] == "local[*]"
    assert found["spark.sql.defaultCatalog"] == "lake"
    assert found["spark.sql.extensions"] == EXTENSIONS
    assert found["spark.jars.packages"].split(",") == [ICEBERG_RUNTIME, SQLITE_JDBC]
    assert found["spark.driver.host"] == found["spark.driver.bindAddress"] == "127.0.0.1"
    assert found.items() >= KNOWN.conf.items()


@pytest.mark.parametrize(
    "given, conf, master, variable, expected",
    [
        ({"spark.master": "yarn"}, {}, None, "", "yarn"),
        ({"spark.master": "yarn"}, {"spark.master": "spark://a:7077"}, None, "", "spark://a:7077"),
        ({"spark.master": "yarn"}, {"spark.master": "spark://a:7077"}, "local[2]", "", "local[2]"),
        ({}, {}, None, "spark://b:7077", "spark://b:7077"),
        ({"spark.master": "yarn"}, {}, None, "spark://b:7077", "yarn"),
    ],
)
def test_master(
    given: dict[str, str],
    conf: dict[str, str],
    master: str | None,
    variable: str,
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SPARK_MASTER", variable)
    assert settings("lake", KNOWN, given, conf=conf, master=master)["spark.master"] == expected


@pytest.mark.parametrize(
    "master, local", [("local-cluster[2,1,1024]", True), ("yarn", False), ("k8s://x", False)]
)
def test_executors_elsewhere_can_find_the_driver(master: str, local: bool) -> None:
    assert ("spark.driver.host" in settings("lake", KNOWN, {}, master=master)) == local


def test_what_is_said_goes_before_our_defaults() -> None:
    given = {"spark.driver.memory": "9g", "spark.ui.enabled": "true", "spark.sql.catalog.lake.uri": "theirs"}
    found = settings("lake", KNOWN, given, conf={"spark.ui.enabled": "maybe"})
    assert (found["spark.driver.memory"], found["spark.ui.enabled"]) == ("9g", "maybe")
    assert found["spark.sql.catalog.lake.uri"] == "theirs"
    assert settings("lake", KNOWN, given, memory="1g")["spark.driver.memory"] == "1g"


def test_lists_are_joined() -> None:
    given = {"spark.jars.packages": "a:b:1", "spark.sql.extensions": "their.Extension"}
    found = settings("lake", KNOWN, given)
    assert found["spark.jars.packages"].split(",") == ["a:b:1", ICEBERG_RUNTIME, SQLITE_JDBC]
    assert found["spark.sql.extensions"] == f"their.Extension,{EXTENSIONS}"
    again = settings("lake", KNOWN, found)
    assert again["spark.jars.packages"] == found["spark.jars.packages"]
    assert again["spark.sql.extensions"] == found["spark.sql.extensions"]


@pytest.mark.parametrize("key", ["spark.jars.packages", "spark.jars"])
def test_an_iceberg_that_is_brought_along_is_not_joined_by_another(key: str) -> None:
    theirs = (
        "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0"
        if "packages" in key
        else ("/opt/iceberg-spark-runtime-4.1_2.13-1.11.0.jar")
    )
    found = settings("lake", KNOWN, {key: theirs})
    assert ICEBERG_RUNTIME not in found["spark.jars.packages"]
    assert SQLITE_JDBC in found["spark.jars.packages"]


def test_defaults_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    assert spark_defaults(str(tmp_path)) == {}
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text("spark.a 1\n")
    assert spark_defaults(str(tmp_path)) == {"spark.a": "1"}
    (tmp_path / "spark-defaults.conf").write_text("spark.b = 2\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert spark_defaults("/nowhere") == {"spark.b": "2"}


def test_properties() -> None:
    text = "\n# note\n  spark.a   x y \nspark.b=1=2\nspark.c:3\nnonsense\nspark.d\t4\n"
    assert parse_properties(text) == {"spark.a": "x y", "spark.b": "1=2", "spark.c": "3", "spark.d": "4"}
