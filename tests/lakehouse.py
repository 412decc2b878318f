"""Tables to analyse, and what is exactly true of them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rookery.api.lake import Lake, connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NewTable = Callable[..., str]


def sqlite_options(folder: Path) -> dict[str, str]:
    """The address of a SQLite catalog in a folder, and its warehouse."""
    return {"uri": f"sqlite:///{folder / 'catalog.db'}", "warehouse": f"file://{folder / 'warehouse'}"}


def sqlite_words(folder: Path) -> list[str]:
    """The same as options of a command."""
    return [word for name, value in sqlite_options(folder).items() for word in (f"--{name}", value)]


def sqlite_lake(folder: Path) -> Lake:
    """A SQLite catalog with the empty namespace db."""
    folder.mkdir(exist_ok=True)
    lake = connect(**sqlite_options(folder))
    lake.catalog.create_namespace("db")
    return lake


@contextmanager
def tables(spark: SparkSession, namespace: str | None = None) -> Iterator[NewTable]:
    """Give a maker of tables in a namespace of their own; all of it is dropped at the end."""
    namespace = namespace or f"n{uuid.uuid4().hex[:10]}"
    spark.sql(f"CREATE NAMESPACE lake.{namespace}")
    made: list[str] = []

    def make(columns: str, name: str = "", *, partitioned: str = "", **properties: object) -> str:
        name = f"lake.{namespace}.{name or 't' + uuid.uuid4().hex[:8]}"
        stated = {"format-version": "2", "write.delete.mode": "merge-on-read"}
        stated |= {key.replace("_", "-"): str(value) for key, value in properties.items()}
        said = ", ".join(f"'{key}'='{value}'" for key, value in stated.items())
        by = f"PARTITIONED BY ({partitioned})" if partitioned else ""
        spark.sql(f"CREATE TABLE {name} ({columns}) USING iceberg {by} TBLPROPERTIES ({said})")
        made.append(name)
        return name

    try:
        yield make
    finally:
        drop(spark, made)
        _catalog(spark).dropNamespace(_array(spark, [namespace]), False)


def append_ids(
    spark: SparkSession, table: str, start: int, rows: int, files: int = 1, *, columns: Sequence[str]
) -> None:
    """Append rows with successive ids in a column `id`, and with columns computed from it."""
    spark.range(start, start + rows, 1, files).selectExpr("id", *columns).writeTo(table).append()


def drop(spark: SparkSession, names: Iterable[str]) -> None:
    """Drop tables of the embedded catalog that are there, without planning a statement for each."""
    catalog, jvm = _catalog(spark), cast(Any, spark._jvm)
    for name in names:
        _, *namespace, last = name.split(".")
        catalog.dropTable(
            jvm.org.apache.spark.sql.connector.catalog.Identifier.of(_array(spark, namespace), last)
        )


def _catalog(spark: SparkSession) -> Any:
    return cast(Any, spark)._jsparkSession.sessionState().catalogManager().catalog("lake")


def _array(spark: SparkSession, texts: Sequence[str]) -> Any:
    gateway = cast(Any, spark.sparkContext)._gateway
    made = gateway.new_array(gateway.jvm.String, len(texts))
    for place, text in enumerate(texts):
        made[place] = text
    return made


def distinct(spark: SparkSession, table: str, columns: list[str], where: str = "true") -> dict[str, int]:
    """Count exactly, with Spark."""
    counts = ", ".join(f"count(DISTINCT `{column}`) AS `{column}`" for column in columns)
    row = spark.sql(f"SELECT {counts} FROM {table} WHERE {where}").first()
    assert row is not None
    return dict(row.asDict())
