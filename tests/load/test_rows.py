"""Rows of files of every format: their types, and errors that name the file and the line."""

from __future__ import annotations

import bz2
import datetime as dt
import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from rookery.load import csv_files, examine, find_inputs, json_lines
from rookery.load.types import stored_type
from rookery.model import MissingFileError, StorageError, UsageError

NS = 1_700_000_000_123_456_000


def rows_of(*files: Path | str, given: pa.Schema | None = None) -> pa.Table:
    rows = examine(find_inputs([str(file) for file in files], {}), given)
    columns = rows.columns if given is None else given
    return pa.Table.from_batches(rows.batches(columns), columns)


def types_of(*files: Path | str) -> Mapping[str, str]:
    schema = rows_of(*files).schema
    return dict(zip(schema.names, map(str, schema.types), strict=True))


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def refused(*files: Path) -> UsageError:
    with pytest.raises(UsageError) as caught:
        rows_of(*files)
    assert caught.value.hint
    return caught.value


WRITERS: Mapping[str, Any] = {
    "a.parquet": pq.write_table,
    "a.orc": lambda table, path: orc.write_table(table, path),
    "a.feather": lambda table, path: feather.write_feather(table, path),
    "a.csv": lambda table, path: pa.csv.write_csv(table, path),
    "a.csv.gz": lambda table, path: Path(path).write_bytes(gzip.compress(b"id,city\n1,Delft\n2,Gent\n")),
    "a.tsv": lambda table, path: Path(path).write_text("id\tcity\n1\tDelft\n2\tGent\n"),
    "a.jsonl": lambda table, path: Path(path).write_text("\n".join(map(json.dumps, table.to_pylist()))),
    "a.ndjson.bz2": lambda table, path: Path(path).write_bytes(
        bz2.compress("\n".join(map(json.dumps, table.to_pylist())).encode())
    ),
    "named_by_nothing": pq.write_table,
}


@pytest.mark.parametrize("name", WRITERS)
def test_formats(name: str, tmp_path: Path) -> None:
    table = pa.table({"id": pa.array([1, 2]), "city": ["Delft", "Gent"]})
    WRITERS[name](table, str(tmp_path / name))
    assert rows_of(tmp_path / name).to_pylist() == table.to_pylist()


@pytest.mark.parametrize(
    ("kind", "stored"),
    [
        (pa.uint8(), "int32"),
        (pa.uint32(), "int64"),
        (pa.uint64(), "decimal128(20, 0)"),
        (pa.int8(), "int32"),
        (pa.float16(), "float"),
        (pa.timestamp("ns"), "timestamp[us]"),
        (pa.timestamp("ms", tz="Europe/Amsterdam"), "timestamp[us, tz=UTC]"),
        (pa.dictionary(pa.int8(), pa.string()), "large_string"),
        (pa.date64(), "date32[day]"),
        (pa.time32("ms"), "time64[us]"),
        (pa.decimal256(20, 2), "decimal128(20, 2)"),
        (pa.run_end_encoded(pa.int32(), pa.int16()), "int32"),
        (pa.struct([("a", pa.uint16())]), "struct<a: int32>"),
        (pa.list_(pa.dictionary(pa.int8(), pa.string())), "large_list<element: large_string>"),
    ],
)
def test_types(kind: pa.DataType, stored: str) -> None:
    assert str(stored_type(kind, "c")) == stored


@pytest.mark.parametrize(
    "kind",
    [
        pa.duration("s"),
        pa.month_day_nano_interval(),
        pa.decimal256(50, 2),
        pa.sparse_union([pa.field("a", pa.int8())]),
        pa.struct([]),
    ],
)
def test_types_that_no_table_stores(kind: pa.DataType) -> None:
    with pytest.raises(UsageError, match=r"column place\.c: a table cannot store"):
        stored_type(pa.struct([("c", kind)]), "place")


def test_values_of_types_that_change(tmp_path: Path) -> None:
    table = pa.table(
        {
            "u": pa.array([2**64 - 1, None], pa.uint64()),
            "t": pa.array([NS, None], pa.timestamp("ns")),
            "d": pa.array(["x", None]).dictionary_encode(),
            "n": pa.array([[{"k": 250}], None], pa.list_(pa.struct([("k", pa.uint8())]))),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet")
    first = rows_of(tmp_path / "a.parquet").to_pylist()[0]
    assert (int(first["u"]), first["d"], first["n"]) == (2**64 - 1, "x", [{"k": 250}])
    assert (first["t"].microsecond, first["t"].tzinfo) == (123_456, None)


def test_nanoseconds_are_not_cut_off(tmp_path: Path) -> None:
    pq.write_table(pa.table({"t": pa.array([NS + 1], pa.timestamp("ns"))}), tmp_path / "a.parquet")
    assert "a.parquet: column t cannot be stored" in str(refused(tmp_path / "a.parquet"))


class TestCsv:
    def test_a_row_with_too_few_values(self, tmp_path: Path) -> None:
        lines = ["a,b", *(f"{number},x" for number in range(50)), "7", "8,y"]
        error = refused(write(tmp_path / "a.csv", "\n".join(lines)))
        assert "a.csv, line 52: " in str(error)

    def test_a_value_of_another_type(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(csv_files, "_BLOCK", 64)
        lines = ["a,b", '1,"two\nlines"', *(f"{number},x" for number in range(50)), "many,y"]
        error = refused(write(tmp_path / "a.csv", "\n".join(lines)))
        assert "a.csv, line 54: column a: " in str(error)
        assert "many" in str(error)

    def test_types_are_those_of_all_rows(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Later values than those of the first block make types wider."""
        monkeypatch.setattr(csv_files, "_BLOCK", 64)
        lines = [
            "n,late,day",
            *(f"{number},,2024-01-01" for number in range(50)),
            "1.5,x,2024-01-02 03:04:05",
        ]
        table = rows_of(write(tmp_path / "a.csv", "\n".join(lines)))
        assert list(map(str, table.schema.types)) == ["double", "large_string", "timestamp[us]"]
        assert table.to_pylist()[-1]["n"] == 1.5
        assert table.num_rows == 51

    def test_bytes_that_are_no_text(self, tmp_path: Path) -> None:
        (tmp_path / "a.csv").write_bytes("a,b\n1,x\n2,café\n".encode("latin-1"))
        error = str(refused(tmp_path / "a.csv"))
        assert "a.csv, line 3: column b: " in error
        assert "UTF8" in error

    def test_decimals_with_too_many_digits(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="column a cannot be stored"):
            rows_of(write(tmp_path / "a.csv", "a\n1234.5\n"), given=pa.schema([("a", pa.decimal128(5, 2))]))

    def test_delimiter(self, tmp_path: Path) -> None:
        assert types_of(write(tmp_path / "a.csv", "a;b\n1;x, y\n")) == {"a": "int64", "b": "large_string"}
        assert types_of(write(tmp_path / "b.csv", '"a, b, c";d\n1;2\n')) == {"a, b, c": "int64", "d": "int64"}

    def test_no_rows_and_no_bytes(self, tmp_path: Path) -> None:
        assert rows_of(write(tmp_path / "a.csv", "a,b\n")).num_rows == 0
        assert "empty.csv" in str(refused(write(tmp_path / "empty.csv", "")))

    def test_times(self, tmp_path: Path) -> None:
        text = "local,utc\n2024-01-01 10:00:00,2024-01-01T10:00:00Z\n"
        kinds = types_of(write(tmp_path / "a.csv", text))
        assert kinds == {"local": "timestamp[us]", "utc": "timestamp[us, tz=UTC]"}

    @pytest.mark.parametrize(("header", "words"), [("a,a", "two columns 'a'"), ("a,", "has no name")])
    def test_names(self, header: str, words: str, tmp_path: Path) -> None:
        assert words in str(refused(write(tmp_path / "a.csv", f"{header}\n1,2\n")))


class TestJson:
    def test_a_line_that_is_not_json(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(json_lines, "_CHUNK", 64)
        lines = [json.dumps({"a": number}) for number in range(50)]
        lines[33] = '{"a": '
        assert "a.jsonl, line 34: " in str(refused(write(tmp_path / "a.jsonl", "\n".join(lines))))

    @pytest.mark.parametrize("chunk", [64, 1 << 20])
    def test_a_value_of_another_type(
        self, chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(json_lines, "_CHUNK", chunk)
        lines = [json.dumps({"a": number}) for number in range(50)]
        lines[40] = '{"a": "many"}'
        error = str(refused(write(tmp_path / "a.jsonl", "\n".join(lines))))
        assert "a.jsonl, line 41: " in error

    def test_columns_are_those_of_all_lines(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(json_lines, "_CHUNK", 32)
        values: list[dict[str, Any]] = [{"a": 1, "l": []}, {"a": 2, "l": [1]}, {"a": 1.5, "b": {"c": "x"}}]
        table = rows_of(write(tmp_path / "a.jsonl", "\n".join(map(json.dumps, values)) + "\n\n"))
        assert table.column("a").to_pylist() == [1.0, 2.0, 1.5]
        assert table.column("l").to_pylist() == [[], [1], None]
        assert table.column("b").to_pylist() == [None, None, {"c": "x"}]

    def test_texts_of_which_some_look_like_times(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(json_lines, "_CHUNK", 16)
        texts = ["2024-01-01 00:00:00", "soon", "2024-01-02 00:00:00"]
        lines = "\n".join(json.dumps({"a": text}) for text in texts)
        assert rows_of(write(tmp_path / "a.jsonl", lines)).column("a").to_pylist() == texts

    @pytest.mark.parametrize(
        ("texts", "kind"),
        [
            (["2024-01-01T10:00:00Z", "2024-01-01T10:00:00+02:00"], "timestamp[us, tz=UTC]"),
            (["2024-01-01T10:00:00Z", "2024-01-01T10:00:00"], "large_string"),
            (["2024-01-01T10:00:00", "2024-01-02"], "timestamp[us]"),
        ],
    )
    @pytest.mark.parametrize("chunk", [16, 1 << 20])
    def test_time_zones(
        self, texts: list[str], kind: str, chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(json_lines, "_CHUNK", chunk)
        path = write(tmp_path / "a.jsonl", "\n".join(json.dumps({"a": text, "b": [text]}) for text in texts))
        table = rows_of(path)
        assert str(table.schema.field("a").type) == kind
        moments = [dt.datetime.fromisoformat(text) for text in texts]
        assert table.column("a").to_pylist() == (texts if kind == "large_string" else moments)
        assert table.column("b").to_pylist() == [[text] for text in texts]

    def test_bytes_that_are_no_text(self, tmp_path: Path) -> None:
        (tmp_path / "a.jsonl").write_bytes(b'{"a": "x"}\n{"a": "caf\xe9"}\n')
        assert "a.jsonl, line 2: the text is not UTF-8" in str(refused(tmp_path / "a.jsonl"))

    @pytest.mark.parametrize("levels", [41, 100_000])
    def test_values_that_are_nested_deeply(self, levels: int, tmp_path: Path) -> None:
        """pyarrow ends the process if they are nested very deeply."""
        deep = '{"a": ' + "[" * levels + "]" * levels + "}"
        path = write(tmp_path / "a.jsonl", '{"b": "' + "[" * levels + '"}\n' + deep)
        assert "a.jsonl, line 2: objects and arrays are nested" in str(refused(path))

    def test_columns_that_json_cannot_have(self, tmp_path: Path) -> None:
        """A table that is added to may have them, if the file lacks them."""
        types = [pa.map_(pa.string(), pa.int32()), pa.binary(4), pa.time64("us"), pa.uuid()]
        given = pa.schema([("a", pa.int32()), *(pa.field(str(kind), kind) for kind in types)])
        table = rows_of(write(tmp_path / "a.jsonl", '{"a": 1}'), given=given)
        assert list(table.to_pylist()[0].values()) == [1, None, None, None, None]

    def test_an_array(self, tmp_path: Path) -> None:
        error = refused(write(tmp_path / "a.json", '[{"a": 1}]'))
        assert "one JSON array" in str(error)


class TestInputs:
    def test_a_folder(self, tmp_path: Path) -> None:
        for day, city in [("2", "New%20York"), ("10", "__HIVE_DEFAULT_PARTITION__")]:
            write(tmp_path / "t" / f"day={day}" / f"city={city}" / "part.csv", "a\n1\n")
        write(tmp_path / "t" / "_SUCCESS", "")
        write(tmp_path / "t" / "day=2" / ".part.csv.crc", "x")
        table = rows_of(tmp_path / "t")
        assert str(table.schema.field("day").type) == "int64"
        assert sorted(map(str, table.to_pylist())) == sorted(
            [
                str({"a": 1, "day": 10, "city": None}),
                str({"a": 1, "day": 2, "city": "New York"}),
            ]
        )

    def test_folders_with_numbers_beyond_64_bits(self, tmp_path: Path) -> None:
        for key in ("1", "9223372036854775808"):
            write(tmp_path / "t" / f"key={key}" / "part.csv", "a\n1\n")
        assert sorted(rows_of(tmp_path / "t")["key"].to_pylist()) == ["1", "9223372036854775808"]

    def test_a_pattern(self, tmp_path: Path) -> None:
        for name in ("a.csv", "b.csv", "c.txt"):
            write(tmp_path / name, "a\n1\n")
        assert rows_of(tmp_path / "*.csv").num_rows == 2

    def test_files_with_different_columns(self, tmp_path: Path) -> None:
        one, two = write(tmp_path / "a.csv", "a,b\n1,x\n"), write(tmp_path / "b.csv", "a,c\n1.5,2\n")
        assert rows_of(one, two).to_pylist() == [{"a": 1, "b": "x", "c": None}, {"a": 1.5, "b": None, "c": 2}]

    def test_decimals_are_not_rounded(self, tmp_path: Path) -> None:
        for name, kind in [("a", pa.decimal128(20, 2)), ("b", pa.float64())]:
            pq.write_table(pa.table({"a": pa.array([1], kind)}), tmp_path / f"{name}.parquet")
        assert "column a is decimal128(20, 2)" in str(refused(tmp_path / "a.parquet", tmp_path / "b.parquet"))

    def test_a_column_of_two_types(self, tmp_path: Path) -> None:
        error = refused(write(tmp_path / "a.csv", "a\n1\n"), write(tmp_path / "b.csv", "a\nx\n"))
        assert "column a is int64 in" in str(error)
        assert "b.csv" in str(error)

    @pytest.mark.parametrize("name", ["missing.csv", "*.none", "folder"])
    def test_nothing_there(self, name: str, tmp_path: Path) -> None:
        (tmp_path / "folder").mkdir()
        with pytest.raises(MissingFileError) as caught:
            rows_of(tmp_path / name)
        assert caught.value.hint

    def test_an_unknown_format(self, tmp_path: Path) -> None:
        assert "unknown format" in str(refused(write(tmp_path / "a.xlsx", "PK")))

    def test_a_folder_within_itself(self, tmp_path: Path) -> None:
        write(tmp_path / "t" / "below" / "a.csv", "a\n1\n")
        (tmp_path / "t" / "below" / "link").symlink_to(tmp_path / "t")
        assert "is a link to a folder that it is in" in str(refused(tmp_path / "t"))

    def test_texts_that_are_not_utf8(self, tmp_path: Path) -> None:
        data = pa.array([b"x", b"\xff"])
        texts = pa.StringArray.from_buffers(2, *data.buffers()[1:])
        pq.write_table(pa.table({"a": texts}), tmp_path / "a.parquet")
        assert "column a" in str(refused(tmp_path / "a.parquet"))

    @pytest.mark.parametrize("name", ["a.csv.gz", "a.jsonl.gz"])
    @pytest.mark.parametrize(
        "data", [b"a\n1\n", gzip.compress(b'{"a": 1}\n' * 9999)[:30]], ids=["not compressed", "cut"]
    )
    def test_a_damaged_compression(self, name: str, data: bytes, tmp_path: Path) -> None:
        (tmp_path / name).write_bytes(data)
        with pytest.raises(StorageError, match=f"{name} cannot be read"):
            rows_of(tmp_path / name)

    def test_a_damaged_file(self, tmp_path: Path) -> None:
        path = tmp_path / "a.parquet"
        pq.write_table(pa.table({"a": [1]}), path)
        path.write_bytes(path.read_bytes()[:-20])
        with pytest.raises((UsageError, StorageError), match=r"a\.parquet cannot be read"):
            rows_of(path)
