"""Parquet files that are not what they should be: an error that names the file, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rookery.collect.physical import NeedsEngineError
from rookery.collect.read import read_parquet
from rookery.model import Field, FormatError, RookeryError, StorageError
from rookery.parquet.footer import ParquetError
from rookery.parquet.thrift import Cursor, ThriftError
from rookery.sketch import MAX_THETA
from tests.collect.files import write

N = 60
TABLE = pa.table(
    {
        "l": pa.array([None if n % 4 == 0 else n for n in range(N)], pa.int64()),
        "s": pa.array([f"text {n}" for n in range(N)]),
        "x": pa.array([n.to_bytes(16, "big") for n in range(N)], pa.binary(16)),
        "c": pa.array([Decimal(n) for n in range(N)], pa.decimal128(20, 0)),
        "b": pa.array([n % 2 == 0 for n in range(N)]),
        "a": pa.array([[n, n + 1] for n in range(N)], pa.list_(pa.int64())),
    }
)
FIELDS = [
    Field(1, "l", "long"),
    Field(2, "s", "string"),
    Field(3, "x", "uuid"),
    Field(4, "c", "decimal(20, 0)"),
    Field(5, "b", "boolean"),
    Field(7, "a.element", "long"),
]
DELTAS = {"l": "DELTA_BINARY_PACKED", "s": "DELTA_BYTE_ARRAY"}
FORMS = {
    "dictionary": {"compression": "zstd"},
    "plain": {"use_dictionary": False, "compression": "none"},
    "v2": {"use_dictionary": False, "compression": "snappy", "data_page_version": "2.0"},
    "delta": {"use_dictionary": False, "column_encoding": DELTAS, "compression": "gzip"},
    "two groups": {"row_group_size": N // 2, "compression": "lz4", "dictionary_pagesize_limit": 100},
}
forms = pytest.mark.parametrize("form", FORMS)


@pytest.fixture
def make(tmp_path: Path) -> Callable[[str], bytes]:
    def make_file(form: str) -> bytes:
        # Without Arrow's own schema the footer is short, and more of the mutations hit something.
        return Path(write(tmp_path / "good.parquet", TABLE, store_schema=False, **FORMS[form])).read_bytes()

    return make_file


class Reader:
    """Reads bytes as a file of their own."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(self, data: bytes, size: int | None = None) -> None:
        self.path.write_bytes(data)
        thetas = {field.id: MAX_THETA for field in FIELDS}
        read_parquet(str(self.path), len(data) if size is None else size, FIELDS, thetas, {})

    def survives(self, data: bytes) -> bool:
        """Read it; whatever it is, nothing but an error of ours that names the file may come of it."""
        try:
            self(data)
        except NeedsEngineError:
            return True
        except RookeryError as error:
            complaint = str(error)
        else:
            return True
        assert self.path.name in complaint
        return False


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    return Reader(tmp_path / "bad.parquet")


def flips(data: bytes, start: int, masks: tuple[int, int], step: int) -> Iterator[bytes]:
    """Change one byte at a time, now in this way, now in that."""
    for number, at in enumerate(range(start, len(data), step)):
        for mask in masks[number % 2 :: 2]:
            yield data[:at] + bytes([data[at] ^ mask]) + data[at + 1 :]


def footer_start(data: bytes) -> int:
    return len(data) - 8 - int.from_bytes(data[-8:-4], "little")


@forms
def test_bytes_of_the_footer(make: Callable[[str], bytes], reader: Reader, form: str) -> None:
    data = make(form)
    reader(data)
    outcomes = [reader.survives(bad) for bad in flips(data, footer_start(data), (0x01, 0xFF), step=5)]
    assert not all(outcomes)


@forms
def test_bytes_of_the_pages(make: Callable[[str], bytes], reader: Reader, form: str) -> None:
    data = make(form)
    body = data[: footer_start(data)]
    outcomes = [
        reader.survives(bad[: len(body)] + data[len(body) :])
        for bad in flips(body, 0, (0x11, 0xFF), step=1 + len(body) // 200)
    ]
    assert not all(outcomes)


@forms
def test_truncations(make: Callable[[str], bytes], reader: Reader, form: str) -> None:
    data = make(form)
    for size in {
        *range(0, len(data), 1 + len(data) // 150),
        len(data) - 1,
        len(data) - 4,
        len(data) - 8,
        11,
        12,
    }:
        assert not reader.survives(data[:size])


@forms
def test_bytes_cut_from_the_middle(make: Callable[[str], bytes], reader: Reader, form: str) -> None:
    """The footer is whole, and all that it points at is elsewhere."""
    data = make(form)
    for gap in (1, 7, 500):
        for at in range(4, footer_start(data) - gap, 211):
            reader.survives(data[:at] + data[at + gap :])


@settings(max_examples=60)
@given(st.binary(max_size=200))
def test_any_footer(tmp_path_factory: pytest.TempPathFactory, footer: bytes) -> None:
    reader = Reader(tmp_path_factory.getbasetemp() / "any.parquet")
    reader.survives(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")


def test_not_parquet(reader: Reader) -> None:
    for data, found in (
        (b"", "0 bytes"),
        (b"PAR1", "4 bytes"),
        (b"x" * 100, "b'xxxx'"),
        (b"PAR1" + bytes(20) + b"PARE", "an encrypted footer"),
        (b"PAR1" + b"\xff" * 4 + b"PAR1", "4294967295 bytes"),
    ):
        with pytest.raises(ParquetError, match=r"bad\.parquet") as caught:
            reader(data)
        assert caught.value.found == found


def test_a_file_that_is_shorter_than_its_manifest_says(make: Callable[[str], bytes], reader: Reader) -> None:
    data = make("plain")
    with pytest.raises(FormatError, match="ends early"):
        reader(data, len(data) + 10)
    with pytest.raises(FormatError):
        reader(data + b"more of it", len(data) + 5)


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"gone\.parquet"):
        read_parquet(
            str(tmp_path / "gone.parquet"), 100, FIELDS, {field.id: MAX_THETA for field in FIELDS}, {}
        )


# -- Thrift


@settings(max_examples=300)
@given(st.binary(max_size=60))
def test_any_struct(data: bytes) -> None:
    cursor = Cursor(data)
    try:
        cursor.struct()
    except ThriftError:
        return
    assert 0 < cursor.position <= len(data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x15",  # a number that is not there
        b"\x15\xff",  # a number that does not end
        b"\x15" + b"\xff" * 11,  # a number that is too long
        b"\x18\x05abc",  # a text that is cut
        b"\x19\xf5\xff\xff\xff\xff\x0f",  # a list longer than the file
        b"\x1d\x00",  # no such type
        b"\x1c" * 10_000,  # structs in structs
        b"\x19" + b"\x19" * 10_000,  # lists in lists
        b"\x1b\x01\x55",  # a map, which Parquet has nowhere
    ],
    ids=lambda data: data[:6].hex(),
)
def test_bad_structs(data: bytes) -> None:
    with pytest.raises(ThriftError):
        Cursor(data).struct()
