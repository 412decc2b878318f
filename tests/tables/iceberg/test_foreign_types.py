"""Types that PyIceberg does not know: carried as they are, only where Rookery loads a table."""

from __future__ import annotations

import copy
import json
import pickle
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.exceptions import ValidationError
from pyiceberg.table.metadata import TableMetadataUtil
from pyiceberg.types import BinaryType, DecimalType, UnknownType

import rookery
from rookery.model.type_names import SKETCHED, base_type
from rookery.tables.iceberg.foreign_types import ForeignType, carried, carrying, is_known
from rookery.tables.iceberg.schema import schema_of
from tests.foreign import FOREIGN, KINDS, OBJECT, OTHERS, foreign_lake, metadata_text, spelled

DEFAULTS: dict[str, Any] = {"initial-default": {"w": [1, None]}, "write-default": "x"}


@pytest.mark.parametrize("kind", KINDS, ids=spelled)
@pytest.mark.parametrize("version", [2, 3])
def test_metadata_is_written_as_it_was_read(tmp_path: Path, kind: Any, version: int) -> None:
    """Whoever writes PyIceberg's model of a table writes every type, default and name that was there."""
    lake = foreign_lake(tmp_path, kind, version)
    text = metadata_text(lake)
    document = json.loads(text)
    document["schemas"][0]["fields"][-1] |= DEFAULTS
    with carrying():
        metadata = TableMetadataUtil.parse_raw(json.dumps(document))
    # PyIceberg refuses to write format version 3; its model can be written as version 2 is.
    written = json.loads(super(type(metadata), metadata).model_dump_json())
    assert written.keys() == document.keys()
    for key, value in document.items():
        assert written[key] == value, key


@pytest.mark.parametrize("kind", KINDS, ids=spelled)
def test_columns(tmp_path: Path, kind: Any) -> None:
    schema = foreign_lake(tmp_path, kind).load("db.t").schema()
    found = {field.name: field.type for field in schema_of(schema).leaves}
    assert {found[name] for name in FOREIGN} == {spelled(kind)}
    assert found.keys() == {*FOREIGN, *OTHERS}
    assert isinstance(schema.find_type("g"), ForeignType)
    assert schema.find_type("l.element") == schema.find_type("m.value") == schema.find_type("s.g")
    assert schema.find_type("g") != BinaryType()
    for same in (pickle.loads(pickle.dumps(schema)), copy.deepcopy(schema)):
        assert same == schema
        assert same.model_dump_json() == schema.model_dump_json()


def test_a_default_makes_a_column_filled() -> None:
    schema = {"type": "struct", "fields": [{"id": 1, "name": "q", "required": False, "type": "q"} | DEFAULTS]}
    text = json.dumps(_metadata(schema))
    with carrying():
        (field,) = schema_of(TableMetadataUtil.parse_raw(text).schema()).leaves
    assert field.filled


def test_types_that_pyiceberg_knows_stay_its_own() -> None:
    names = ["boolean", "int", "decimal(9,2)", "decimal(9, 2)", "fixed[3]", "timestamptz_ns", "unknown"]
    assert [name for name in names if not is_known(name)] == []
    assert carried({"type": "list", "element": "int"}) == {"type": "list", "element": "int"}
    fields = [{"id": n, "name": f"c{n}", "required": False, "type": name} for n, name in enumerate(names, 1)]
    text = json.dumps(_metadata({"type": "struct", "fields": fields}))
    with carrying():
        found = TableMetadataUtil.parse_raw(text)
    assert found == TableMetadataUtil.parse_raw(text)
    assert (found.schema().find_type("c3"), found.schema().find_type("c7")) == (
        DecimalType(9, 2),
        UnknownType(),
    )


@pytest.mark.parametrize("kind", ["fixed", "fixed[x]", "decimal(9)", "geometry(", "", "Int", "list"])
def test_odd_spellings_are_carried(kind: str) -> None:
    found = carried(kind)
    assert found == ForeignType(kind)
    assert found.model_dump() == kind
    assert base_type(str(found)) not in SKETCHED


def test_old_schemas_and_format_version_1() -> None:
    schema = {"type": "struct", "fields": [{"id": 1, "name": "v", "required": False, "type": "variant"}]}
    document = _metadata(schema)
    for changed in (
        {**document, "schemas": [document["schemas"][0], {**document["schemas"][0], "schema-id": 1}]},
        {**document, "format-version": 1, "schema": document["schemas"][0], "partition-spec": []},
    ):
        with carrying():
            found = TableMetadataUtil.parse_raw(json.dumps(changed))
        assert {str(each.find_type("v")) for each in found.schemas} == {"variant"}


def test_pyiceberg_by_itself_is_not_changed(tmp_path: Path) -> None:
    """Another user of PyIceberg in the process sees what it always has, in other threads as well."""
    lake = foreign_lake(tmp_path, "variant")
    text = metadata_text(lake)
    for _ in range(2):
        with pytest.raises(ValidationError, match="Unsupported field type: 'variant'"):
            TableMetadataUtil.parse_raw(text)
        with carrying():
            assert TableMetadataUtil.parse_raw(text).schema().find_type("g") == ForeignType("variant")
            with ThreadPoolExecutor(1) as pool, pytest.raises(ValidationError):
                pool.submit(TableMetadataUtil.parse_raw, text).result()


def test_what_is_no_metadata_is_told_by_pyiceberg() -> None:
    for text in ("{", "[]", "null", '{"schemas": 3}', '{"format-version": 3, "schemas": [{"fields": 3}]}'):
        with carrying(), pytest.raises(ValidationError):
            TableMetadataUtil.parse_raw(text)


@pytest.mark.parametrize("version", [2, 3])
def test_a_commit_through_pyiceberg_is_refused(tmp_path: Path, version: int) -> None:
    """Rookery commits through Java alone. Who commits by the loaded table is stopped before it is written."""
    lake = foreign_lake(tmp_path, "variant", version)
    before, folder = metadata_text(lake), Path(tmp_path / "warehouse")
    files = sorted(folder.rglob("*.metadata.json"))
    with pytest.raises((ValueError, ValidationError, NotImplementedError)):
        lake.load("db.t").transaction().set_properties({"a": "b"}).commit_transaction()
    assert metadata_text(lake) == before
    assert sorted(file for file in folder.rglob("*.metadata.json") if file.stat().st_size) == files


@pytest.mark.parametrize("kind", ["variant", OBJECT], ids=spelled)
def test_a_rest_catalog(tmp_path: Path, kind: Any) -> None:
    made = foreign_lake(tmp_path, kind)
    table = made.load("db.t")
    answer = {"metadata-location": table.metadata_location, "metadata": json.loads(metadata_text(made))}
    with _serving(answer) as address:
        lake = rookery.connect("rest", uri=address, type="rest")
        assert lake.load("db.t").metadata == table.metadata
        assert rookery.table("db.t", lake).count("n < 3") == 3


@contextmanager
def _serving(answer: dict[str, Any]) -> Iterator[str]:
    """A REST catalog of one table, for whoever only reads."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = {"defaults": {}, "overrides": {}} if "/config" in self.path else answer
            body = json.dumps(found).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def _metadata(schema: dict[str, Any]) -> dict[str, Any]:
    return {
        "format-version": 3,
        "table-uuid": "0d1f2b3c-0000-4000-8000-000000000000",
        "location": "file:///nowhere",
        "last-updated-ms": 1,
        "last-column-id": 20,
        "last-sequence-number": 0,
        "next-row-id": 0,
        "schemas": [{"schema-id": 0, **schema}],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-spec-id": 0,
        "last-partition-id": 999,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "properties": {},
    }
