"""Addresses and types of catalogs as Spark, JDBC and people write them, in the words of PyIceberg.

What has the same meaning is translated. What PyIceberg cannot open is answered with what to use instead.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode

_TYPES = {"jdbc": "sql", "thrift": "hive", "metastore": "hive"}  # as others name them
_CLASSES = {  # of Iceberg's Java library, in the property catalog-impl
    "JdbcCatalog": "sql",
    "RESTCatalog": "rest",
    "HiveCatalog": "hive",
    "GlueCatalog": "glue",
    "HadoopCatalog": "hadoop",
    "NessieCatalog": "nessie",
}
_SQLITE_MAGIC = b"SQLite format 3\x00"
_SQLITE_FILE = re.compile(r".*\.(db|sqlite|sqlite3)", re.I)
_METADATA = ".metadata.json"
_SERVER = re.compile(r"jdbc:(postgresql|mysql|mariadb)://([^/?]*)(/[^?]*)?(?:\?(.*))?")
_DRIVERS = {"postgresql": "postgresql", "mysql": "mysql+pymysql", "mariadb": "mysql+pymysql"}
_STORES = ("s3:", "s3a:", "gs:", "abfs:", "abfss:", "hdfs:", "wasb:", "wasbs:")
WORDS = (
    "use sqlite:////path/catalog.db, postgresql://host/database, https://host/path of a REST server, or "
    "thrift://host:9083 of a Hive metastore"
)
_NO_HADOOP = (
    "name a table by its metadata file, as …/db/t/metadata/v3.metadata.json; or use a session that has the "
    "catalog: rookery.connect('NAME', spark=spark)"
)


def translated(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a catalog with an address and a type that PyIceberg knows, where there are.

    >>> translated({"type": "jdbc", "uri": "jdbc:sqlite:/data/c.db?busy_timeout=1"})
    {'type': 'sql', 'uri': 'sqlite:////data/c.db'}
    """
    result = dict(properties)
    kind = result.get("type", "").lower()
    implementation = result.get("catalog-impl", "").rpartition(".")[2]
    if not kind and implementation in _CLASSES:
        result["type"] = _CLASSES[implementation]
    elif kind in _TYPES:
        result["type"] = _TYPES[kind]
    uri = result.get("uri", "")
    if (address := _address(uri, result)) is not None and address != uri:
        result["uri"] = address
        result.setdefault("type", "sql")
    return result


def _address(uri: str, properties: Mapping[str, str]) -> str | None:
    """The address for SQLAlchemy; None for one that is not a database's, or cannot be translated."""
    if uri.startswith("postgres://"):
        return "postgresql" + uri.removeprefix("postgres")
    if uri.startswith("jdbc:sqlite:"):
        path = uri.removeprefix("jdbc:sqlite:").partition("?")[0]
        return _sqlite(path.removeprefix("//") if path.startswith("///") else path)
    if match := _SERVER.fullmatch(uri):
        return _server(match, properties)
    if re.match(r"sqlite:(?!//)", uri):
        return _sqlite(uri.removeprefix("sqlite:"))
    file = _local_path(uri)
    if file is not None and (_is_sqlite(file) or (_SQLITE_FILE.fullmatch(file) and not Path(file).is_dir())):
        return _sqlite(file)
    return None


def _sqlite(path: str) -> str:
    path = path.removeprefix("file:")
    return f"sqlite:///{path}"


def _server(match: re.Match[str], properties: Mapping[str, str]) -> str | None:
    """The address of a database server, with the user and the options of its JDBC address."""
    database, host, path, query = match.groups()
    options = dict(parse_qsl(query or "", keep_blank_values=True))
    user = options.pop("user", None) or properties.get("jdbc.user")
    password = options.pop("password", None) or properties.get("jdbc.password")
    kept: dict[str, str] = {}
    for key, value in options.items():
        match key, value.lower():
            case ("currentSchema", _) if database == "postgresql":
                kept["options"] = f"-csearch_path={value}"
            case ("sslmode" | "sslrootcert" | "options", _) if database == "postgresql":
                kept[key] = value
            case ("ssl", "true" | "") if database == "postgresql":
                kept.setdefault("sslmode", "require")
            case _:
                return None  # it may choose other tables, or secure the connection
    login = ""
    if user and "@" not in host:
        login = quote(user, safe="") + (f":{quote(password, safe='')}" if password else "") + "@"
    rest = f"?{urlencode(kept, quote_via=quote)}" if kept else ""
    return f"{_DRIVERS[database]}://{login}{host}{path or ''}{rest}"


def _local_path(uri: str) -> str | None:
    """The path that an address is, plain or as `file:`."""
    if uri.startswith("file:"):
        return re.sub(r"^file:(//)?(?=/)", "", uri)
    return uri if uri and not re.match(r"[a-zA-Z][\w+.-]*:", uri) else None


def _is_sqlite(path: str) -> bool:
    try:
        with Path(path).open("rb") as file:
            return file.read(len(_SQLITE_MAGIC)) == _SQLITE_MAGIC
    except OSError:
        return False


def refusal(properties: Mapping[str, str]) -> tuple[str, str] | None:
    """Return why PyIceberg cannot open a catalog, and what to use; None if it may.

    >>> refusal({"type": "nessie"})[0]
    'PyIceberg has no catalogs of type nessie'
    >>> refusal({"type": "rest", "uri": "https://host"})
    """
    kind = properties.get("type", "").lower()
    uri, warehouse = properties.get("uri", ""), properties.get("warehouse", "")
    if kind == "hadoop":
        return "PyIceberg has no catalogs of type hadoop", _NO_HADOOP
    if kind == "nessie":
        return (
            "PyIceberg has no catalogs of type nessie",
            "use type rest and Nessie's REST address, as http://host:19120/iceberg; or "
            "rookery.connect('NAME', spark=spark)",
        )
    if kind not in ("", "sql"):
        return None
    if uri.startswith("jdbc:"):
        return "its JDBC address has options or a database that are not known here", WORDS
    if uri.endswith(_METADATA):
        return "its address is a table's metadata file", "give that file in place of the table's name"
    path = _local_path(uri)
    if path is not None and path and Path(path).is_file():
        return "its address is a file, and not one of SQLite", WORDS
    if uri.startswith(_STORES) or path or (not uri and not kind and warehouse):
        return "its address is a folder, which is a warehouse and not a catalog", _NO_HADOOP
    return None
