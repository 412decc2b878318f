"""Sources and sinks over PyIceberg's `FileIO` and over fsspec; kept apart as both are slow to import."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import lru_cache
from typing import IO, Any

import fsspec
from pyarrow.fs import FileSelector, FileSystem, FileType
from pyiceberg.io import SCHEMA_TO_FILE_IO, FileIO
from pyiceberg.io.pyarrow import PyArrowFileIO

from rookery.io.file_io import LocationFileIO, file_io
from rookery.io.listing import Listed
from rookery.io.location import STORE_HINT, scheme_of, shown
from rookery.io.redaction import redact
from rookery.io.renewal import RenewableProperties, RenewingSource, renewing
from rookery.io.s3 import S3Source, s3_object
from rookery.io.sink import SpooledSink
from rookery.io.source import InputFile, InputStream, Source
from rookery.model import MissingFileError, RookeryError, StorageError, UsageError

COPY_BYTES = 8 << 20
_BUCKETS = frozenset({"s3", "s3a", "s3n", "gs", "oss"})


@contextmanager
def _plain_errors(location: str, action: str) -> Iterator[None]:
    """Convert errors of transports, each of which has its own classes, to one line without secrets."""
    _check_bucket(location)
    try:
        yield
    except RookeryError:
        raise
    except FileNotFoundError as error:
        raise MissingFileError(f"{shown(location)}: no such file", hint="check the path") from error
    except ImportError as error:
        raise StorageError(f"{shown(location)}: {error}", hint=_install_hint(location)) from error
    except Exception as error:
        reason = redact(" ".join(str(error).split()), location=location) or type(error).__name__
        raise StorageError(
            f"{shown(location)}: cannot be {action}: {reason}",
            hint=STORE_HINT,
        ) from error


def _install_hint(location: str) -> str:
    """What to install to read a kind of URL: an extra of Rookery if there is one."""
    if scheme_of(location) in ("http", "https"):
        return "pip install 'rookery[http]'"
    return "install the package that reads this kind of URL"


def _check_bucket(location: str) -> None:
    """Refuse credentials in the place of a bucket: transports would print them as its name."""
    if scheme_of(location) in _BUCKETS and "@" in location.partition("://")[2].partition("/")[0]:
        raise UsageError(
            f"{shown(location)}: a location must not contain credentials",
            hint="set them as properties of the catalog, such as s3.access-key-id, or in the environment",
        )


class FsspecSource(Source):
    """A file of any fsspec filesystem; each read is one ranged request."""

    def __init__(self, filesystem: fsspec.AbstractFileSystem, path: str, location: str | None = None) -> None:
        self._location = location or path
        super().__init__(shown(self._location))
        self._filesystem = filesystem
        self._path = path

    def _measure(self) -> int:
        with _plain_errors(self._location, "read"):
            return int(self._filesystem.size(self._path))

    def _fetch(self, offset: int, length: int) -> bytes:
        with _plain_errors(self._location, "read"):
            data = bytes(self._filesystem.cat_file(self._path, start=offset, end=offset + length))
        if len(data) > length:
            raise StorageError(
                f"{self.name}: its server does not support range requests, and sent the whole file",
                hint="copy the file to a disk, or to a store that supports them",
            )
        return data


class InputFileSource(Source):
    """A PyIceberg `InputFile`, from any `FileIO`."""

    def __init__(self, input_file: InputFile) -> None:
        super().__init__(shown(input_file.location))
        self._input = input_file
        self._stream: InputStream | None = None

    def _measure(self) -> int:
        with _plain_errors(self._input.location, "read"):
            return len(self._input)

    def _fetch(self, offset: int, length: int) -> bytes:
        with _plain_errors(self._input.location, "read"):
            if self._stream is None:
                self._stream = self._input.open(seekable=True)
            self._stream.seek(offset)
            data = bytes(self._stream.read(length))
            while 0 < len(data) < length and (more := self._stream.read(length - len(data))):
                data += more
            return data

    def close(self) -> None:
        """Close the stream."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None


class FileIOSink(SpooledSink):
    """A file written by PyIceberg's `FileIO`, in one write, after everything else has succeeded."""

    def __init__(
        self,
        location: str,
        properties: Mapping[str, str],
        *,
        overwrite: bool,
        io_of: Callable[[Mapping[str, str], str], FileIO] | None = None,
    ) -> None:
        super().__init__(shown(location))
        self._location = location
        self._properties = properties
        self._overwrite = overwrite
        self._io_of = io_of or _file_io

    def _publish(self, spool: IO[bytes]) -> None:
        renewing(self._properties, lambda current: self._write(spool, current))

    def _write(self, spool: IO[bytes], properties: Mapping[str, str]) -> None:
        spool.seek(0)
        with _plain_errors(self._location, "written"):
            io = self._io_of(properties, self._location)
            try:
                output = io.new_output(self._location).create(overwrite=self._overwrite)
            except FileExistsError as error:
                raise StorageError(
                    f"{self.name}: exists already", hint="choose another name, or overwrite"
                ) from error
            try:
                with output as stream:
                    shutil.copyfileobj(spool, stream, COPY_BYTES)
            except BaseException:
                # Closing an object store's stream completes the upload: delete the incomplete file again.
                with suppress(Exception):
                    io.delete(self._location)
                raise


class FsspecSink(SpooledSink):
    """A file of any fsspec filesystem, written whole."""

    def __init__(
        self, filesystem: fsspec.AbstractFileSystem, path: str, *, overwrite: bool, location: str
    ) -> None:
        super().__init__(shown(location))
        self._filesystem, self._path = filesystem, path
        self._overwrite, self._location = overwrite, location

    def _publish(self, spool: IO[bytes]) -> None:
        with _plain_errors(self._location, "written"):
            if not self._overwrite and self._filesystem.exists(self._path):
                raise StorageError(f"{self.name}: exists already", hint="choose another name, or overwrite")
            self._filesystem.put_file(spool.name, self._path)


def _file_io(properties: Mapping[str, str], location: str) -> FileIO:
    """PyIceberg's `FileIO` for a location, with the connections that it has open."""
    scheme = scheme_of(location)
    return _cached_file_io(tuple(sorted(properties.items())), f"{scheme}://" if scheme else location)


@lru_cache(maxsize=16)
def _cached_file_io(properties: tuple[tuple[str, str], ...], location: str) -> FileIO:
    return file_io(dict(properties), location)


def open_remote(location: str, properties: Mapping[str, str]) -> Source:
    """Open a URL: by PyIceberg's `FileIO` where it knows the scheme, else by fsspec."""
    if isinstance(properties, RenewableProperties):
        return RenewingSource(properties, lambda current: open_remote(location, current))
    with _plain_errors(location, "read"):
        if scheme_of(location) not in SCHEMA_TO_FILE_IO:
            filesystem, path = fsspec.core.url_to_fs(location)
            return FsspecSource(filesystem, path, location)
        if (target := s3_object(location, properties)) is not None:
            return S3Source(location, target, lambda: _open_by_file_io(location, properties))
        return _open_by_file_io(location, properties)


def _open_by_file_io(location: str, properties: Mapping[str, str]) -> Source:
    with _plain_errors(location, "read"):
        return InputFileSource(_file_io(properties, location).new_input(location))


def create_remote(location: str, properties: Mapping[str, str], *, overwrite: bool) -> SpooledSink:
    """Make a URL writable, choosing as `open_remote` does."""
    with _plain_errors(location, "written"):
        if scheme_of(location) in SCHEMA_TO_FILE_IO:
            return FileIOSink(location, properties, overwrite=overwrite)
        filesystem, path = fsspec.core.url_to_fs(location)
        return FsspecSink(filesystem, path, overwrite=overwrite, location=location)


def delete_remote(location: str, properties: Mapping[str, str]) -> None:
    """Delete a URL, choosing as `open_remote` does; a missing one is not an error."""
    renewing(properties, lambda current: _delete_remote(location, current))


def _delete_remote(location: str, properties: Mapping[str, str]) -> None:
    with _plain_errors(location, "deleted"), suppress(FileNotFoundError):
        if scheme_of(location) in SCHEMA_TO_FILE_IO:
            _file_io(properties, location).delete(location)
        else:
            filesystem, path = fsspec.core.url_to_fs(location)
            filesystem.rm_file(path)


def list_remote(url: str, properties: Mapping[str, str]) -> list[str]:
    """Return every file below a URL, or the URL itself if it is a file."""
    return renewing(properties, lambda current: _list_remote(url, current))


def _list_remote(url: str, properties: Mapping[str, str]) -> list[str]:
    with _plain_errors(url, "listed"):
        if scheme_of(url) in SCHEMA_TO_FILE_IO:
            return _list_by_arrow(url, properties)
        filesystem, path = fsspec.core.url_to_fs(url)
        if not filesystem.isdir(path):
            if not filesystem.exists(path):
                raise FileNotFoundError(path)
            return [url]
        return [filesystem.unstrip_protocol(name) for name in sorted(filesystem.find(path))]


def _arrow_file_system(url: str, properties: Mapping[str, str]) -> tuple[FileSystem, str]:
    """The file system of a URL, and the path there."""
    io = _file_io(properties, url)
    arrow = io if isinstance(io, PyArrowFileIO) else LocationFileIO(dict(properties))
    scheme, authority, path = arrow.parse_location(url, dict(properties))
    return arrow.fs_by_scheme(scheme, authority), path


def _list_by_arrow(url: str, properties: Mapping[str, str]) -> list[str]:
    filesystem, path = _arrow_file_system(url, properties)
    kind = filesystem.get_file_info(path).type
    if kind is FileType.File:
        return [url]
    if kind is FileType.NotFound:
        raise FileNotFoundError(path)
    entries = filesystem.get_file_info(FileSelector(path, recursive=True))
    base = url.removesuffix(path)
    return sorted(base + info.path for info in entries if info.type is FileType.File)


def list_details(url: str, properties: Mapping[str, str], recursive: bool) -> list[Listed]:
    """Return the files below a URL with sizes and times of writing; none if there is nothing there."""

    def listed(properties: Mapping[str, str]) -> list[Listed]:
        with _plain_errors(url, "listed"):
            if scheme_of(url) in SCHEMA_TO_FILE_IO:
                return _details_by_arrow(url, properties, recursive)
            return _details_by_fsspec(url, recursive)

    return sorted(renewing(properties, listed), key=lambda file: file.location)


def _details_by_arrow(url: str, properties: Mapping[str, str], recursive: bool) -> list[Listed]:
    filesystem, path = _arrow_file_system(url, properties)
    infos = filesystem.get_file_info(FileSelector(path, allow_not_found=True, recursive=recursive))
    if not infos:
        _check_root(filesystem, url, path)
    base = url.removesuffix(path)
    # A file without a known age counts as new, so that it is not deleted.
    return [
        Listed(base + info.path, info.size or 0, (info.mtime_ns or time.time_ns()) / 1e9)
        for info in infos
        if info.type is FileType.File
    ]


def _check_root(filesystem: FileSystem, url: str, path: str) -> None:
    """An empty folder of a bucket that does not exist is no empty folder: it is the wrong store."""
    root = path.lstrip("/").partition("/")[0]
    if filesystem.type_name == "s3" and filesystem.get_file_info(root).type is FileType.NotFound:
        raise StorageError(
            f"{shown(url)}: there is no bucket '{root}'", hint="check the endpoint and the region"
        )


def _details_by_fsspec(url: str, recursive: bool) -> list[Listed]:
    filesystem, path = fsspec.core.url_to_fs(url)
    infos = filesystem.find(path, maxdepth=None if recursive else 1, detail=True)
    return [
        Listed(filesystem.unstrip_protocol(name), int(info["size"]), _seconds(info))
        for name, info in infos.items()
    ]


def _seconds(info: Mapping[str, Any]) -> float:
    """When a file was written, under the name that its file system uses; now, if it has none."""
    for key in ("mtime", "LastModified", "last_modified", "created"):
        if (stated := info.get(key)) is not None:
            return float(stated.timestamp() if isinstance(stated, datetime) else stated)
    return time.time()
