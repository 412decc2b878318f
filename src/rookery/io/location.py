"""What a location is: a local path, or a URL; and how it is shown without its secrets."""

from __future__ import annotations

import re
from urllib.parse import unquote

FILE_IO = "rookery.io.file_io.LocationFileIO"  # by its name: importing it costs half a second
_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.\-]+)://")
_LOCAL_URL = re.compile(r"^file:(?://[^/]*)?(?=/)")
_URL_IN_TEXT = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+://[^\s'\"<>()]+")
STORE_HINT = "check that the store is reachable, and the credentials of the catalog or the environment"
_CONTAINERS = ("abfs", "abfss", "wasb", "wasbs")  # in these, what stands before the @ is a container
_SHORTEST_SECRET = 3  # hiding shorter ones would make a riddle of the text and keep nothing secret


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
    if scheme not in _CONTAINERS:
        authority = authority.rpartition("@")[2]
    return start + separator + authority + slash + path


def without_secrets(text: str, location: str) -> str:
    """Take out of *text*, another library's words about *location*, what `shown` would hide."""
    text = text.replace(location, shown(location))
    text = _URL_IN_TEXT.sub(lambda url: shown(url.group()), text)  # some print it encoded in another way
    for secret in _secrets(location):
        text = text.replace(secret, "***")
    return text


def _secrets(location: str) -> list[str]:
    """The query and the user, whole and in pieces, as written and as decoded; the longest first."""
    scheme = scheme_of(location)
    if scheme is None:
        return []
    address, _, query = location.partition("://")[2].partition("?")
    user = "" if scheme in _CONTAINERS else address.partition("/")[0].rpartition("@")[0]
    pieces = {query, user, user.partition(":")[2], *(pair.partition("=")[2] for pair in query.split("&"))}
    pieces |= set(map(unquote, pieces))
    return sorted((piece for piece in pieces if len(piece) >= _SHORTEST_SECRET), key=len, reverse=True)
