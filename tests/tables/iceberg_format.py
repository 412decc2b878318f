"""Tables of Iceberg for the suite that every format must pass: written by Spark, deletes merged on read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rookery.api.lake import Lake
from rookery.tables import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SQL = {"long": "bigint", "string": "string"}


class IcebergWriter:
    """Writes to a table of Iceberg."""

    def __init__(
        self, spark: SparkSession, lake: Lake, name: str, columns: Mapping[str, str], partition: str | None
    ) -> None:
        self._spark = spark
        self._lake = lake
        self.name = name
        listed = ", ".join(f"{column} {_SQL[kind]}" for column, kind in columns.items())
        parts = f"PARTITIONED BY ({partition})" if partition else ""
        spark.sql(
            f"CREATE TABLE {name} ({listed}) USING iceberg {parts} TBLPROPERTIES "
            "('format-version'='3', 'write.delete.mode'='merge-on-read')"
        )

    def open(self) -> Table:
        return self._lake.open(self.name)[0]

    def drop(self) -> None:
        self._spark.sql(f"DROP TABLE {self.name}")

    def tag(self, name: str) -> None:
        self._spark.sql(f"ALTER TABLE {self.name} CREATE TAG {name}")

    def branch(self, name: str) -> None:
        self._spark.sql(f"ALTER TABLE {self.name} CREATE BRANCH {name}")

    def sort_by(self, column: str) -> None:
        self._spark.sql(f"ALTER TABLE {self.name} WRITE ORDERED BY {column}")

    def aim_for(self, file_size: int) -> None:
        target = f"'write.target-file-size-bytes'='{file_size}'"
        self._spark.sql(f"ALTER TABLE {self.name} SET TBLPROPERTIES ({target})")

    def add_column(self, name: str, kind: str) -> None:
        self._spark.sql(f"ALTER TABLE {self.name} ADD COLUMN {name} {_SQL[kind]}")

    def rename_column(self, old: str, new: str) -> None:
        self._spark.sql(f"ALTER TABLE {self.name} RENAME COLUMN {old} TO {new}")

    def append(self, rows: Sequence[Mapping[str, Any]]) -> None:
        schema = self._spark.table(self.name).schema
        values = [[row.get(name) for name in schema.names] for row in rows]
        self._spark.createDataFrame(values, schema).coalesce(1).writeTo(self.name).append()

    def delete_rows(self, ids: set[int]) -> None:
        self._spark.sql(f"DELETE FROM {self.name} WHERE id IN ({', '.join(map(str, sorted(ids)))})")

    def remove_file_of(self, row_id: int) -> None:
        """Delete all rows between the bounds of the file: Iceberg then drops it, and writes no deletes."""
        (found,) = self._spark.sql(
            f"SELECT min(id) AS low, max(id) AS high FROM {self.name} WHERE _file IN "
            f"(SELECT _file FROM {self.name} WHERE id = {row_id})"
        ).collect()
        self._spark.sql(f"DELETE FROM {self.name} WHERE id BETWEEN {found.low} AND {found.high}")
