"""Storage settings that only the catalog's server has: used, renewed, and missed loudly when they fail."""

from __future__ import annotations

import pickle
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

import rookery
from rookery.api.doctor import doctor
from rookery.api.lake import Lake
from rookery.api.table import TableHandle
from rookery.cli.app import run
from rookery.io import (
    STORE_HINT,
    RenewableProperties,
    create_sink,
    list_folder,
    open_source,
    renewal,
)
from rookery.model import MissingFileError, StorageError
from rookery.model.cache import clear_caches
from rookery.tables.iceberg.file_bytes import GONE_HINT
from tests.rest.catalog_server import RestServer, apart
from tests.rest.s3_server import BUCKET, S3Server

pytestmark = pytest.mark.spark  # which is to say, they need a JVM

ROWS = pa.table({"id": pa.array(range(100), pa.int64()), "word": [f"word {n}" for n in range(100)]})


@pytest.fixture
def lake(rest: RestServer) -> Lake:
    return rookery.connect("prod", uri=rest.uri, type="rest")


@pytest.fixture
def handle(lake: Lake, s3: S3Server) -> Iterator[TableHandle]:
    """A table with rows and a declared index, which needs a state. Some are broken, so it is dropped."""
    lake.catalog.create_namespace_if_not_exists("db")
    name = f"db.t{uuid.uuid4().hex[:10]}"
    lake.catalog.create_table(name, ROWS.schema).append(ROWS)
    handle = rookery.table(name, lake)
    handle.add_index("bloom", "id")
    clear_caches()
    s3.requests.clear()
    yield handle
    lake.catalog.drop_table(name)


def _in_config(rest: RestServer, properties: dict[str, str]) -> None:
    rest.handed_out = properties


def _as_credentials(rest: RestServer, properties: dict[str, str]) -> None:
    rest.handed_out, rest.credentials = apart(properties)


HAND_OUT = pytest.mark.parametrize("hand_out", [_in_config, _as_credentials])


@HAND_OUT
def test_everything_is_reached_with_them(
    rest: RestServer, handle: TableHandle, hand_out: Callable[..., None]
) -> None:
    hand_out(rest, rest.handed_out)
    assert [index.column for index in handle.indexes().indexes] == ["id"]
    assert handle.read("id = 7")["word"].to_pylist() == ["word 7"]
    assert handle.count("id < 50") == 50
    assert handle.stats().rows == 100
    assert handle.status().tables[0].table == str(handle.name)


ASKED: dict[str, Callable[[TableHandle], Any]] = {
    "stats": TableHandle.stats,
    "indexes": TableHandle.indexes,
    "status": TableHandle.status,
    "add an index": lambda handle: handle.add_index("bloom", "word"),
    "drop an index": lambda handle: handle.drop_index("bloom", "id"),
}
REFUSED: dict[str, Callable[[str, str], bool]] = {
    "list": lambda method, path: "prefix=" in path and ".rookery" in path,
    "read": lambda method, path: ".rookery/state-" in path,
}


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("refused", REFUSED)
def test_a_state_that_cannot_be_reached_is_no_absence(
    handle: TableHandle, s3: S3Server, asked: str, refused: str
) -> None:
    with s3.refusing(REFUSED[refused]), pytest.raises(StorageError) as caught:
        ASKED[asked](handle)
    assert ".rookery" in caught.value.message
    assert caught.value.hint == STORE_HINT
    assert [index.column for index in handle.indexes().indexes] == ["id"]  # nothing was lost by it


@pytest.mark.parametrize("refused", REFUSED)
def test_rows_are_read_without_a_state(handle: TableHandle, s3: S3Server, refused: str) -> None:
    with s3.refusing(REFUSED[refused]):
        assert handle.count("id = 7") == 1
        clear_caches()
        told = repr(handle.explain("id = 7").sheets())
        assert "indexes are not used" in told or "a state is skipped" in told


@HAND_OUT
@pytest.mark.parametrize("how", ["refused", "known to expire"])
def test_renewed_when_they_expire(
    rest: RestServer,
    s3: S3Server,
    handle: TableHandle,
    hand_out: Callable[..., None],
    how: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    old = s3.admit("old-key-id", "old-secret", "old-token")
    if how != "refused":
        old["s3.session-token-expires-at-ms"] = str(int(time.time() * 1000) + 3_600_000)
    hand_out(rest, old)
    table, store = handle.load()
    source = open_source(table.table.metadata_location, store.io_properties)
    hand_out(rest, s3.admit("new-key-id", "new-secret", "new-token"))
    s3.expired.add("old-token")
    monkeypatch.setattr(renewal, "_MARGIN", 7200.0)  # as if an hour and more had passed
    worker = pickle.loads(pickle.dumps(store.io_properties))  # as Spark sends it to its workers
    assert isinstance(worker, RenewableProperties)
    assert source.read_all().startswith(b"{")
    assert store.listing()
    assert list_folder(store.location, worker)
    with create_sink(f"{table.location}/probe", store.io_properties) as sink:
        sink.write(b"probe")
        sink.commit()
    assert open_source(f"{table.location}/probe", worker).size == 5
    if how != "refused":
        assert "old-key-id" not in s3.users


def test_not_renewed_in_vain(rest: RestServer, s3: S3Server, handle: TableHandle) -> None:
    table, store = handle.load()
    rest.requests.clear()
    with pytest.raises(MissingFileError):
        open_source(f"{table.location}/nothing", store.io_properties).read_all()
    assert rest.requests == []
    s3.requests.clear()
    with s3.refusing(REFUSED["list"]), pytest.raises(StorageError):
        store.listing()
    assert len(s3.requests) == 1  # the server has nothing new to try with


def test_hints_go_by_the_cause(handle: TableHandle, s3: S3Server) -> None:
    table, _ = handle.load()
    snapshot = table.snapshot()
    assert snapshot is not None
    with s3.refusing(lambda method, path: "/metadata/" in path), pytest.raises(StorageError) as caught:
        table.file_lists(snapshot)
    assert caught.value.hint == STORE_HINT
    found = table.table.snapshot_by_id(snapshot.id)
    assert found is not None
    s3.client().delete_object(Bucket=BUCKET, Key=found.manifest_list.removeprefix(f"s3://{BUCKET}/"))
    with pytest.raises(MissingFileError) as gone:
        table.file_lists(snapshot)
    assert gone.value.hint == GONE_HINT


def test_the_doctor_sees_it(
    lake: Lake, handle: TableHandle, s3: S3Server, monkeypatch: pytest.MonkeyPatch, rest: RestServer
) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__OTHER__URI", rest.uri)
    monkeypatch.setenv("PYICEBERG_CATALOG__GONE__URI", "http://127.0.0.1:1")
    assert [check.outcome for check in doctor(lake, ("catalog", "read")).checks] == ["ok", "ok"]
    with s3.refusing(lambda method, path: True):
        read, *others = doctor(lake, ("read", "others")).checks
    assert (read.outcome, read.hint) == ("finding", STORE_HINT)
    assert {check.subject: check.outcome for check in others} == {"other": "finding", "gone": "finding"}
    assert "AccessDenied" not in others[0].detail  # that one does not answer at all
    others = [*doctor(lake, ("others",)).checks]
    assert {check.subject: check.outcome for check in others} == {"other": "ok", "gone": "finding"}


def test_puffin_commands_with_the_settings_of_a_table(
    handle: TableHandle, rest: RestServer, s3: S3Server, capsys: pytest.CaptureFixture[str]
) -> None:
    _, store = handle.load()
    (state,) = store.names("state-", ".puffin")
    catalog = ["--catalog", "prod", "--uri", rest.uri]
    assert run(["puffin", "verify", store.path(state), "--table", str(handle.name), *catalog]) == 0
    assert "vended" not in "".join(capsys.readouterr())
