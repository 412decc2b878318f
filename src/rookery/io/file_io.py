"""PyIceberg's access to files, with locations used as they are.

Iceberg's locations are names, not URLs: `#`, `?` and `%` have no meaning in them. PyIceberg parses them as
URLs, so it would look for `file:/lake/a#b/data` in `/lake/a`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from pyiceberg.io import (
    ARROW_FILE_IO,
    PY_IO_IMPL,
    SCHEMA_TO_FILE_IO,
    FileIO,
    InputFile,
    OutputFile,
    load_file_io,
)
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.typedef import EMPTY_DICT, Properties

from rookery.io.location import FILE_IO, local_path, scheme_of

_PATH_ONLY = ("hdfs", "viewfs")  # whose file systems are opened for their host, and given the path alone


class LocationFileIO(PyArrowFileIO):
    """Reads and writes through pyarrow, or for schemes that PyIceberg leaves to fsspec through that."""

    def __init__(self, properties: Properties = EMPTY_DICT) -> None:
        super().__init__(properties)
        self._others: dict[str, FileIO] = {}

    @staticmethod
    def parse_location(location: str, properties: Properties = EMPTY_DICT) -> tuple[str, str, str]:
        """Return scheme, host and path; all after the host is the path.

        >>> LocationFileIO.parse_location("s3://bucket/a?b#c"), LocationFileIO.parse_location("file:/a#b")
        (('s3', 'bucket', 'bucket/a?b#c'), ('file', '', '/a#b'))
        """
        scheme = scheme_of(location)
        if scheme is not None:
            host, slash, path = location.partition("://")[2].partition("/")
            return scheme, host, slash + path if scheme in _PATH_ONLY else host + slash + path
        path = os.path.abspath(local_path(location))
        if location.startswith("file:"):
            return "file", "", path
        return properties.get("DEFAULT_SCHEME", "file"), properties.get("DEFAULT_NETLOC", ""), path

    def new_input(self, location: str) -> InputFile:  # type: ignore[override]
        """Return a file to read."""
        other = self._other(location)
        return super().new_input(location) if other is None else other.new_input(location)

    def new_output(self, location: str) -> OutputFile:  # type: ignore[override]
        """Return a file to write."""
        other = self._other(location)
        return super().new_output(location) if other is None else other.new_output(location)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """Delete a file."""
        name = location if isinstance(location, str) else location.location
        other = self._other(name)
        if other is None:
            super().delete(name)
        else:
            other.delete(name)

    def _other(self, location: str) -> FileIO | None:
        """The `FileIO` that PyIceberg uses for a scheme, if it is not pyarrow's."""
        scheme = scheme_of(location)
        if scheme is None or SCHEMA_TO_FILE_IO.get(scheme, [ARROW_FILE_IO])[0] == ARROW_FILE_IO:
            return None
        if scheme not in self._others:
            stated = {key: value for key, value in self.properties.items() if key != PY_IO_IMPL}
            self._others[scheme] = load_file_io(stated, location)
        return self._others[scheme]


def file_io(properties: Mapping[str, str], location: str) -> FileIO:
    """Return the `FileIO` for a catalog's properties."""
    return load_file_io({PY_IO_IMPL: FILE_IO, **properties}, location)
