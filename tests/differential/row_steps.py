"""Steps that add and remove rows, by Spark, by Java, by PyIceberg and by another session."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from tests.differential.columns import Column, Form, for_spark, paths, quoted, rows
from tests.differential.history import History
from tests.differential.predicates import Predicates, exactly
from tests.prune import typed


def new_rows(history: History, form: Form = for_spark) -> pa.Table:
    """Partitions make a file of almost every row: few rows then, as many files cost the most time."""
    counts = (1, 3, 8) if history.parts else (1, 5, 20, 60, 120)
    return rows(history.rng, history.columns, history.rng.choice(counts), form=form)


def load(history: History) -> None:
    """A first load, so that most predicates on the key have files to skip."""
    if history.parts:
        append(history)
        return
    table = rows(history.rng, history.columns, history.rng.choice((20, 60, 120)), form=for_spark)
    files = history.rng.choice((1, 4, 6, 8))
    history.note(f"load {table.num_rows} rows, {files} ranges of k")
    frame = history.world.spark.createDataFrame(table)
    frame.repartitionByRange(files, "k").writeTo(history.name).append()
    history.committed()


def append(history: History) -> None:
    _append(history, history.world.spark)


def _append(history: History, spark: SparkSession) -> None:
    table = new_rows(history)
    files = history.rng.choice((1, 1, 2, 3))
    history.note(f"append {table.num_rows} rows, {files} tasks")
    frame = spark.createDataFrame(table)
    frame = frame.coalesce(1) if files == 1 else frame.repartition(files)
    frame.writeTo(history.name).append()
    history.committed()


def delete(history: History, branch: str = "") -> None:
    asked = Predicates(history.rng, history.columns).make(1)
    _change(history, f"DELETE FROM {history.name}{branch} WHERE {asked.sql}", branch)


def update(history: History, branch: str = "") -> None:
    """Change a column where something is so."""
    column, value = _assigned(history)
    asked = Predicates(history.rng, history.columns).make(1)
    text = f"UPDATE {history.name}{branch} SET {quoted(column.name)} = {value} WHERE {asked.sql}"
    _change(history, text, branch)


def merge(history: History, branch: str = "") -> None:
    """Merge rows that are new, or some of the table's own; what becomes of either depends on the clauses."""
    rng = history.rng
    asked = Predicates(rng, history.columns).make(1)
    column, value = _assigned(history)
    if rng.random() < 0.6:
        table, source = new_rows(history), "merged"
        history.note(f"{source}: {table.num_rows} rows, one of each k")
        frame = history.world.spark.createDataFrame(table).dropDuplicates(["k"])
        frame.createOrReplaceTempView(source)
        clauses = [
            "WHEN MATCHED THEN UPDATE SET *",
            f"WHEN MATCHED AND t.{quoted(column.name)} = {value} THEN DELETE",
            "WHEN NOT MATCHED THEN INSERT *",
            "WHEN NOT MATCHED AND u.k IS NOT NULL THEN INSERT *",
            f"WHEN NOT MATCHED BY SOURCE AND t.{quoted(column.name)} = {value} THEN DELETE",
            f"WHEN NOT MATCHED BY SOURCE THEN UPDATE SET {quoted(column.name)} = {value}",
        ]
        said = " ".join(rng.choice(clauses[place : place + 2]) for place in (0, 2, 4) if rng.random() < 0.6)
    else:
        source = f"(SELECT DISTINCT k FROM {history.name}{branch} WHERE {asked.sql})"
        said = f"WHEN MATCHED AND t.{quoted(column.name)} = {value} THEN DELETE "
        said += f"WHEN MATCHED THEN UPDATE SET {quoted(column.name)} = {value}"
    on = rng.choice(("t.k = u.k", "t.k = u.k", "t.k <=> u.k"))
    if said:
        _change(history, f"MERGE INTO {history.name}{branch} AS t USING {source} AS u ON {on} {said}", branch)


def _assigned(history: History) -> tuple[Column, str]:
    """A column and one of its values."""
    plain = [column for column in history.columns if column.is_leaf and column.kind != "boolean"]
    column = history.rng.choice(plain)
    return column, exactly(column.kind, history.rng.choice(column.values))


def _change(history: History, text: str, branch: str) -> None:
    """Run a statement that may remove rows, by leaving files out or by deletes: as the table's modes say."""
    if history.sql(text, may_fail=True):
        history.removed = True
        if not branch:
            history.committed()


def delete_equal(history: History) -> None:
    """Deletes by equality, as Flink writes them: the values in a Parquet file, committed by Java."""
    rng = history.rng
    flat = [path for path in paths(history.columns) if path.column.kind not in ("float", "double")]
    flat = [path for path in flat if len(path.names) == 1 and "." not in path.names[0]]
    if not flat or history.format_version == 1:
        return
    chosen = rng.sample(flat, min(len(flat), rng.choice((1, 1, 2))))
    count = rng.randrange(1, 5)
    values = [[_some(history, path.column) for _ in range(count)] for path in chosen]
    place = rng.random()
    history.note(f"delete where {[path.names[0] for path in chosen]} are {list(zip(*values, strict=True))}")
    loaded = history.world.lake.load(history.name)
    arrays, fields = [], []
    for path, given in zip(chosen, values, strict=True):
        array = typed.stored(path.column.kind, given)
        number = str(loaded.schema().find_field(path.names[0]).field_id)
        arrays.append(array)
        fields.append(pa.field(path.names[0], array.type, metadata={"PARQUET:field_id": number}))
    file = history.folder() / f"data/equality-{len(history.steps)}.parquet"
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_arrays(arrays, schema=pa.schema(fields)), file)
    if _commit_equal(history, str(file), [path.names[0] for path in chosen], count, place):
        history.removed = True
        history.committed()


def _some(history: History, column: Column) -> Any:
    return None if history.rng.random() < 0.1 else history.rng.choice(column.values)


def _commit_equal(history: History, file: str, names: list[str], count: int, place: float) -> bool:
    """Add the file to a partition of the current spec, or to the whole table if that has none."""
    table = history.world.java.table(history.name)
    table.refresh()
    gateway: Any = history.world.spark.sparkContext._gateway
    jvm: Any = history.world.spark._jvm
    ids = gateway.new_array(jvm.int, len(names))
    for position, name in enumerate(names):
        ids[position] = table.schema().findField(name).fieldId()
    builder = jvm.org.apache.iceberg.FileMetadata.deleteFileBuilder(table.spec())
    if table.spec().isPartitioned():
        copy_of = jvm.org.apache.iceberg.relocated.com.google.common.collect.ImmutableList.copyOf
        found = [task.file() for task in copy_of(table.newScan().planFiles())]
        found = [each for each in found if each.specId() == table.spec().specId()]
        if not found:
            return False
        found.sort(key=lambda each: str(table.spec().partitionToPath(each.partition())))
        builder = builder.withPartition(found[int(place * len(found))].partition())
    built = (
        builder.ofEqualityDeletes(ids)
        .withFormat("parquet")
        .withPath(file)
        .withFileSizeInBytes(FilePath(file).stat().st_size)
        .withRecordCount(count)
        .build()
    )
    table.newRowDelta().addDeletes(built).commit()
    history.changed()
    return True


def foreign_commit(history: History) -> None:
    """Another engine commits, unseen by a session that has just read the table."""
    world, rng = history.world, history.rng
    world.spark.table(history.name).schema  # noqa: B018  # it knows the table as it is now
    choice = rng.random()
    if choice < 0.4 and history.format_version < 3:
        _append_by_pyiceberg(history)
    elif choice < 0.7:
        history.note(f"by another session, to {history.name}:")
        _append(history, world.other)
    else:
        asked = Predicates(rng, history.columns).make(1)
        history.note(f"by another session: DELETE FROM {history.name} WHERE {asked.sql}")
        try:
            world.other.sql(f"DELETE FROM {history.name} WHERE {asked.sql}")
        except Exception as error:  # noqa: BLE001  # a predicate that Spark refuses
            history.refused(error)
            return
        history.removed = True
        history.committed()


def _append_by_pyiceberg(history: History) -> None:
    table = new_rows(history, typed.stored)
    history.note(f"append {table.num_rows} rows to {history.name} by PyIceberg")
    try:
        history.world.lake.load(history.name).append(table)
    except Exception as error:  # noqa: BLE001  # transforms and types that PyIceberg does not write
        history.refused(error)
        return
    history.committed()
