"""Kinds of locations: a local path, or a URL; and how it is shown without its secrets."""

from __future__ import annotations

import re

FILE_IO = "rookery.io.file_io.LocationFileIO"  # by its name: importing it costs half a second
_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.\-]+)://")
_LOCAL_URL = re.compile(r"^file:(?://[^/]*)?(?=/)")
STORE_HINT = "check that the store is reachable, and the credentials of the catalog or the environment"
CONTAINERS = ("abfs", "abfss", "wasb", "wasbs")  # in these, the part before the @ is a container


def scheme_of(location: str) -> str | None:
    """Return the URL scheme, or None for a local path (also one written as `file:`).

    >>> scheme_of("s3://bucket/a.puffin"), scheme_of("/tmp/a"), scheme_of("file:/tmp/a")
    ('s3', None, None)
    """
    if _LOCAL_URL.match(location):
        return None
    match = _SCHEME.match(location)
    return match.group(1).lower() if match else None


def local_path(location: str) -> str:
    """Return the path of a local location. Iceberg does not percent-encode, so nothing is decoded.

    >>> local_path("file:///tmp/a b"), local_path("file:/tmp/x"), local_path("x")
    ('/tmp/a b', '/tmp/x', 'x')
    """
    return _LOCAL_URL.sub("", location)


def shown(location: str) -> str:
    """Return the location as it may be printed: with no user, password or signed query.

    >>> shown("https://me:secret@host/a.puffin?sig=123")
    'https://host/a.puffin'
    """
    scheme = scheme_of(location)
    if scheme is None:
        return location
    start, separator, rest = location.partition("://")
    authority, slash, path = re.split(r"[?#]", rest, maxsplit=1)[0].partition("/")
    if scheme not in CONTAINERS:
        authority = authority.rpartition("@")[2]
    return start + separator + authority + slash + path
