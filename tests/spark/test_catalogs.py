"""From PyIceberg's properties to Spark's, with no JVM."""

from __future__ import annotations

import pytest

from rookery.model import CatalogError
from rookery.spark import spark_catalog
from rookery.spark.catalogs import (
    ICEBERG_AWS,
    ICEBERG_AZURE,
    ICEBERG_GCP,
    ICEBERG_RUNTIME,
    MYSQL_JDBC,
    POSTGRESQL_JDBC,
    SQLITE_JDBC,
)
from rookery.tables.config import CatalogConfig

S3_IO = "org.apache.iceberg.aws.s3.S3FileIO"


def _conf(**properties: str) -> dict[str, str]:
    """Spark's properties of the catalog `c`, without their prefix."""
    known = spark_catalog(
        CatalogConfig("c", {key.replace("__", "."): value for key, value in properties.items()})
    )
    conf = dict(known.conf)
    assert conf.pop("spark.sql.catalog.c") == "org.apache.iceberg.spark.SparkCatalog"
    assert all(key.startswith("spark.sql.catalog.c.") for key in conf)
    return {key.removeprefix("spark.sql.catalog.c."): value for key, value in conf.items()}


def _packages(**properties: str) -> tuple[str, ...]:
    return spark_catalog(
        CatalogConfig("c", {key.replace("__", "."): value for key, value in properties.items()})
    ).packages


def test_sqlite() -> None:
    assert _conf(type="sql", uri="sqlite:////data/c.db?timeout=30", warehouse="file:///data/w") == {
        "type": "jdbc",
        "uri": "jdbc:sqlite:/data/c.db?busy_timeout=30000",
        "jdbc.schema-version": "V1",
        "warehouse": "file:///data/w",
    }
    assert _packages(uri="sqlite:////data/c.db") == (ICEBERG_RUNTIME, SQLITE_JDBC)


def test_postgresql() -> None:
    uri = "postgresql+psycopg2://me:p%40ss@db.example:5433/catalog"
    assert _conf(uri=uri) == {
        "type": "jdbc",
        "uri": "jdbc:postgresql://db.example:5433/catalog",
        "jdbc.user": "me",
        "jdbc.password": "p@ss",
        "jdbc.schema-version": "V1",
    }
    assert _packages(uri=uri) == (ICEBERG_RUNTIME, POSTGRESQL_JDBC)


def test_postgresql_without_user() -> None:
    assert _conf(uri="postgresql://db/catalog") == {
        "type": "jdbc",
        "uri": "jdbc:postgresql://db/catalog",
        "jdbc.schema-version": "V1",
    }


def test_mysql() -> None:
    conf = _conf(type="sql", uri="mysql+pymysql://me:pw@db/catalog")
    assert conf["uri"] == "jdbc:mysql://db/catalog"
    assert (conf["jdbc.user"], conf["jdbc.password"]) == ("me", "pw")
    assert _packages(type="sql", uri="mysql+pymysql://me:pw@db/catalog") == (ICEBERG_RUNTIME, MYSQL_JDBC)


@pytest.mark.parametrize(
    "uri",
    [
        "sqlite://",
        "oracle://me:s3cret@host/db",
        "postgresql:///db",
        "postgresql://me:s3cret@host:port/db",
        "postgresql://me:s3cret@[host/db",
    ],
)
def test_no_jdbc_address(uri: str) -> None:
    with pytest.raises(CatalogError, match="no JDBC address") as caught:
        _conf(type="sql", uri=uri)
    assert "s3cret" not in caught.value.message
    assert "sqlite" in (caught.value.hint or "")


def test_rest() -> None:
    conf = _conf(
        uri="https://rest/catalog",
        warehouse="main",
        credential="id:secret",
        token="t",
        scope="PRINCIPAL_ROLE:ALL",
        s3__endpoint="http://127.0.0.1:9000",
        **{"s3__access-key-id": "id", "s3__secret-access-key": "key", "s3__region": "eu-west-1"},
    )
    assert conf == {
        "type": "rest",
        "uri": "https://rest/catalog",
        "warehouse": "main",
        "credential": "id:secret",
        "token": "t",
        "scope": "PRINCIPAL_ROLE:ALL",
        "s3.endpoint": "http://127.0.0.1:9000",
        "s3.access-key-id": "id",
        "s3.secret-access-key": "key",
        "s3.region": "eu-west-1",
        "io-impl": S3_IO,
        "client.region": "eu-west-1",
        "s3.path-style-access": "true",
    }


def test_rest_needs_no_more_jars_than_it_uses() -> None:
    assert _packages(uri="https://rest") == (ICEBERG_RUNTIME,)
    assert _packages(uri="https://rest", s3__endpoint="http://store") == (ICEBERG_RUNTIME, ICEBERG_AWS)


def test_hive() -> None:
    assert _conf(uri="thrift://hive:9083", warehouse="file:///w") == {
        "type": "hive",
        "uri": "thrift://hive:9083",
        "warehouse": "file:///w",
    }


def test_glue() -> None:
    conf = _conf(type="glue", warehouse="s3://bucket/w", **{"glue.region": "eu-west-1"})
    assert (conf["type"], conf["client.region"], conf["io-impl"]) == ("glue", "eu-west-1", S3_IO)
    assert set(_packages(type="glue")) == {ICEBERG_RUNTIME, ICEBERG_AWS}


def test_no_jar_is_named_twice() -> None:
    packages = _packages(type="glue", warehouse="s3://bucket/w")
    assert len(packages) == len(set(packages))


@pytest.mark.parametrize("kind", ["dynamodb", "in-memory", "bigquery"])
def test_kinds_that_spark_is_not_told_of(kind: str) -> None:
    with pytest.raises(CatalogError, match=f"of the kind {kind}") as caught:
        _conf(type=kind)
    assert "rest" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("warehouse", "package"),
    [
        ("s3://b/w", ICEBERG_AWS),
        ("s3a://b/w", ICEBERG_AWS),
        ("gs://b/w", ICEBERG_GCP),
        ("abfss://b@a/w", ICEBERG_AZURE),
    ],
)
def test_store_follows_from_the_warehouse(warehouse: str, package: str) -> None:
    assert package in _packages(uri="sqlite:////c.db", warehouse=warehouse)
    assert "io-impl" in _conf(uri="sqlite:////c.db", warehouse=warehouse)


def test_no_store_for_a_local_warehouse() -> None:
    assert "io-impl" not in _conf(uri="sqlite:////c.db", warehouse="/data/w")


def test_virtual_addressing_is_kept() -> None:
    conf = _conf(uri="https://rest", s3__endpoint="https://store", **{"s3.force-virtual-addressing": "true"})
    assert "s3.path-style-access" not in conf


def test_what_only_python_understands_stays_there() -> None:
    conf = _conf(uri="sqlite:////c.db", **{"py-io-impl": "x", "init_catalog_tables": "false", "type": "sql"})
    assert conf["type"] == "jdbc"
    assert not {"py-io-impl", "init_catalog_tables"} & conf.keys()
