"""The source suite, inherited by every back end."""

from __future__ import annotations

import uuid
from pathlib import Path

import fsspec
import pytest
from pyiceberg.io.fsspec import FsspecFileIO
from pyiceberg.io.pyarrow import PyArrowFileIO

from rookery.io import BytesSource, LocalSource, open_source
from rookery.model import StorageError
from tests.io.conformance import DATA, NamedSourceConformance, SourceConformance, Store, puffin_bytes
from tests.io.web import Web


def _local_store(folder: Path, address: object) -> Store:
    return Store(
        put=lambda name, data: (folder / name).write_bytes(data) and None,
        get=lambda name: (folder / name).read_bytes() if (folder / name).exists() else None,
        address=address,  # type: ignore[arg-type]
    )


class TestBytes(SourceConformance):
    @pytest.fixture(params=[bytes, bytearray, memoryview])
    def store(self, request: pytest.FixtureRequest) -> Store:
        held: dict[str, bytes] = {}
        return Store(held.__setitem__, held.get, lambda name: request.param(held[name]))


class TestLocalPath(NamedSourceConformance):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return _local_store(tmp_path, lambda name: str(tmp_path / name))


class TestPathlib(NamedSourceConformance):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return _local_store(tmp_path, lambda name: tmp_path / name)


class TestFileUrl(NamedSourceConformance):
    @pytest.fixture(params=["file:", "file://", "file://localhost"])
    def store(self, request: pytest.FixtureRequest, tmp_path: Path) -> Store:
        return _local_store(tmp_path, lambda name: f"{request.param}{tmp_path / name}")


class TestPyArrowInputFile(NamedSourceConformance):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return _local_store(tmp_path, lambda name: PyArrowFileIO().new_input(f"file://{tmp_path / name}"))


class TestFsspecInputFile(NamedSourceConformance):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        io = FsspecFileIO({})
        return _local_store(tmp_path, lambda name: io.new_input(f"file://{tmp_path / name}"))


class TestMemory(NamedSourceConformance):
    @pytest.fixture
    def store(self) -> Store:
        memory, folder = fsspec.filesystem("memory"), f"/{uuid.uuid4().hex}"
        return Store(
            put=lambda name, data: memory.pipe_file(f"{folder}/{name}", data),
            get=lambda name: memory.cat_file(f"{folder}/{name}"),
            address=lambda name: f"memory:/{folder}/{name}",
        )


class TestHttp(NamedSourceConformance):
    @pytest.fixture
    def store(self, web: Web) -> Store:
        return Store(web.files.__setitem__, web.files.get, web.url)

    def test_a_read_is_one_request_for_that_range(self, store: Store, web: Web) -> None:
        store.put("data.bin", DATA)
        with store.open("data.bin") as source:
            source.read(10, 20)
            source.read(1000, 1)
        assert web.requests == [("GET", "data.bin", "bytes=10-29"), ("GET", "data.bin", "bytes=1000-1000")]

    def test_signed_query_is_sent(self, store: Store, web: Web) -> None:
        store.put("data.bin", DATA)
        with open_source(web.url("data.bin") + "?sig=secret") as source:
            assert source.read(0, 4) == DATA[:4]
            assert source.name == web.url("data.bin")

    def test_server_without_ranges_is_named_as_such(self, store: Store, web: Web) -> None:
        web.knows_ranges = False
        store.put("data.bin", DATA)
        with store.open("data.bin") as source, pytest.raises(StorageError, match="range requests") as caught:
            source.read(10, 20)
        assert caught.value.hint


class TestS3(NamedSourceConformance):
    @pytest.fixture
    def store(self, s3_store: Store) -> Store:
        return s3_store


def test_a_source_is_taken_as_it_is() -> None:
    source = BytesSource(DATA, name="mine")
    assert open_source(source) is source


def test_memory_of_wider_items_is_counted_in_bytes() -> None:
    assert open_source(memoryview(b"abcdefgh").cast("I")).size == 8


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    with open_source(tmp_path) as source, pytest.raises(StorageError, match="directory") as caught:
        source.read(0, 4)
    assert caught.value.hint


def test_unreadable_file(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(StorageError, match="loop"):
        LocalSource(str(tmp_path / "loop"))


def test_unknown_scheme() -> None:
    with pytest.raises(StorageError, match="gopher") as caught:
        open_source("gopher://host/a.puffin")
    assert "\n" not in caught.value.message
    assert caught.value.hint


def test_puffin_over_http_asks_for_its_end_only(web: Web) -> None:
    from rookery.puffin import open_puffin

    web.files["a.puffin"] = data = puffin_bytes(blobs=40, size=5000)
    with open_puffin(web.url("a.puffin")) as reader:
        reader.read(reader.blob(0))
    ranged = [request for request in web.requests if request[2]]
    assert ranged == [
        ("GET", "a.puffin", f"bytes={len(data) - (64 << 10)}-{len(data) - 1}"),
        ("GET", "a.puffin", "bytes=0-5003"),
    ]
