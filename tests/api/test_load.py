"""`lake.load_files`: tables of files, in one commit; what fails leaves nothing."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.expressions.literals import literal
from pyiceberg.schema import Schema
from pyiceberg.transforms import parse_transform
from pyiceberg.types import IcebergType, IntegerType, ListType, NestedField, StringType, StructType

import rookery
from rookery.api.lake import Lake
from rookery.model import CatalogError, MissingTableError, UsageError
from rookery.tables.iceberg import data_writer, iceberg
from rookery.tables.iceberg.partition_values import transformed
from rookery.tables.iceberg.schema import schema_of
from tests.lakehouse import sqlite_options


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """An empty catalog without namespaces."""
    (tmp_path / "lake").mkdir()
    return rookery.connect(**sqlite_options(tmp_path / "lake"))


@pytest.fixture
def events(tmp_path: Path) -> Path:
    """Rows of three days and two countries, in no order; some have no country."""
    rows = [
        {
            "id": number,
            "ts": dt.datetime(2024, 1, 1 + number % 3, number % 24),
            "country": ("NL", "BE", None)[number % 3 - 1],
            "amount": Decimal(number) / 4,
        }
        for number in range(1000)
    ]
    random.Random(3).shuffle(rows)
    path = tmp_path / "events.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=100)
    return path


def data_files(folder: Path) -> list[Path]:
    return sorted((folder / "lake").rglob("*.parquet"))


def files_of(lake: Lake, name: str) -> list[Path]:
    table, _ = lake.open(name)
    snapshot = table.snapshot()
    assert snapshot is not None
    listed = table.read_files(table.file_lists(snapshot))
    return [Path(path.removeprefix("file://")) for path in listed["path"].to_pylist()]


def csv(folder: Path, text: str, name: str = "a.csv") -> Path:
    (folder / name).write_text(text)
    return folder / name


def test_a_table_of_a_file(lake: Lake, events: Path) -> None:
    report = lake.load_files(events, "nyc.events")
    assert (report.rows, report.inputs, report.created) == (1000, 1, True)
    assert [(column.name, column.type) for column in report.columns] == [
        ("id", "long"),
        ("ts", "timestamp"),
        ("country", "string"),
        ("amount", "decimal(5, 2)"),
    ]
    read = rookery.table("nyc.events", lake).read()
    assert sorted(read.to_pylist(), key=lambda row: row["id"]) == sorted(
        pq.read_table(events).to_pylist(), key=lambda row: row["id"]
    )
    assert len(lake.load("nyc.events").metadata.snapshots) == 1
    assert "1,000 rows in 1 file" in str(report)


@pytest.mark.parametrize(
    ("partition", "names", "files"),
    [
        (["day(ts)"], ["ts_day"], 3),
        ("country", ["country"], 3),
        (["bucket(4, id)", "truncate(1, country)"], ["id_bucket", "country_trunc"], 12),
        (["days(ts), country"], ["ts_day", "country"], 3),
    ],
)
def test_partitions(
    partition: str | list[str], names: list[str], files: int, lake: Lake, events: Path
) -> None:
    report = lake.load_files(events, "db.t", partition=partition)
    assert report.files == files
    table = lake.load("db.t")
    assert [field.name for field in table.spec().fields] == names
    handle = rookery.table("db.t", lake)
    assert handle.count("ts >= TIMESTAMP_NTZ '2024-01-02' AND ts < TIMESTAMP_NTZ '2024-01-03'") == 333
    assert handle.count("country = 'NL'") == 333
    assert handle.count("id = 77") == 1
    assert table.scan(row_filter="id == 77").to_arrow().num_rows == 1  # PyIceberg's own pruning


VALUES: Sequence[tuple[str, Any, Sequence[Any]]] = (
    ("int", pa.int32(), [0, -1, 34, 2**31 - 1, None]),
    ("long", pa.int64(), [0, -1, 34, 2**63 - 1, -(2**62), None]),
    ("date", pa.date32(), [dt.date(1969, 12, 31), dt.date(2017, 11, 16), dt.date(1900, 2, 28), None]),
    (
        "timestamp",
        pa.timestamp("us"),
        [dt.datetime(1969, 12, 31, 23, 59), dt.datetime(2017, 11, 16, 22, 31), None],
    ),
    ("string", pa.large_string(), ["iceberg", "", "ééé", None]),
    ("binary", pa.large_binary(), [b"\x00\x01\x02\x03", b"", None]),
    ("decimal(9, 2)", pa.decimal128(9, 2), [Decimal("14.20"), Decimal("-0.01"), None]),
    ("uuid", pa.uuid(), [UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7"), None]),
)
TRANSFORMS = {
    "int": ("bucket[16]", "truncate[10]"),
    "long": ("bucket[7]", "truncate[10]"),
    "date": ("bucket[16]", "year", "month", "day"),
    "timestamp": ("bucket[16]", "year", "month", "day", "hour"),
    "string": ("bucket[16]", "truncate[2]"),
    "binary": ("bucket[16]", "truncate[2]"),
    "decimal(9, 2)": ("bucket[16]", "truncate[50]"),
    "uuid": ("bucket[16]",),
}


@pytest.mark.parametrize(("kind", "arrow", "values"), VALUES, ids=lambda each: str(each)[:12])
def test_transforms_are_those_of_iceberg(kind: str, arrow: pa.DataType, values: Sequence[Any]) -> None:
    """By PyIceberg's transforms of single values."""
    iceberg_type = IcebergType.model_validate(kind)
    column = pa.array(values, arrow)
    column = column.storage if isinstance(column, pa.ExtensionArray) else column
    for name in TRANSFORMS[kind]:
        transform = parse_transform(name)
        apply = transform.transform(iceberg_type)
        expected = [
            None if value is None else apply(literal(value).to(iceberg_type).value) for value in values
        ]
        assert transformed(column, transform, iceberg_type).to_pylist() == expected, name


def test_sorted(lake: Lake, events: Path) -> None:
    report = lake.load_files(events, "db.t", sort="country desc, id")
    assert report.sorted_within == "table"
    rows = [
        (row["country"], row["id"])
        for path in files_of(lake, "db.t")
        for row in pq.read_table(path).to_pylist()
    ]
    assert rows == sorted(rows, key=lambda row: (row[0] is None, -ord((row[0] or "A")[0]), row[1]))
    order = lake.load("db.t").sort_order()
    assert [field.direction.value for field in order.fields] == ["desc", "asc"]


def test_memory_is_bounded(lake: Lake, events: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that do not fit are written in several files, each of which is sorted."""
    monkeypatch.setattr(
        data_writer.DataWriter.__init__, "__kwdefaults__", {"file_memory": 8000, "sort_memory": 8000}
    )
    report = lake.load_files(events, "db.t", sort="id", partition="country")
    assert report.files > 3
    assert report.sorted_within == "files"
    for path in files_of(lake, "db.t"):
        ids = pq.read_table(path).column("id").to_pylist()
        assert ids == sorted(ids)
    assert rookery.table("db.t", lake).count() == 1000


class TestNothingIsLeft:
    def test_of_a_bad_row(self, lake: Lake, tmp_path: Path) -> None:
        path = csv(tmp_path, "a,b\n1,x\n2\n")
        with pytest.raises(UsageError, match=r"a\.csv, line 3"):
            lake.load_files(path, "new.t")
        self.nothing(lake, tmp_path)

    def test_of_a_value_that_is_refused_late(
        self, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(data_writer, "_SPLIT_MEMORY", 1000)
        monkeypatch.setattr(
            data_writer.DataWriter.__init__, "__kwdefaults__", {"file_memory": 1000, "sort_memory": 0}
        )
        times = pa.array([1_000] * 100_000 + [1], pa.timestamp("ns"))
        pq.write_table(pa.table({"t": times}), tmp_path / "a.parquet")
        written: list[str] = []
        new_output = data_writer.RecordingIO.new_output

        def recording(self: data_writer.RecordingIO, location: str) -> Any:
            written.append(location)
            return new_output(self, location)

        monkeypatch.setattr(data_writer.RecordingIO, "new_output", recording)
        with pytest.raises(UsageError, match="column t cannot be stored"):
            lake.load_files(tmp_path / "a.parquet", "new.t")
        assert written
        self.nothing(lake, tmp_path)

    def test_of_a_commit_that_is_refused(
        self, lake: Lake, events: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        catalog = lake.catalog

        def refuse(*_: object, **__: object) -> None:
            raise CommitFailedException("somebody else was first")

        monkeypatch.setattr(catalog, "commit_table", refuse)
        with pytest.raises(CatalogError, match="somebody else was first"):
            lake.load_files(events, "new.t")
        self.nothing(lake, tmp_path)

    def test_not_even_of_an_interrupt(
        self, lake: Lake, events: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def interrupt(*_: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(data_writer.DataWriter, "finish", interrupt)
        with pytest.raises(KeyboardInterrupt):
            lake.load_files(events, "new.t")
        self.nothing(lake, tmp_path)

    def nothing(self, lake: Lake, folder: Path) -> None:
        assert lake.catalog.list_namespaces() == []
        assert list(lake.tables()) == []
        assert data_files(folder) == []
        assert list((folder / "lake").rglob("*.avro")) == []


def test_a_commit_of_unknown_outcome_keeps_the_files(
    lake: Lake, events: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit may have succeeded: deleting its files would lose rows."""
    commit = lake.catalog.commit_table

    def lose_the_answer(*arguments: Any, **named: Any) -> None:
        commit(*arguments, **named)
        raise ConnectionError("the connection was closed")

    monkeypatch.setattr(lake.catalog, "commit_table", lose_the_answer)
    with pytest.raises(CatalogError, match="may have succeeded") as caught:
        lake.load_files(events, "db.t")
    assert caught.value.hint
    assert len(data_files(tmp_path)) == 1
    assert rookery.table("db.t", lake).count() == 1000


def test_a_table_that_cannot_be_loaded_after_its_commit(
    lake: Lake, events: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody should load the same rows once more."""
    commit = lake.catalog.commit_table

    def disconnect(*arguments: Any) -> None:
        raise ConnectionError("the connection was closed")

    with monkeypatch.context() as patch:

        def commit_and_disconnect(*arguments: Any) -> Any:
            done = commit(*arguments)
            patch.setattr(lake.catalog, "load_table", disconnect)
            return done

        patch.setattr(lake.catalog, "commit_table", commit_and_disconnect)
        with pytest.raises(CatalogError, match="the rows were committed") as caught:
            lake.load_files(events, "db.t")
    assert "the connection was closed" in caught.value.message
    assert caught.value.hint == "do not load the files again"
    assert rookery.table("db.t", lake).count() == 1000


class TestAppend:
    @pytest.fixture(autouse=True)
    def table(self, lake: Lake, tmp_path: Path) -> None:
        lake.load_files(
            csv(tmp_path, "id,zip,day\n1,01234,2024-01-01\n", "first.csv"), "db.t", partition="day(day)"
        )
        with lake.load("db.t").update_schema() as update:
            update.add_column("code", StringType())

    def test_rows(self, lake: Lake, tmp_path: Path) -> None:
        report = lake.load_files(csv(tmp_path, "day,id,code\n2024-01-02,2,007\n"), "db.t", append=True)
        assert (report.rows, report.created) == (1, False)
        rows = sorted(rookery.table("db.t", lake).read().to_pylist(), key=lambda row: row["id"])
        assert rows[1] == {"id": 2, "zip": None, "day": dt.date(2024, 1, 2), "code": "007"}
        assert "zip is not in the files" in str(report)

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("id,town\n1,x\n", "has no column 'town'"),
            ("id\nmany\n", "line 2: column id"),
        ],
    )
    def test_columns_that_differ(self, text: str, words: str, lake: Lake, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match=words):
            lake.load_files(csv(tmp_path, text), "db.t", append=True)
        assert rookery.table("db.t", lake).count() == 1

    def test_texts_in_the_types_of_the_table(self, lake: Lake, tmp_path: Path) -> None:
        (tmp_path / "a.jsonl").write_text('{"id": 3, "day": "2024-01-03", "code": "2024-01-04"}')
        lake.load_files(tmp_path / "a.jsonl", "db.t", append=True)
        row = {"id": 3, "zip": None, "day": dt.date(2024, 1, 3), "code": "2024-01-04"}
        assert rookery.table("db.t", lake).read("id = 3").to_pylist() == [row]

    def test_a_text_that_is_no_date(self, lake: Lake, tmp_path: Path) -> None:
        days = ["2024-01-03", "2024-01-04", "soon", "2024-01-05"]
        (tmp_path / "a.jsonl").write_text("\n\n".join(f'{{"day": "{day}"}}' for day in days))
        with pytest.raises(UsageError, match=r"a\.jsonl, line 5: column day: .*soon"):
            lake.load_files(tmp_path / "a.jsonl", "db.t", append=True)

    def test_types_that_differ(self, lake: Lake, tmp_path: Path) -> None:
        pq.write_table(pa.table({"id": ["1"]}), tmp_path / "a.parquet")
        with pytest.raises(UsageError, match="column id is large_string in the files, and int64"):
            lake.load_files(tmp_path / "a.parquet", "db.t", append=True)

    def test_no_partition(self, lake: Lake, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="those of the table"):
            lake.load_files(csv(tmp_path, "id\n1\n"), "db.t", append=True, partition="id")

    def test_an_existing_table_is_not_replaced(self, lake: Lake, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match=r"there is a table lake\.db\.t already") as caught:
            lake.load_files(csv(tmp_path, "id\n1\n"), "db.t")
        assert "--append" in str(caught.value.hint)
        assert rookery.table("db.t", lake).count() == 1

    def test_a_missing_table(self, lake: Lake, tmp_path: Path) -> None:
        with pytest.raises(MissingTableError, match="no table"):
            lake.load_files(csv(tmp_path, "id\n1\n"), "db.u", append=True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"partition": "day(town)"}, "no column 'town'"),
        ({"partition": "day(id)"}, "id is long"),
        ({"partition": "hash(id)"}, "does not partition"),
        ({"partition": "bucket(id)"}, "does not partition"),
        ({"partition": ["day(ts)", "hour(ts)"]}, "only once"),
        ({"sort": "town desc"}, "no column 'town'"),
    ],
)
def test_layouts_that_are_refused(options: dict[str, Any], words: str, lake: Lake, events: Path) -> None:
    with pytest.raises(UsageError, match=words.replace("(", r"\(")) as caught:
        lake.load_files(events, "new.t", **options)
    assert caught.value.hint
    assert lake.catalog.list_namespaces() == []


def test_no_rows(lake: Lake, tmp_path: Path) -> None:
    report = lake.load_files(csv(tmp_path, "a,b\n"), "db.t")
    assert (report.rows, report.files, report.snapshot_id) == (0, 0, None)
    assert rookery.table("db.t", lake).read().num_rows == 0


def test_names_that_files_do_not_like(lake: Lake, tmp_path: Path) -> None:
    path = csv(tmp_path, "odd name,a.b,ünï\n1,2,3\n")
    lake.load_files(path, "a.`odd t`", partition="odd name")
    assert rookery.table("a.`odd t`", lake).read().to_pylist() == [{"odd name": 1, "a.b": 2, "ünï": 3}]


def test_lists_and_maps_of_structs_that_are_null(lake: Lake, tmp_path: Path) -> None:
    structs = pa.struct([("odd name", pa.int64())])
    columns = {
        "l": pa.array([[{"odd name": 1}], None, [], [None]], pa.list_(structs)),
        "m": pa.array([[("k", {"odd name": 1})], None, [], [("k", None)]], pa.map_(pa.string(), structs)),
    }
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    lake.load_files(tmp_path / "a.parquet", "db.t")
    assert rookery.table("db.t", lake).read().to_pylist() == pa.table(columns).to_pylist()


def test_required_parts(lake: Lake, tmp_path: Path) -> None:
    """Of a struct that may be null, and of a list."""
    lake.catalog.create_namespace("db")
    part = NestedField(2, "x", IntegerType(), required=True)
    element = ListType(4, IntegerType(), element_required=True)
    schema = Schema(NestedField(1, "s", StructType(part)), NestedField(3, "l", element))
    lake.catalog.create_table("db.t", schema)
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"l": pa.array([[1], None], pa.list_(pa.int32()))}), path)
    lake.load_files(path, "db.t", append=True)
    assert rookery.table("db.t", lake).read().to_pylist() == [{"s": None, "l": [1]}, {"s": None, "l": None}]
    pq.write_table(pa.table({"l": pa.array([[1, None]], pa.list_(pa.int32()))}), path)
    with pytest.raises(UsageError, match="an element that is required"):
        lake.load_files(path, "db.t", append=True)


def test_a_format_that_is_not_written(lake: Lake, tmp_path: Path) -> None:
    lake.load_files(csv(tmp_path, "a\n1\n"), "db.t")
    with lake.load("db.t").transaction() as change:
        change.set_properties({"write.format.default": "orc"})
    with pytest.raises(UsageError, match="as orc"):
        lake.load_files(csv(tmp_path, "a\n1\n"), "db.t", append=True)


def test_nested_columns(lake: Lake, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"a": {"b": [1, 2]}, "c": null}\n{"a": {"b": []}}\n')
    report = lake.load_files(tmp_path / "a.jsonl", "db.t")
    assert schema_of(iceberg(lake.open("db.t")[0]).table.schema()).columns[0].name == "a"
    assert rookery.table("db.t", lake).read(columns=["a"]).to_pylist() == [
        {"a": {"b": [1, 2]}},
        {"a": {"b": []}},
    ]
    assert "c has no values" in str(report)
