"""One way to open anything: a path, a URL, bytes, a PyIceberg file."""

from __future__ import annotations

import os
from collections.abc import Mapping

from rookery.io.location import local_path, scheme_of
from rookery.io.sink import LocalSink, Sink
from rookery.io.source import BytesSource, InputFile, LocalSource, Source
from rookery.model import MissingFileError

Readable = str | os.PathLike[str] | bytes | bytearray | memoryview | InputFile | Source
Writable = str | os.PathLike[str] | Sink


def open_source(what: Readable, properties: Mapping[str, str] | None = None) -> Source:
    """Open *what* for reading ranges; *properties* are a catalog's, for the credentials of a URL."""
    if isinstance(what, Source):
        return what
    if isinstance(what, bytes | bytearray | memoryview):
        return BytesSource(what)
    if isinstance(what, os.PathLike):
        return LocalSource(os.fspath(what))
    # The remote module takes half a second to import, which a local file does not need.
    if isinstance(what, str):
        if scheme_of(what) is None:
            return LocalSource(what)
        from rookery.io.remote import open_remote

        return open_remote(what, properties or {})
    from rookery.io.remote import InputFileSource

    return InputFileSource(what)


def create_sink(
    where: Writable,
    properties: Mapping[str, str] | None = None,
    *,
    overwrite: bool = False,
    durable: bool = True,
) -> Sink:
    """Make a sink for a path or a URL; nothing appears there before its commit.

    One that is not *durable* may be lost if the machine fails right after.
    """
    if isinstance(where, Sink):
        return where
    location = os.fspath(where)
    if scheme_of(location) is None:
        return LocalSink(location, overwrite=overwrite, durable=durable)
    from rookery.io.remote import create_remote

    return create_remote(location, properties or {}, overwrite=overwrite)


def list_files(
    where: str, suffixes: tuple[str, ...], properties: Mapping[str, str] | None = None
) -> list[str]:
    """Return the files below a folder with these suffixes, sorted; for a file, the file itself."""
    if scheme_of(where) is not None:
        from rookery.io.remote import list_remote

        listed = list_remote(where, properties or {})
        return listed if listed == [where] else [name for name in listed if name.endswith(suffixes)]
    folder = local_path(where)
    if os.path.isfile(folder):
        return [where]
    if not os.path.isdir(folder):
        raise MissingFileError(f"{where}: no such file or folder", hint="check the path")
    return sorted(
        os.path.join(parent, name)
        for parent, _, names in os.walk(folder)
        for name in names
        if name.endswith(suffixes) and not name.startswith(".")
    )
