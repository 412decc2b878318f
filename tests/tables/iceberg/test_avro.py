"""The decoder of Avro files: hand-made schemas, every codec, damaged bytes; both interpreters."""

from __future__ import annotations

import json
import math
import sys
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rookery.model import FormatError, RookeryError, StorageError
from rookery.tables import FILE_SCHEMA
from rookery.tables.files import FieldSummary
from rookery.tables.iceberg.avro import columns as avro_columns
from rookery.tables.iceberg.files import read_files
from rookery.tables.iceberg.manifest_list import read_manifest_list
from tests.tables.iceberg.avro_files import CODECS, SYNC, Encoder, MemoryIO, container, listed, number, sized

READERS = ["python", "numba"]


def use(reader: str, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(avro_columns, "_KERNEL", "no module of that name")
    patch.setattr(avro_columns, "_WORTH_NUMBA", -1 if reader == "numba" else sys.maxsize)


@pytest.fixture(params=READERS)
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    use(request.param, monkeypatch)
    return str(request.param)


def field(number: int, name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "field-id": number}


def map_of(name: str, key: int, value: int, kind: Any) -> dict[str, Any]:
    fields = [field(key, "key", "int"), field(value, "value", kind)]
    items = {"type": "record", "name": f"k{key}_v{value}", "fields": fields}
    return {"type": "array", "items": items, "logicalType": "map"}


MAPS = {
    "column_sizes": (108, 117, 118, "long"),
    "value_counts": (109, 119, 120, "long"),
    "null_counts": (110, 121, 122, "long"),
    "nan_counts": (137, 138, 139, "long"),
    "lower_bounds": (125, 126, 127, "bytes"),
    "upper_bounds": (128, 129, 130, "bytes"),
}
UNKNOWN = {
    "type": "record",
    "name": "of_somebody",
    "namespace": "some.body",
    "fields": [
        field(9001, "suit", {"type": "enum", "name": "suit", "symbols": ["A", "B"]}),
        field(9002, "again", "suit"),
        field(9003, "map", {"type": "map", "values": ["null", "double"]}),
        field(9004, "list", {"type": "array", "items": {"type": "array", "items": "float"}}),
        {"name": "no_id", "type": {"type": "fixed", "name": "three", "size": 3}},
        field(100, "file_path", "boolean"),  # an id that means something else further up
    ],
}
UNKNOWN_VALUE = {
    "suit": 1,
    "again": 0,
    "map": [("a", (1, 1.5)), ("b", (0, None)), ("c", (1, math.inf))],
    "list": [[1.0, 2.0], [], [3.0]],
    "no_id": b"abc",
    "file_path": True,
}


def entry_schema(partition: list[dict[str, Any]], null_first: bool, reverse: bool) -> dict[str, Any]:
    def optional(kind: Any) -> list[Any]:
        return ["null", kind] if null_first else [kind, "null"]

    fields = [
        field(134, "content", optional("int")),
        field(100, "file_path", "string"),
        field(101, "file_format", "string"),
        field(102, "partition", {"type": "record", "name": "r102", "fields": partition}),
        field(103, "record_count", "long"),
        field(104, "file_size_in_bytes", "long"),
        field(777, "unknown", optional(UNKNOWN)),
        *[field(ids[0], name, optional(map_of(name, *ids[1:]))) for name, ids in MAPS.items()],
        field(132, "split_offsets", optional({"type": "array", "items": "long", "element-id": 133})),
        field(135, "equality_ids", optional({"type": "array", "items": "int", "element-id": 136})),
        field(143, "referenced", optional("string")),
        field(144, "offset", optional({"type": "long", "logicalType": "of nobody"})),
        field(145, "length", optional("long")),
    ]
    top = [
        field(0, "status", "int"),
        field(1, "snapshot_id", optional("long")),
        field(3, "sequence_number", optional("long")),
        field(2, "data_file", {"type": "record", "name": "r2", "fields": fields[:: -1 if reverse else 1]}),
    ]
    return {"type": "record", "name": "manifest_entry", "fields": top[:: -1 if reverse else 1]}


INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
SMALL = st.integers(0, 100)
MAYBE = {
    "content": st.integers(0, 2),
    "sequence_number": INT64,
    "referenced": st.text(),
    "offset": INT64,
    "length": INT64,
    "equality_ids": st.lists(INT32, max_size=4),
    "split_offsets": st.lists(INT64, max_size=4),
    "unknown": st.just(UNKNOWN_VALUE),
    **{
        name: st.dictionaries(INT32, INT64 if ids[3] == "long" else st.binary(max_size=20), max_size=6).map(
            lambda found: list(found.items())
        )
        for name, ids in MAPS.items()
    },
}
ENTRIES = st.lists(
    st.fixed_dictionaries(
        {name: st.none() | values for name, values in MAYBE.items()}
        | {
            "status": st.sampled_from([0, 1, 2]),
            "file_path": st.text(max_size=200),
            "file_format": st.sampled_from(["PARQUET", "orc", "Avro"]),
            "record_count": INT64,
            "file_size_in_bytes": INT64,
            "snapshot_id": st.none() | INT64,
            "partition": st.integers(-3, 3),
        }
    ),
    max_size=40,
)


def encode_entry(encoder: Encoder, schema: Any, entry: dict[str, Any], null_first: bool) -> bytes:
    def optional(name: str) -> Any:
        value = entry[name]
        if name in MAPS and value is not None:
            value = [{"key": key, "value": item} for key, item in value]
        return (int(not null_first), None) if value is None else (int(null_first), value)

    plain = {name: optional(name) for name in [*MAYBE, "snapshot_id"]} | {
        name: entry[name] for name in ("status", "file_path", "file_format", "record_count")
    }
    plain |= {"file_size_in_bytes": entry["file_size_in_bytes"], "partition": {"p": entry["partition"]}}
    return encoder.encode(schema, {**plain, "data_file": plain})


def expected_row(entry: dict[str, Any]) -> dict[str, Any]:
    sequence = entry["sequence_number"]
    return {
        "path": entry["file_path"],
        "content": entry["content"] or 0,
        "format": entry["file_format"].lower(),
        "size": entry["file_size_in_bytes"],
        "rows": entry["record_count"],
        "spec_id": 0,
        "partition": json.dumps([entry["partition"]]),
        "sequence_number": 5 if sequence is None else sequence,
        "added_snapshot_id": 7 if entry["snapshot_id"] is None else entry["snapshot_id"],
        **{name: entry[name] for name in MAPS},
        "referenced_data_file": entry["referenced"],
        "content_offset": entry["offset"],
        "content_size": entry["length"],
        "equality_ids": entry["equality_ids"],
        "file_list": "m.avro",
        "row_groups": len(entry["split_offsets"] or ()) or None,
    }


PARTITION = [field(1000, "p", "int")]


@pytest.mark.parametrize("reader", READERS)
@settings(max_examples=40)
@given(
    entries=ENTRIES,
    null_first=st.booleans(),
    reverse=st.booleans(),
    negative=st.booleans(),
    codec=st.sampled_from(list(CODECS)),
    per_block=st.integers(1, 9),
)
def test_any_manifest(
    reader: str,
    entries: list[Any],
    null_first: bool,
    reverse: bool,
    negative: bool,
    codec: str,
    per_block: int,
) -> None:
    schema = entry_schema(PARTITION, null_first, reverse)
    encoder = Encoder(negative_counts=negative)
    records = [encode_entry(encoder, schema, entry, null_first) for entry in entries]
    files = {"m.avro": container(schema, records, codec, per_block)}
    with pytest.MonkeyPatch.context() as patch:
        use(reader, patch)
        found = read_files(MemoryIO(files), [listed("m.avro")])
    found.validate(full=True)
    assert found.schema == FILE_SCHEMA
    assert found.to_pylist() == [expected_row(entry) for entry in entries if entry["status"] != 2]


# -- partitions


ALL_KINDS: list[tuple[Any, Any, Any]] = [
    ("boolean", True, True),
    ("int", -7, -7),
    ({"type": "int", "logicalType": "date"}, 19844, 19844),
    ("long", 1 << 62, 1 << 62),
    ({"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True}, 17, 17),
    ({"type": "long", "logicalType": "timestamp-nanos"}, 18, 18),
    ("float", 1.5, 1.5),
    ("double", -0.1, -0.1),
    ("double", math.inf, math.inf),
    ("string", "Löwe \0 \N{SNOWMAN}", "Löwe \0 \N{SNOWMAN}"),
    ("bytes", b"\xff\x00", "ff00"),
    ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, b"\xff\x38", -200),
    (
        {"type": "fixed", "name": "decimal_12_2", "size": 6, "logicalType": "decimal", "precision": 12},
        (-5).to_bytes(6, "big", signed=True),
        -5,
    ),
    ("decimal_12_2", (1 << 40).to_bytes(6, "big"), 1 << 40),
    ({"type": "fixed", "name": "uuid_fixed", "size": 16, "logicalType": "uuid"}, SYNC, SYNC.hex()),
    ("uuid_fixed", SYNC[::-1], SYNC[::-1].hex()),
    ({"type": "fixed", "name": "two", "size": 2}, b"hi", "6869"),
    ("null", None, None),
]


def empty_entry(**changes: Any) -> dict[str, Any]:
    nothing: dict[str, Any] = dict.fromkeys(MAYBE)
    return nothing | {
        "status": 1,
        "file_path": "f",
        "file_format": "PARQUET",
        "record_count": 1,
        "file_size_in_bytes": 2,
        "snapshot_id": 3,
        **changes,
    }


def manifest(partition: list[dict[str, Any]], values: list[dict[str, Any]], **changes: Any) -> bytes:
    schema = entry_schema(partition, True, False)
    encoder = Encoder()
    records = []
    for value in values:
        entry = empty_entry(**changes)
        plain = dict.fromkeys([*MAYBE, "snapshot_id"], (0, None)) | {"partition": value}
        plain |= {name: entry[name] for name in ("status", "file_path", "file_format", "record_count")}
        plain |= {"file_size_in_bytes": 2}
        records.append(encoder.encode(schema, {**plain, "data_file": plain}))
    return container(schema, records)


def test_all_kinds_of_partition_values(reader: str) -> None:
    fields = [field(1000 + n, f"p{n}", ["null", kind]) for n, (kind, _, _) in enumerate(ALL_KINDS)]
    full = {f"p{n}": (1, value) for n, (_, value, _) in enumerate(ALL_KINDS)}
    none = {f"p{n}": (0, None) for n in range(len(ALL_KINDS))}
    files = {"m": manifest(fields, [full, none, full])}
    found = read_files(MemoryIO(files), [listed("m")])["partition"].to_pylist()
    assert found[0] == found[2] == json.dumps([shown for _, _, shown in ALL_KINDS])
    assert json.loads(found[1]) == [None] * len(ALL_KINDS)


def test_nan_in_a_partition(reader: str) -> None:
    files = {"m": manifest([field(1000, "p", "float")], [{"p": math.nan}])}
    assert read_files(MemoryIO(files), [listed("m")])["partition"].to_pylist() == ["[NaN]"]


def test_no_partition(reader: str) -> None:
    assert read_files(MemoryIO({"m": manifest([], [{}])}), [listed("m")])["partition"].to_pylist() == ["[]"]


def test_no_manifests() -> None:
    found = read_files(MemoryIO({}), [])
    assert (found.num_rows, found.schema) == (0, FILE_SCHEMA)


def test_manifests_of_several_specs(reader: str) -> None:
    """Equal bytes of different types are different partitions."""
    files = {
        "a": manifest([field(1000, "p", "int")], [{"p": 1}] * 3),
        "b": manifest([field(1001, "q", "boolean")], [{"q": True}] * 2),
        "c": manifest([field(1000, "p", "int")], [], file_path="none"),
        "d": manifest([field(1000, "p", "int")], [{"p": 1}, {"p": 2}]),
    }
    manifests = [listed(name, spec_id=n, sequence_number=10 + n) for n, name in enumerate(files)]
    found = read_files(MemoryIO(files), manifests)
    assert found["partition"].to_pylist() == ["[1]"] * 3 + ["[true]"] * 2 + ["[1]", "[2]"]
    assert found["file_list"].to_pylist() == [*"aaabbdd"]
    assert found["spec_id"].to_pylist() == [0, 0, 0, 1, 1, 3, 3]
    assert found["sequence_number"].to_pylist() == [10, 10, 10, 11, 11, 13, 13]


# -- what is refused


def refused(data: bytes, match: str) -> None:
    with pytest.raises(FormatError, match=match) as caught:
        read_files(MemoryIO({"m": data}), [listed("m")])
    assert str(caught.value).startswith("m, byte ")


GOOD = manifest(PARTITION, [{"p": 1}, {"p": 2}])
HEADER = GOOD.index(SYNC) + len(SYNC)


def test_headers() -> None:
    refused(b"", "an Avro file")
    refused(b"PAR1" + GOOD, "an Avro file")
    refused(GOOD[: HEADER - 3], "a sync marker")
    refused(GOOD[:30], "header's metadata")
    refused(container("int", [], **{"avro.codec": b"xz"}), "a codec among")
    refused(container(b"{nothing", []), "an Avro schema")
    refused(b"Obj\x01" + number(0) + SYNC, "avro.schema")
    refused(container(b"[" * 100_000, []), "an Avro schema")


def test_blocks(reader: str) -> None:
    head, block = GOOD[:HEADER], GOOD[HEADER:]
    content = block[2 : -len(SYNC)]  # behind the count and the size
    assert read_files(MemoryIO({"m": head + block + block}), [listed("m")]).num_rows == 4
    refused(head + block[:-1], "a block with its count")
    refused(head + block[:-1] + b"\xff", "the file's sync marker")
    refused(head + number(3) + sized(content) + SYNC, "a number that ends")
    refused(head + number(1) + sized(content) + SYNC, "1 records")
    refused(head + number(1 << 40) + sized(content) + SYNC, "at most")
    refused(head + number(-1) + sized(content) + SYNC, "a block with its count")


def record(*fields: dict[str, Any], name: str = "r") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def test_schemas() -> None:
    def changed(kind: Any) -> bytes:
        schema = entry_schema(PARTITION, True, False)
        schema["fields"].append(field(5, "more", kind))
        return container(schema, [])

    assert read_files(MemoryIO({"m": changed("int")}), [listed("m")]).num_rows == 0
    refused(container("int", []), "another type")
    refused(container(record(field(0, "status", "int")), []), "the field 100, path")
    refused(container(record(), []), "none")
    refused(changed("no such type"), "the name of one")
    refused(changed({"type": 7}), "an Avro type")
    refused(changed(None), "an Avro type")
    refused(changed({"type": "fixed", "name": "f", "size": -1}), "size of a fixed type")
    refused(changed({"type": "fixed", "name": "f", "size": 1 << 60}), "size of a fixed type")
    refused(changed({"type": "array", "items": "null"}), "a byte at least")
    refused(changed(record(field(6, "self", ["null", "again"]), name="again")), "do not contain themselves")
    refused(changed({"type": "record", "name": "x"}), "fields of the record")
    refused(changed({"type": "record", "fields": []}), "a type with a name")
    deep: Any = "int"
    for _ in range(70):
        deep = {"type": "array", "items": deep}
    refused(changed(deep), "nest less deep")
    wide: Any = record(field(1, "x", "int"), name="w0")
    for level in range(1, 30):  # a few names that stand for a thousand million fields
        wide = record(field(1, "a", wide), field(2, "b", f"w{level - 1}"), name=f"w{level}")
    refused(changed(wide), "fewer parts")


def test_types_that_do_not_fit() -> None:
    for number_there, kind in ((0, "string"), (2, "long")):
        schema = entry_schema(PARTITION, True, False)
        (place,) = [part for part in schema["fields"] if part["field-id"] == number_there]
        place["type"] = kind
        refused(container(schema, []), "another type")
    schema = entry_schema([field(1000, "p", {"type": "array", "items": "int"})], True, False)
    refused(container(schema, []), "a plain type in a partition")


def test_null_where_a_value_is_required(reader: str) -> None:
    schema = record(
        field(0, "status", "int"),
        field(2, "data_file", ["null", entry_schema(PARTITION, True, False)["fields"][3]["type"]]),
    )
    refused(container(schema, [number(1) + number(0)]), "field that is required")


def test_text_that_is_none(reader: str) -> None:
    good = manifest(PARTITION, [{"p": 1}], file_path="path")
    refused(good.replace(b"\x08path", b"\x08pa\xff\xff"), "text in the field path")
    texts = manifest([field(1000, "p", "string")], [{"p": "part"}])
    refused(texts.replace(b"\x08part", b"\x08pa\xff\xff"), "text in a partition")


def test_content_that_is_none(reader: str) -> None:
    schema = entry_schema(PARTITION, True, False)
    data = encode_entry(Encoder(), schema, empty_entry(content=3, partition=1), True)
    refused(container(schema, [data]), "data or deletes")
    data = encode_entry(Encoder(), schema, empty_entry(content=300, partition=1), True)
    refused(container(schema, [data]), "fits its field")


@pytest.mark.parametrize("codec", [codec for codec in CODECS if codec not in ("null", "snappy")])
def test_bombs(codec: str) -> None:
    """A block that would be far larger than any manifest is."""
    schema = entry_schema(PARTITION, True, False)
    good = container(schema, [bytes(1 << 26)], codec)
    refused(good, "a block")


def test_snappy_that_lies() -> None:
    """Of its size, which it could be believed to have, and of its checksum."""
    schema = entry_schema(PARTITION, True, False)
    head = container(schema, [], "snappy")
    refused(head + number(1) + sized(b"\xff\xff\xff\xff\x0f" + bytes(8)) + SYNC, "compressed with snappy")
    refused(head + number(1) + sized(CODECS["snappy"](b"abc")[:-1] + b"!") + SYNC, "the checksum")
    refused(head + number(1) + sized(b"") + SYNC, "compressed with snappy")


def test_missing_file() -> None:
    with pytest.raises(StorageError, match="no such file"):
        read_files(MemoryIO({}), [listed("m")])


MANY = {
    codec: container(
        entry_schema(PARTITION, True, False),
        [
            encode_entry(
                Encoder(),
                entry_schema(PARTITION, True, False),
                empty_entry(
                    partition=n % 2,
                    column_sizes=[(1, n), (2, 1 << 40)],
                    lower_bounds=[(1, b"abc" * n)],
                    equality_ids=[1, 2],
                    unknown=UNKNOWN_VALUE,
                ),
                True,
            )
            for n in range(8)
        ],
        codec,
        per_block=3,
    )
    for codec in CODECS
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("codec", list(CODECS))
@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_damaged_bytes(reader: str, codec: str, data: st.DataObject) -> None:
    """Whatever happens to a file, it is read or refused in one of our own ways."""
    damaged = bytearray(MANY[codec])
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(damaged) - 1))
        match data.draw(st.sampled_from(["flip", "cut", "insert", "set"])):
            case "flip":
                damaged[at] ^= 1 << data.draw(st.integers(0, 7))
            case "cut":
                del damaged[at : at + data.draw(st.integers(1, 20))]
            case "insert":
                damaged[at:at] = data.draw(st.binary(min_size=1, max_size=12))
            case "set":
                damaged[at] = data.draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]))
        if not damaged:
            break
    with pytest.MonkeyPatch.context() as patch:
        use(reader, patch)
        try:
            found = read_files(MemoryIO({"m": bytes(damaged)}), [listed("m")])
        except RookeryError:
            return
    found.validate(full=True)
    found.to_pylist()


# -- manifest lists

LIST_SCHEMA = record(
    field(500, "manifest_path", "string"),
    field(501, "manifest_length", "long"),
    field(502, "partition_spec_id", "int"),
    field(517, "content", "int"),
    field(515, "sequence_number", "long"),
    field(516, "min_sequence_number", "long"),
    field(503, "added_snapshot_id", "long"),
    field(504, "added_files_count", "int"),
    field(
        507,
        "partitions",
        [
            "null",
            {
                "type": "array",
                "items": record(
                    field(509, "contains_null", "boolean"),
                    field(518, "contains_nan", ["null", "boolean"]),
                    field(510, "lower_bound", ["null", "bytes"]),
                    field(511, "upper_bound", ["null", "bytes"]),
                    name="r508",
                ),
            },
        ],
    ),
    field(519, "key_metadata", ["null", "bytes"]),
    name="manifest_file",
)


def list_entry(**changes: Any) -> bytes:
    plain: dict[str, Any] = {
        "manifest_path": "a.avro",
        "manifest_length": 10,
        "partition_spec_id": 0,
        "content": 1,
        "sequence_number": 4,
        "min_sequence_number": 2,
        "added_snapshot_id": 77,
        "added_files_count": 5,
        "partitions": (0, None),
        "key_metadata": (0, None),
    }
    return Encoder().encode(LIST_SCHEMA, plain | changes)


def summary(null: bool, nan: bool | None, lower: bytes | None, upper: bytes | None) -> dict[str, Any]:
    def optional(value: Any) -> tuple[int, Any]:
        return (0, None) if value is None else (1, value)

    return {
        "contains_null": null,
        "contains_nan": optional(nan),
        "lower_bound": optional(lower),
        "upper_bound": optional(upper),
    }


def test_manifest_list(reader: str) -> None:
    summaries = [summary(True, None, None, None), summary(False, False, b"", b"zz")]
    records = [
        list_entry(),
        list_entry(manifest_path="b", content=0, partitions=(1, summaries)),
        list_entry(),
    ]
    first, second, third = read_manifest_list(MemoryIO({"l": container(LIST_SCHEMA, records)}), "l")
    assert first == third
    assert (first.manifest_path, first.manifest_length, first.content) == ("a.avro", 10, 1)
    assert (first.sequence_number, first.min_sequence_number, first.added_snapshot_id) == (4, 2, 77)
    assert (first.added_files_count, first.existing_files_count, first.partitions) == (5, None, ())
    assert (second.manifest_path, second.content) == ("b", 0)
    assert second.partitions == (
        FieldSummary(True, None, None, None),
        FieldSummary(False, False, b"", b"zz"),
    )


def test_manifest_list_of_the_first_version(reader: str) -> None:
    schema = record(*(part for part in LIST_SCHEMA["fields"][:3]))
    data = container(schema, [Encoder().encode(schema, {
        "manifest_path": "a", "manifest_length": 1, "partition_spec_id": 2})])  # fmt: skip
    (found,) = read_manifest_list(MemoryIO({"l": data}), "l")
    assert (found.content, found.sequence_number, found.min_sequence_number) == (0, 0, 0)
    assert (found.added_snapshot_id, found.added_files_count) == (None, None)


def test_damaged_manifest_lists(reader: str) -> None:
    good = container(LIST_SCHEMA, [list_entry(partitions=(1, [summary(True, True, b"a", None)]))] * 3)
    start = good.index(SYNC)
    for at in range(start, len(good)):
        for value in (0, 1, 0x7F, 0xFF):
            damaged = bytearray(good)
            damaged[at] = value
            try:
                read_manifest_list(MemoryIO({"l": bytes(damaged)}), "l")
            except RookeryError:
                continue


def test_batches(monkeypatch: pytest.MonkeyPatch, reader: str) -> None:
    """Where one column would outgrow Arrow's offsets, another batch begins."""
    monkeypatch.setattr("rookery.tables.iceberg.files._BATCH", 10)
    found = read_files(MemoryIO({"m": MANY["null"]}), [listed("m")] * 3)
    assert found["path"].num_chunks >= 3
    assert found.num_rows == 24
