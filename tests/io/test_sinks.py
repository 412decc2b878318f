"""The sink and list suites, inherited by every back end that can be written to."""

from __future__ import annotations

import errno
import os
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
from pyiceberg.io.pyarrow import PyArrowFileIO

from rookery.io import BytesSink, Sink, create_sink, list_files
from rookery.io.remote import FileIOSink
from rookery.model import StorageError
from tests.io.conformance import DATA, SUFFIXES, ListConformance, SinkConformance, Store, fill, spoil
from tests.io.web import Web


def _local_store(folder: Path, prefix: str = "") -> Store:
    def put(name: str, data: bytes) -> None:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)

    return Store(
        put=put,
        get=lambda name: (folder / name).read_bytes() if (folder / name).exists() else None,
        address=lambda name: f"{prefix}{folder / name}",
    )


class TestLocal(SinkConformance, ListConformance):
    @pytest.fixture(params=["", "file://"])
    def store(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
        yield _local_store(tmp_path, request.param)
        assert [path for path in tmp_path.rglob(".*") if path.is_file()] == [], "a passing file was left"


class SpooledConformance(SinkConformance):
    """What waits on this machine before it is sent is taken away in any case."""

    @pytest.fixture(autouse=True)
    def _no_spool_is_left(
        self, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
    ) -> Iterator[None]:
        folder = tmp_path_factory.mktemp("spool")
        monkeypatch.setattr(tempfile, "tempdir", str(folder))
        yield
        assert list(folder.iterdir()) == []


class TestMemory(SpooledConformance, ListConformance):
    @pytest.fixture
    def store(self) -> Store:
        memory, folder = fsspec.filesystem("memory"), f"/{uuid.uuid4().hex}"
        return Store(
            put=lambda name, data: memory.pipe_file(f"{folder}/{name}", data),
            get=lambda name: (
                memory.cat_file(f"{folder}/{name}") if memory.exists(f"{folder}/{name}") else None
            ),
            address=lambda name: f"memory:/{folder}/{name}",
        )


class TestS3(SpooledConformance, ListConformance):
    @pytest.fixture
    def store(self, s3_store: Store) -> Store:
        return s3_store


class TestOutputFile(SpooledConformance):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return _local_store(tmp_path, "file://")

    def sink(self, store: Store, name: str, *, overwrite: bool = False) -> Sink:
        return FileIOSink(store.address(name), {}, overwrite=overwrite, io_of=lambda *_: PyArrowFileIO())


class _Unreliable:
    """A `FileIO` and its `OutputFile` that fail where they are told to."""

    location = "s3://bucket/out.bin"

    def __init__(self, *, fails_at: str) -> None:
        self.fails_at = fails_at
        self.deleted: list[str] = []

    def new_output(self, location: str) -> _Unreliable:
        return self

    def create(self, overwrite: bool) -> _Unreliable:
        self._fail("create")
        return self

    def write(self, data: bytes) -> None:
        self._fail("write")

    def delete(self, location: str) -> None:
        self.deleted.append(location)

    def _fail(self, step: str) -> None:
        if step == self.fails_at:
            raise OSError("the network\nis gone")

    def __enter__(self) -> _Unreliable:
        return self

    def __exit__(self, *error: object) -> None:
        self._fail("close")


@pytest.mark.parametrize("step", ["write", "close"])
def test_torso_of_a_failed_upload_is_taken_away(step: str) -> None:
    store: Any = _Unreliable(fails_at=step)
    with pytest.raises(StorageError, match="the network is gone"):
        fill(FileIOSink(store.location, {}, overwrite=False, io_of=lambda *_: store))
    assert store.deleted == [store.location]


def test_upload_that_never_began_deletes_nothing() -> None:
    # What is there under that name is somebody else's, or the file that was to be replaced.
    store: Any = _Unreliable(fails_at="create")
    with pytest.raises(StorageError, match="the network is gone"):
        fill(FileIOSink(store.location, {}, overwrite=True, io_of=lambda *_: store))
    assert store.deleted == []


def test_bytes_sink() -> None:
    with BytesSink() as sink:
        sink.write(DATA)
        assert sink.data is None
        sink.commit()
    assert sink.data == DATA


def test_bytes_sink_after_a_failure() -> None:
    sink = BytesSink()
    with pytest.raises(ZeroDivisionError):
        spoil(sink)
    assert sink.data is None


def test_a_sink_is_taken_as_it_is() -> None:
    sink = BytesSink()
    assert create_sink(sink) is sink


def test_position_counts_bytes() -> None:
    sink = BytesSink()
    sink.write(memoryview(b"abcdefgh").cast("I"))
    assert sink.position == 8


def test_pathlib(tmp_path: Path) -> None:
    with create_sink(tmp_path / "a.bin") as sink:
        sink.write(DATA)
        sink.commit()
    assert (tmp_path / "a.bin").read_bytes() == DATA


def test_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="No such file or directory") as caught:
        create_sink(tmp_path / "nowhere" / "a.bin")
    assert "folder" in (caught.value.hint or "")
    assert list(tmp_path.iterdir()) == []


def test_full_disk_is_plain_errors() -> None:
    class FullSink(BytesSink):
        def _append(self, data: bytes | bytearray | memoryview) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with FullSink() as sink, pytest.raises(StorageError, match="No space left") as caught:
        sink.write(DATA)
    assert "disk" in (caught.value.hint or "")
    assert sink.position == 0


def test_http_cannot_be_written_to(web: Web) -> None:
    with pytest.raises(StorageError, match="cannot be written") as caught:
        fill(create_sink(web.url("a.bin")))
    assert "\n" not in caught.value.message
    assert web.files == {}


def test_http_file_stands_for_itself(web: Web) -> None:
    web.files["a.puffin"] = DATA
    assert list_files(web.url("a.puffin"), SUFFIXES) == [web.url("a.puffin")]


def test_hidden_files_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / ".a.puffin").write_bytes(b"x")
    assert list_files(str(tmp_path), SUFFIXES) == []
