"""From a PyIceberg catalog to the Spark catalog of the same name: the same properties, under Java's names."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from itertools import islice
from urllib.parse import unquote, urlsplit

from rookery.io import scheme_of
from rookery.io.redaction import reason_of, redact
from rookery.model import CatalogError
from rookery.spark.versions import SCALA, SPARK
from rookery.tables.config import GLUE, HIVE, REST, SQL, CatalogConfig, sqlite_path
from rookery.tables.iceberg.catalogs import IcebergCatalog, table_locations

log = logging.getLogger(__name__)

ICEBERG_VERSION = "1.12.0"
ICEBERG_RUNTIME = f"org.apache.iceberg:iceberg-spark-runtime-{SPARK}_{SCALA}:{ICEBERG_VERSION}"
ICEBERG_AWS = f"org.apache.iceberg:iceberg-aws-bundle:{ICEBERG_VERSION}"
ICEBERG_GCP = f"org.apache.iceberg:iceberg-gcp-bundle:{ICEBERG_VERSION}"
ICEBERG_AZURE = f"org.apache.iceberg:iceberg-azure-bundle:{ICEBERG_VERSION}"
SQLITE_JDBC = "org.xerial:sqlite-jdbc:3.50.3.0"
POSTGRESQL_JDBC = "org.postgresql:postgresql:42.7.7"
MYSQL_JDBC = "com.mysql:mysql-connector-j:9.3.0"

_PYTHON_ONLY = {"type", "py-io-impl", "py-catalog-impl", "init_catalog_tables", "echo", "pool_pre_ping"}
_SETTINGS = {"s3": "s3.", "gs": "gcs.", "abfss": "adls."}  # how the settings of each store begin
_STORES = {
    "s3": ("org.apache.iceberg.aws.s3.S3FileIO", ICEBERG_AWS),
    "s3a": ("org.apache.iceberg.aws.s3.S3FileIO", ICEBERG_AWS),
    "gs": ("org.apache.iceberg.gcp.gcs.GCSFileIO", ICEBERG_GCP),
    "abfs": ("org.apache.iceberg.azure.adlsv2.ADLSFileIO", ICEBERG_AZURE),
    "abfss": ("org.apache.iceberg.azure.adlsv2.ADLSFileIO", ICEBERG_AZURE),
}


@dataclass(frozen=True, slots=True)
class SparkCatalog:
    """The settings of a session for a catalog."""

    conf: Mapping[str, str]
    packages: tuple[str, ...]


def spark_catalog(config: CatalogConfig, stores: Collection[str] = ()) -> SparkCatalog:
    """Return Spark's configuration for the catalog *config*, and the jars that it needs.

    *stores* are the schemes of stores that only the catalog's server knows, as `hidden_stores` finds them.
    """
    kind = config.type
    try:
        translate = _KINDS[kind]
    except KeyError:
        raise CatalogError(
            f"catalog '{config.name}' is of the kind {kind}, which Spark is not configured for here",
            hint=f"use one of {', '.join(_KINDS)}",
        ) from None
    specific, packages = translate(config.properties)
    store, store_packages = _store(config.properties)
    carried = {key: value for key, value in config.properties.items() if key not in _PYTHON_ONLY}
    prefix = f"spark.sql.catalog.{config.name}"
    conf = {prefix: "org.apache.iceberg.spark.SparkCatalog"}
    conf |= {f"{prefix}.{key}": value for key, value in (carried | store | specific).items()}
    bundles = [_STORES[scheme][1] for scheme in stores if scheme in _STORES]
    jars = dict.fromkeys((ICEBERG_RUNTIME, *packages, *store_packages, *bundles))
    return SparkCatalog(conf, tuple(jars))


def hidden_stores(config: CatalogConfig) -> frozenset[str]:
    """Return the schemes of the stores of a REST catalog whose own configuration names none.

    Iceberg's REST client chooses the FileIO by a file's scheme and takes the settings that the server hands
    out; but the classes for that store must be loaded when the session starts.
    """
    if config.type != REST or _store(config.properties)[1]:
        return frozenset()
    catalog = IcebergCatalog(config).client
    if packages := _store(catalog.properties)[1]:  # with the properties that the server has sent
        return frozenset(scheme for scheme, (_, package) in _STORES.items() if package in packages)
    try:
        return frozenset(filter(None, map(scheme_of, islice(table_locations(catalog), 1))))
    except Exception as error:  # noqa: BLE001  # a session is still useful for other tables
        reason = reason_of(error, config.properties)
        log.warning("the stores of catalog '%s' are not known: %s", config.name, reason)
        return frozenset()


def _sql(properties: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    uri = properties.get("uri", "")
    path = sqlite_path(uri)
    common = {"type": "jdbc", "jdbc.schema-version": "V1"}
    if path is not None:
        # Writers wait for SQLite's one lock rather than fail.
        return common | {"uri": f"jdbc:sqlite:{path}?busy_timeout=30000"}, (SQLITE_JDBC,)
    try:
        parts = urlsplit(uri)
        database = parts.scheme.split("+")[0]
        if database not in ("postgresql", "mysql") or not parts.hostname:
            raise ValueError(database)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        raise CatalogError(
            f"no JDBC address follows from {redact(uri)}", hint="use sqlite:///…, postgresql://… or mysql://…"
        ) from None
    common["uri"] = f"jdbc:{database}://{parts.hostname}{port}{parts.path}"
    if parts.username:
        common["jdbc.user"] = unquote(parts.username)
    if parts.password:
        common["jdbc.password"] = unquote(parts.password)
    return common, (POSTGRESQL_JDBC if database == "postgresql" else MYSQL_JDBC,)


def _plain(kind: str) -> Callable[[Mapping[str, str]], tuple[dict[str, str], tuple[str, ...]]]:
    def translate(properties: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
        return {"type": kind}, ()

    return translate


def _glue(properties: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    region = properties.get("glue.region")
    return {"type": "glue", **({"client.region": region} if region else {})}, (ICEBERG_AWS,)


_KINDS: Mapping[str, Callable[[Mapping[str, str]], tuple[dict[str, str], tuple[str, ...]]]] = {
    SQL: _sql,
    REST: _plain("rest"),
    HIVE: _plain("hive"),
    GLUE: _glue,
}


def _any(properties: Mapping[str, str], start: str) -> bool:
    return any(key.startswith(start) for key in properties)


def _store(properties: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Choose Java's FileIO by the warehouse's scheme, or by the credentials that are given."""
    warehouse = properties.get("warehouse", "")
    scheme = warehouse.partition("://")[0] if "://" in warehouse else ""
    if not scheme:
        scheme = next((each for each, start in _SETTINGS.items() if _any(properties, start)), "")
    if scheme not in _STORES:
        return {}, ()
    implementation, package = _STORES[scheme]
    conf = {"io-impl": implementation}
    if scheme in ("s3", "s3a"):
        if region := properties.get("s3.region") or properties.get("client.region"):
            conf["client.region"] = region
        virtual = properties.get("s3.force-virtual-addressing", "false").lower() == "true"
        if "s3.endpoint" in properties and not virtual:
            conf["s3.path-style-access"] = "true"
    return conf, (package,)
