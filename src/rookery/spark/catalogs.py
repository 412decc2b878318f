"""From a PyIceberg catalog to the Spark catalog of the same name: the same properties, in Java's words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from pyiceberg.catalog import CatalogType

from rookery.model import CatalogError
from rookery.tables import CatalogConfig, redact, sqlite_path

ICEBERG_VERSION = "1.12.0"
ICEBERG_RUNTIME = f"org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:{ICEBERG_VERSION}"
ICEBERG_AWS = f"org.apache.iceberg:iceberg-aws-bundle:{ICEBERG_VERSION}"
ICEBERG_GCP = f"org.apache.iceberg:iceberg-gcp-bundle:{ICEBERG_VERSION}"
ICEBERG_AZURE = f"org.apache.iceberg:iceberg-azure-bundle:{ICEBERG_VERSION}"
SQLITE_JDBC = "org.xerial:sqlite-jdbc:3.50.3.0"
POSTGRESQL_JDBC = "org.postgresql:postgresql:42.7.7"
MYSQL_JDBC = "com.mysql:mysql-connector-j:9.3.0"

_PYTHON_ONLY = {"type", "py-io-impl", "py-catalog-impl", "init_catalog_tables", "echo", "pool_pre_ping"}
_STORES = {
    "s3": ("org.apache.iceberg.aws.s3.S3FileIO", ICEBERG_AWS),
    "s3a": ("org.apache.iceberg.aws.s3.S3FileIO", ICEBERG_AWS),
    "gs": ("org.apache.iceberg.gcp.gcs.GCSFileIO", ICEBERG_GCP),
    "abfs": ("org.apache.iceberg.azure.adlsv2.ADLSFileIO", ICEBERG_AZURE),
    "abfss": ("org.apache.iceberg.azure.adlsv2.ADLSFileIO", ICEBERG_AZURE),
}


@dataclass(frozen=True, slots=True)
class SparkCatalog:
    """What a session must be told to know a catalog."""

    conf: Mapping[str, str]
    packages: tuple[str, ...]


def spark_catalog(config: CatalogConfig) -> SparkCatalog:
    """Return Spark's configuration for the catalog *config*, and the jars that it needs."""
    kind = config.type
    try:
        translate = _KINDS[kind]
    except KeyError:
        raise CatalogError(
            f"catalog '{config.name}' is of the kind {kind.value}, which Spark is not configured for here",
            hint=f"use one of {', '.join(known.value for known in _KINDS)}",
        ) from None
    specific, packages = translate(config.properties)
    store, store_packages = _store(config.properties)
    carried = {key: value for key, value in config.properties.items() if key not in _PYTHON_ONLY}
    prefix = f"spark.sql.catalog.{config.name}"
    conf = {prefix: "org.apache.iceberg.spark.SparkCatalog"}
    conf |= {f"{prefix}.{key}": value for key, value in (carried | store | specific).items()}
    return SparkCatalog(conf, tuple(dict.fromkeys((ICEBERG_RUNTIME, *packages, *store_packages))))


def _sql(properties: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    uri = properties.get("uri", "")
    path = sqlite_path(uri)
    common = {"type": "jdbc", "jdbc.schema-version": "V1"}
    if path is not None:
        # Writers queue up behind SQLite's one lock: wait for it rather than fail.
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


_KINDS: Mapping[CatalogType, Callable[[Mapping[str, str]], tuple[dict[str, str], tuple[str, ...]]]] = {
    CatalogType.SQL: _sql,
    CatalogType.REST: _plain("rest"),
    CatalogType.HIVE: _plain("hive"),
    CatalogType.GLUE: _glue,
}


def _store(properties: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Choose Java's FileIO by the warehouse's scheme, or by the credentials that are given."""
    warehouse = properties.get("warehouse", "")
    scheme = warehouse.partition("://")[0] if "://" in warehouse else ""
    if not scheme and any(key.startswith("s3.") for key in properties):
        scheme = "s3"
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
