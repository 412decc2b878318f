"""Which files to load: paths, patterns, folders and URLs, each with its format."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.fs as pafs

from rookery.io import local_path, scheme_of, shown
from rookery.io.file_io import LocationFileIO, file_io
from rookery.io.redaction import reason_of
from rookery.model import MissingFileError, RookeryError, StorageError, UsageError


class Format(StrEnum):
    """A format of files, by the name that pyarrow has for it."""

    PARQUET = "parquet"
    CSV = "csv"
    JSON = "json"
    ORC = "orc"
    ARROW = "ipc"


_ENDINGS = {
    Format.PARQUET: ("parquet", "parq", "pq"),
    Format.CSV: ("csv", "tsv", "tab"),
    Format.JSON: ("jsonl", "ndjson", "json"),
    Format.ORC: ("orc",),
    Format.ARROW: ("arrow", "feather", "ipc"),
}
_BY_ENDING = {ending: kind for kind, endings in _ENDINGS.items() for ending in endings}
_MAGIC = {b"PAR1": Format.PARQUET, b"ORC": Format.ORC, b"ARROW1": Format.ARROW}
_COMPRESSED = {"gz": "gzip", "bz2": "bz2", "zst": "zstd", "lz4": "lz4"}
_KEY = re.compile(r"([^=/]+)=([^/]*)")
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_FORMATS = "Parquet, CSV, JSON Lines, ORC or Arrow, by the ending of its name"


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file to load."""

    path: str  # in its file system
    shown: str
    format: Format
    size: int
    files: pafs.FileSystem = field(repr=False)
    keys: Mapping[str, str | None] = field(default_factory=dict)  # columns that its folders name: key=value

    @property
    def ending(self) -> str:
        """The ending of its name, without that of its compression."""
        return _endings(self.path)[0]

    def open(self) -> pa.NativeFile:
        """Open it to be read from its beginning, decompressed."""
        return self.files.open_input_stream(self.path, compression=_endings(self.path)[1])

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Name the file in errors of pyarrow."""
        try:
            yield
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, OSError) as error:
            if isinstance(error, RookeryError):
                raise
            kind = StorageError if isinstance(error, OSError) else UsageError
            raise kind(
                f"{self.shown} cannot be read: {' '.join(str(error).split())}",
                hint="is the file complete, and of the format of its name? Nothing was loaded",
            ) from error


def find_inputs(locations: Sequence[str], properties: Mapping[str, str]) -> list[InputFile]:
    """Return the files to load; those of a folder in the order of their names.

    Files in folders are ignored if their names begin with a dot or an underscore, as engines do. *properties*
    are those with which a catalog opens stores.
    """
    if not locations:
        raise UsageError("no files to load", hint="rookery load FILE… TABLE")
    return [each for location in locations for each in _inputs_of(location, properties)]


def _inputs_of(location: str, properties: Mapping[str, str]) -> list[InputFile]:
    try:
        files, path = _file_system(location, properties)
        info = files.get_file_info(path)
        if info.type == pafs.FileType.File:
            return [_input(files, info, "", location)]
        if info.type == pafs.FileType.Directory:
            return list(_of_folder(files, path, location))
    except (OSError, pa.ArrowException, ValueError, ImportError) as error:
        if isinstance(error, UsageError | StorageError):
            raise
        raise StorageError(
            f"{shown(location)}: {reason_of(error, properties)}",
            hint="check the path, and the credentials of the catalog or the environment",
        ) from error
    matching = sorted(glob.glob(path, recursive=True)) if scheme_of(location) is None else []
    if not matching or path in matching:
        raise MissingFileError(f"{shown(location)}: there is no such file or folder", hint="check the path")
    return [each for match in matching for each in _inputs_of(match, properties)]


def _file_system(location: str, properties: Mapping[str, str]) -> tuple[pafs.FileSystem, str]:
    if scheme_of(location) is None:
        return pafs.LocalFileSystem(), local_path(location)
    opened = file_io(properties, location)
    if not isinstance(opened, LocationFileIO):
        raise UsageError(f"{shown(location)} cannot be loaded", hint="copy it to a local folder first")
    scheme, host, path = opened.parse_location(location, dict(properties))
    return opened.fs_by_scheme(scheme, host), path


def _of_folder(files: pafs.FileSystem, path: str, location: str) -> Iterator[InputFile]:
    found = files.get_file_info(pafs.FileSelector(path, recursive=True))
    loaded = 0
    for info in sorted(found, key=lambda each: each.path):
        below = info.path[len(path) :].lstrip("/")
        if info.type == pafs.FileType.Directory and isinstance(files, pafs.LocalFileSystem):
            _check_link(info.path)
        if info.type == pafs.FileType.File and not any(part[:1] in "._" for part in below.split("/")):
            loaded += 1
            yield _input(files, info, below, f"{location.rstrip('/')}/{below}")
    if not loaded:
        raise MissingFileError(f"{shown(location)}: the folder has no files", hint="check the path")


def _check_link(folder: str) -> None:
    """Refuse a folder that is within itself: its files would be loaded many times."""
    if os.path.islink(folder) and Path(folder).parent.resolve().is_relative_to(Path(folder).resolve()):
        raise UsageError(f"{folder} is a link to a folder that it is in", hint="remove the link")


def _input(files: pafs.FileSystem, info: pafs.FileInfo, below: str, location: str) -> InputFile:
    kind = _BY_ENDING.get(_endings(info.path)[0]) or _by_content(files, info.path)
    if kind is None:
        raise UsageError(f"{shown(location)} is of an unknown format", hint=f"a file must be {_FORMATS}")
    return InputFile(
        path=info.path,
        shown=shown(location),
        format=kind,
        size=info.size or 0,
        files=files,
        keys=_keys(below),
    )


def _by_content(files: pafs.FileSystem, path: str) -> Format | None:
    with files.open_input_stream(path, compression=None) as opened:
        start = opened.read(8)
    return next((kind for magic, kind in _MAGIC.items() if start.startswith(magic)), None)


def _endings(path: str) -> tuple[str, str | None]:
    """Return the ending that tells the format, and the compression.

    >>> _endings("a/b.csv.gz"), _endings("a.b/c")
    (('csv', 'gzip'), ('', None))
    """
    parts = path.rpartition("/")[2].lower().split(".")[1:]
    compression = _COMPRESSED.get(parts[-1]) if parts else None
    if compression:
        parts.pop()
    return parts[-1] if parts else "", compression


def _keys(below: str) -> dict[str, str | None]:
    """Return the columns that folders name.

    >>> _keys("day=2024-01-01/city=New%20York/part-0.parquet")
    {'day': '2024-01-01', 'city': 'New York'}
    """
    pairs = [_KEY.fullmatch(part) for part in below.split("/")[:-1]]
    return {
        unquote(pair[1]): None if pair[2] == _NO_VALUE else unquote(pair[2])
        for pair in pairs
        if pair is not None
    }
