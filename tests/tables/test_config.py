"""Which catalog is meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from rookery.model import CatalogError, UsageError
from rookery.tables.config import CatalogConfig, configured, embedded, home, resolve
from rookery.tables.iceberg.catalogs import IcebergCatalog
from rookery.tables.iceberg.opening import create_catalog

YAML = """
catalog:
  prod:
    uri: https://rest.example/catalog
    warehouse: s3://prod/warehouse
    token: t0ken-of-prod
  local:
    type: sql
    uri: sqlite:////tmp/local.db
"""


@pytest.fixture
def yaml(config_home: Path) -> Path:
    path = config_home / ".pyiceberg.yaml"
    path.write_text(YAML)
    return path


def test_nothing_said_and_nothing_configured(config_home: Path) -> None:
    config = resolve()
    assert config == embedded()
    assert config.name == "lake"
    assert config.type == "sql"
    assert config.properties["uri"].startswith(f"sqlite:///{config_home}/.rookery/catalog.db")
    assert config.properties["warehouse"] == f"file://{config_home}/.rookery/warehouse"


def test_embedded_by_its_name(config_home: Path) -> None:
    assert resolve("lake") == embedded()


def test_rookery_home(config_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROOKERY_HOME", str(config_home / "elsewhere"))
    assert home() == config_home / "elsewhere"
    assert resolve().properties["warehouse"] == f"file://{config_home}/elsewhere/warehouse"


def test_relative_rookery_home_is_made_absolute(config_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROOKERY_HOME", "here")
    assert home() == config_home / "here"


def test_empty_rookery_home_counts_as_none(config_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROOKERY_HOME", "")
    assert home() == config_home / ".rookery"


def test_by_name_from_the_file(yaml: Path) -> None:
    config = resolve("prod")
    assert (config.name, config.type) == ("prod", "rest")
    assert config.properties["token"] == "t0ken-of-prod"
    assert resolve("local").type == "sql"
    assert set(configured()) == {"prod", "local"}


def test_names_are_found_in_any_case(yaml: Path) -> None:
    assert resolve("Prod").properties == configured()["prod"]


def test_file_alone_sets_no_default(yaml: Path) -> None:
    assert resolve() == embedded()


def test_catalog_named_default_is_the_default(yaml: Path) -> None:
    yaml.write_text("catalog:\n  default:\n    uri: thrift://hive:9083\n")
    config = resolve()
    assert (config.name, config.type) == ("default", "hive")


@pytest.mark.parametrize("name", ["prod", "Prod"])
def test_default_catalog(yaml: Path, name: str) -> None:
    yaml.write_text(f"default-catalog: {name}\n{YAML}")
    assert resolve().properties == configured()["prod"]


def test_default_catalog_from_the_environment(yaml: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYICEBERG_DEFAULT_CATALOG", "local")
    assert resolve().name == "local"


def test_default_catalog_that_is_not_configured(yaml: Path) -> None:
    yaml.write_text(f"default-catalog: prdo\n{YAML}")
    with pytest.raises(UsageError, match="'prdo'") as caught:
        resolve()
    assert "local, prod" in (caught.value.hint or "")


def test_default_catalog_that_is_no_name(yaml: Path) -> None:
    yaml.write_text(f"default-catalog:\n  - prod\n{YAML}")
    with pytest.raises(CatalogError, match="configuration") as caught:
        resolve()
    assert caught.value.hint


def test_from_environment_variables(config_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__X__URI", "sqlite:////tmp/x.db")
    monkeypatch.setenv("PYICEBERG_CATALOG__X__S3__ACCESS_KEY_ID", "id")
    config = resolve("x")
    assert config.type == "sql"
    assert config.properties == {"uri": "sqlite:////tmp/x.db", "s3.access-key-id": "id"}


def test_environment_goes_before_the_file(yaml: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__WAREHOUSE", "s3://other")
    assert resolve("prod").properties["warehouse"] == "s3://other"
    assert resolve("prod").properties["token"] == "t0ken-of-prod"


def test_what_is_said_goes_before_what_is_configured(yaml: Path) -> None:
    config = resolve("prod", uri="http://127.0.0.1:1", warehouse="/tmp/w", token="other")
    assert config.properties == {"uri": "http://127.0.0.1:1", "warehouse": "/tmp/w", "token": "other"}
    assert resolve("prod", warehouse="w2").properties["uri"] == "https://rest.example/catalog"


def test_address_under_a_new_name(yaml: Path) -> None:
    assert resolve("mine", uri="sqlite:///m.db") == CatalogConfig("mine", {"uri": "sqlite:///m.db"})


def test_address_alone(yaml: Path) -> None:
    assert resolve(uri="sqlite:///m.db") == CatalogConfig("lake", {"uri": "sqlite:///m.db"})


def test_lake_is_the_one_that_is_configured(yaml: Path) -> None:
    """Not the embedded one, with or without its name; an address alone must not be taken for it."""
    yaml.write_text("catalog:\n  lake:\n    uri: https://rest.example/lake\n    token: t0ken\n")
    assert resolve() == resolve("lake") == CatalogConfig("lake", configured()["lake"])
    with pytest.raises(UsageError, match="another catalog is configured as 'lake'") as caught:
        resolve(uri="sqlite:////m.db")
    assert "--catalog NAME" in (caught.value.hint or "")
    assert resolve("mine", uri="sqlite:////m.db").properties == {"uri": "sqlite:////m.db"}


def test_settings_of_a_name_are_not_those_of_another_address(yaml: Path, tmp_path: Path) -> None:
    """PyIceberg adds what is configured under a catalog's name when it opens it."""
    yaml.write_text("catalog:\n  c:\n    type: sql\n    uri: sqlite:////m.db\n    token: t0ken\n")
    given = CatalogConfig("c", {"uri": f"sqlite:///{tmp_path}/other.db"})
    assert "token" not in IcebergCatalog(given).create().properties


@pytest.mark.parametrize(
    ("given", "uri"),
    [
        ("jdbc:sqlite:/data/c.db?busy_timeout=9", "sqlite:////data/c.db"),
        ("jdbc:sqlite:file:/data/c.db", "sqlite:////data/c.db"),
        ("sqlite:/data/c.db", "sqlite:////data/c.db"),
        ("/data/c.db", "sqlite:////data/c.db"),
        ("file:///data/c.db", "sqlite:////data/c.db"),
        ("postgres://host/db", "postgresql://host/db"),
        (
            "jdbc:postgresql://host:1/db?user=me&password=p%40w&currentSchema=s&ssl=true",
            "postgresql://me:p%40w@host:1/db?options=-csearch_path%3Ds&sslmode=require",
        ),
        ("jdbc:mysql://host/db", "mysql+pymysql://host/db"),
    ],
)
def test_addresses_of_others(
    given: str, uri: str, config_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert resolve(uri=given).properties == {"uri": uri, "type": "sql"}
    monkeypatch.setenv("PYICEBERG_CATALOG__X__TYPE", "jdbc")
    monkeypatch.setenv("PYICEBERG_CATALOG__X__URI", given)
    assert (resolve("x").type, resolve("x").properties["uri"]) == ("sql", uri)


def test_a_file_without_an_ending_is_recognized(tmp_path: Path) -> None:
    create_catalog(CatalogConfig("c", {"uri": f"sqlite:///{tmp_path}/catalog"}))
    assert resolve("c", str(tmp_path / "catalog")).properties["uri"] == f"sqlite:///{tmp_path}/catalog"


@pytest.mark.parametrize(
    ("properties", "words", "hint"),
    [
        ({"type": "hadoop", "warehouse": "/w"}, "no catalogs of type hadoop", "metadata file"),
        ({"catalog-impl": "org.apache.iceberg.hadoop.HadoopCatalog"}, "type hadoop", "spark=spark"),
        ({"type": "nessie", "uri": "http://h"}, "no catalogs of type nessie", "use type rest"),
        ({"type": "nosuch"}, "no catalogs of type nosuch", "types are rest, hive"),
        ({"uri": "/w"}, "is a folder", "metadata file"),
        ({"uri": "s3://bucket/w"}, "is a folder", "spark=spark"),
        ({"warehouse": "/w"}, "is a folder", "metadata file"),
        ({"uri": "file:/w/t/metadata/v1.metadata.json"}, "metadata file", "in place of the table's name"),
        ({"uri": "jdbc:oracle:thin:@h"}, "JDBC address", "use sqlite:////"),
        ({"uri": "jdbc:postgresql://h/db?loggerLevel=OFF"}, "JDBC address", "postgresql://host/database"),
        ({"uri": "duckdb:///x"}, "Could not infer", "use sqlite:////"),
    ],
)
def test_what_pyiceberg_cannot_open(
    properties: dict[str, str], words: str, hint: str, config_home: Path
) -> None:
    """The answer comes when the catalog is used: another one in the file is not in the way."""
    config = resolve("c", **properties)
    with pytest.raises(CatalogError, match=words) as caught:
        IcebergCatalog(config).count_namespaces()
    assert hint in (caught.value.hint or "")


def test_unknown_name(yaml: Path) -> None:
    with pytest.raises(UsageError, match="no catalog 'prd'") as caught:
        resolve("prd")
    assert "local, prod" in (caught.value.hint or "")


def test_unknown_name_with_nothing_configured(config_home: Path) -> None:
    with pytest.raises(UsageError) as caught:
        resolve("prod")
    assert "configured are: none" in (caught.value.hint or "")


@pytest.mark.parametrize(
    "text",
    [
        "catalog: [",
        "catalog:\n  prod: {uri: s3cret}\n",
        "catalog:\n\tprod: s3cret\n",
        "catalog: just-text\n",
        "catalog:\n  prod: just-text\n",
    ],
)
def test_broken_file(yaml: Path, text: str) -> None:
    yaml.write_text(text)
    with pytest.raises(CatalogError) as caught:
        resolve("prod")
    assert "\n" not in caught.value.message
    assert "s3cret" not in caught.value.message
    assert ".pyiceberg.yaml" in (caught.value.hint or "")


def test_catalog_variable_that_is_no_object(config_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG", "prod")
    with pytest.raises(CatalogError, match="configuration"):
        resolve("prod")


@pytest.mark.parametrize(
    ("properties", "kind"),
    [
        ({"uri": "http://host"}, "rest"),
        ({"uri": "postgresql://host/db"}, "sql"),
        ({"uri": "thrift://host"}, "hive"),
        ({"type": "GLUE"}, "glue"),
        ({"type": "sql", "uri": "http://host"}, "sql"),
    ],
)
def test_kinds(properties: dict[str, str], kind: str) -> None:
    assert CatalogConfig("c", properties).type is kind


@pytest.mark.parametrize("properties", [{}, {"warehouse": "/tmp/w"}, {"type": "nosuch"}, {"uri": "x"}])
def test_kind_that_cannot_be_told(properties: dict[str, str]) -> None:
    with pytest.raises(CatalogError, match="catalog 'c'") as caught:
        _ = CatalogConfig("c", properties).type
    assert caught.value.hint


def test_secrets_are_not_in_the_repr(yaml: Path) -> None:
    assert "t0ken" not in repr(resolve("prod"))
