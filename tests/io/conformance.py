"""What every back end must do. A back end is done when it inherits these suites."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pytest

from rookery.io import BytesSink, Sink, Source, create_sink, list_files, open_source
from rookery.model import FormatError, RookeryError, StorageError
from rookery.puffin import Blob, Writer, open_puffin

DATA = bytes(range(256)) * 13 + b"the end"
SUFFIXES = (".puffin", ".stats")


@dataclass(frozen=True)
class Store:
    """A back end as its own tools see it, so that what Rookery does is checked from outside."""

    put: Callable[[str, bytes], None]
    get: Callable[[str], bytes | None]
    address: Callable[[str], Any]
    properties: Mapping[str, str] = field(default_factory=dict)

    def open(self, name: str) -> Source:
        return open_source(self.address(name), self.properties)


@cache
def puffin_bytes(blobs: int = 3, size: int = 1000) -> bytes:
    sink = BytesSink()
    with Writer(sink, codec="none") as writer:
        for number in range(blobs):
            writer.add(Blob("rookery-test", bytes([number % 256]) * size, fields=(number,)))
    assert sink.data is not None
    return sink.data


def fill(sink: Sink) -> None:
    with sink:
        sink.write(DATA)
        sink.commit()


def spoil(sink: Sink) -> None:
    with sink:
        sink.write(DATA)
        raise ZeroDivisionError


class SourceConformance:
    """Ranges are exact, counted, and never shorter than asked for. Subclasses give a fixture `store`."""

    @pytest.fixture
    def source(self, store: Store) -> Source:
        store.put("data.bin", DATA)
        return store.open("data.bin")

    def test_size(self, source: Source) -> None:
        with source:
            assert source.size == len(DATA)

    def test_size_is_no_read(self, source: Source) -> None:
        with source:
            assert (source.size, source.reads, source.bytes_read) == (len(DATA), 0, 0)

    @pytest.mark.parametrize(
        ("offset", "length"),
        [(0, 1), (0, len(DATA)), (255, 2), (1000, 1234), (len(DATA) - 7, 7), (len(DATA) - 1, 1)],
    )
    def test_ranges_are_exact(self, source: Source, offset: int, length: int) -> None:
        with source:
            assert source.read(offset, length) == DATA[offset : offset + length]

    def test_ranges_in_any_order(self, source: Source) -> None:
        with source:
            assert [source.read(at, 3) for at in (900, 0, 901)] == [DATA[at : at + 3] for at in (900, 0, 901)]

    def test_counters(self, source: Source) -> None:
        with source:
            source.read(0, 10)
            source.read(500, 90)
            assert (source.reads, source.bytes_read) == (2, 100)

    def test_no_bytes_cost_nothing(self, source: Source) -> None:
        with source:
            assert source.read(5, 0) == b""
            assert (source.reads, source.bytes_read) == (0, 0)

    @pytest.mark.parametrize(
        ("offset", "length"), [(len(DATA) - 3, 4), (0, len(DATA) + 1), (len(DATA), 1), (len(DATA) + 99, 5)]
    )
    def test_short_read_is_an_error(self, source: Source, offset: int, length: int) -> None:
        with source, pytest.raises((FormatError, StorageError)) as caught:
            source.read(offset, length)
        assert source.name in str(caught.value)

    @pytest.mark.parametrize(("offset", "length"), [(-1, 4), (4, -1)])
    def test_negative_range_is_an_error(self, source: Source, offset: int, length: int) -> None:
        with source, pytest.raises(FormatError):
            source.read(offset, length)
        assert source.reads == 0

    def test_long_read(self, store: Store) -> None:
        data = DATA * 1000  # longer than the buffers of any transport
        store.put("long.bin", data)
        with store.open("long.bin") as source:
            assert source.read(1, len(data) - 2) == data[1:-1]
            assert source.reads == 1

    def test_empty_file(self, store: Store) -> None:
        store.put("empty.bin", b"")
        with store.open("empty.bin") as source:
            assert source.size == 0

    def test_close_twice(self, source: Source) -> None:
        source.read(0, 1)
        source.close()
        source.close()

    def test_small_puffin_takes_one_read(self, store: Store) -> None:
        store.put("small.puffin", puffin_bytes())
        with open_puffin(store.address("small.puffin"), properties=store.properties) as reader:
            payloads = [payload for _, payload in reader.read_many(reader.metadata.blobs)]
            assert payloads == [bytes([number]) * 1000 for number in range(3)]
            assert reader.source.reads == 1

    def test_puffin_blobs_share_a_read(self, store: Store) -> None:
        data = puffin_bytes(blobs=40, size=5000)  # beyond what the first read brings
        store.put("large.puffin", data)
        with open_puffin(store.address("large.puffin"), properties=store.properties) as reader:
            assert reader.source.reads == 1
            found = {blob.fields[0]: payload for blob, payload in reader.read_many(reader.metadata.blobs[:9])}
            assert found == {number: bytes([number]) * 5000 for number in range(9)}
            assert reader.source.reads == 2

    def test_puffin_of_known_size_takes_one_read(self, store: Store) -> None:
        data = puffin_bytes(blobs=3000, size=1)  # a footer longer than the first read
        store.put("known.puffin", data)
        with open_puffin(data) as reader:
            footer_size = reader.footer_size
            assert reader.source.reads == 2
        with open_puffin(
            store.address("known.puffin"),
            file_size=len(data),
            footer_size=footer_size,
            properties=store.properties,
        ) as reader:
            assert len(reader.metadata.blobs) == 3000
            assert (reader.source.reads, reader.source.bytes_read) == (1, footer_size)


class NamedSourceConformance(SourceConformance):
    """For back ends in which a file can be missing."""

    def test_missing_file(self, store: Store) -> None:
        with pytest.raises(StorageError) as caught, store.open("missing.bin") as source:
            _ = source.size
        assert "missing.bin" in caught.value.message
        assert "\n" not in caught.value.message
        assert caught.value.hint

    def test_missing_file_of_known_size(self, store: Store) -> None:
        with pytest.raises(StorageError, match=r"missing\.bin"), store.open("missing.bin") as source:
            source.read(0, 4)


class SinkConformance:
    """A file appears whole at the commit; nothing before it, and nothing after a failure."""

    def sink(self, store: Store, name: str, *, overwrite: bool = False) -> Sink:
        return create_sink(store.address(name), store.properties, overwrite=overwrite)

    def test_appears_whole_at_the_commit(self, store: Store) -> None:
        with self.sink(store, "out.bin") as sink:
            sink.write(DATA)
            sink.write(bytearray(b"more"))
            sink.write(memoryview(b"and more"))
            assert sink.position == len(DATA) + 12
            assert store.get("out.bin") is None
            sink.commit()
            assert store.get("out.bin") == DATA + b"moreand more"
        assert store.get("out.bin") == DATA + b"moreand more"

    def test_nothing_without_a_commit(self, store: Store) -> None:
        with self.sink(store, "out.bin") as sink:
            sink.write(DATA)
        assert store.get("out.bin") is None

    def test_nothing_after_a_failure(self, store: Store) -> None:
        with pytest.raises(ZeroDivisionError):
            spoil(self.sink(store, "out.bin"))
        assert store.get("out.bin") is None

    def test_existing_file_stays(self, store: Store) -> None:
        store.put("out.bin", b"old")
        with pytest.raises(StorageError, match="exists already") as caught:
            fill(self.sink(store, "out.bin"))
        assert "overwrite" in (caught.value.hint or "")
        assert store.get("out.bin") == b"old"

    def test_file_that_came_meanwhile_stays(self, store: Store) -> None:
        sink = self.sink(store, "out.bin")
        store.put("out.bin", b"faster")
        with pytest.raises(StorageError, match="exists already"):
            fill(sink)
        assert store.get("out.bin") == b"faster"

    def test_overwrite(self, store: Store) -> None:
        store.put("out.bin", b"old")
        with self.sink(store, "out.bin", overwrite=True) as sink:
            sink.write(DATA)
            assert store.get("out.bin") == b"old"
            sink.commit()
        assert store.get("out.bin") == DATA

    def test_failed_overwrite_leaves_the_old(self, store: Store) -> None:
        store.put("out.bin", b"old")
        with pytest.raises(ZeroDivisionError):
            spoil(self.sink(store, "out.bin", overwrite=True))
        assert store.get("out.bin") == b"old"

    def test_nothing_behind_the_commit(self, store: Store) -> None:
        sink = self.sink(store, "out.bin")
        sink.write(b"all")
        sink.commit()
        with pytest.raises(ValueError):
            sink.write(b"more")
        with pytest.raises(ValueError):
            sink.commit()
        sink.discard()
        assert store.get("out.bin") == b"all"

    def test_puffin_there_and_back(self, store: Store) -> None:
        sink = self.sink(store, "there.puffin")
        with Writer(sink) as writer:
            writer.add(Blob("rookery-test", DATA, fields=(1, 2)))
            assert store.get("there.puffin") is None
        assert writer.written.location == sink.name
        data = store.get("there.puffin")
        assert data is not None
        assert len(data) == writer.written.size
        with open_puffin(data) as reader:
            assert reader.read(reader.blob(0)) == DATA

    def test_no_puffin_after_a_failure(self, store: Store) -> None:
        def write() -> None:
            with Writer(self.sink(store, "unfinished.puffin")) as writer:
                writer.add(Blob("rookery-test", DATA))
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            write()
        assert store.get("unfinished.puffin") is None


class ListConformance:
    """Files below a folder, by suffix."""

    def test_files_below_a_folder(self, store: Store) -> None:
        for name in ("in/b.puffin", "in/deep/a.stats", "in/c.txt", "in/a.puffin", "aside/d.puffin"):
            store.put(name, b"x")
        found = list_files(store.address("in"), SUFFIXES, store.properties)
        assert [str(name).partition("in/")[2] for name in found] == ["a.puffin", "b.puffin", "deep/a.stats"]
        with open_source(found[2], store.properties) as source:
            assert source.read(0, 1) == b"x"

    def test_a_file_stands_for_itself(self, store: Store) -> None:
        store.put("in/odd.name", b"x")
        assert list_files(store.address("in/odd.name"), SUFFIXES, store.properties) == [
            store.address("in/odd.name")
        ]

    def test_nothing_there(self, store: Store) -> None:
        with pytest.raises(StorageError, match="nowhere") as caught:
            list_files(store.address("nowhere"), SUFFIXES, store.properties)
        assert caught.value.hint


def assert_silent_about(error: RookeryError, *secrets: str) -> None:
    """The texts that a person may see hold none of *secrets*."""
    for text in (str(error), error.message, error.hint or ""):
        for secret in secrets:
            assert secret not in text
