"""What a location is: a local path, or a URL; and how it is shown without its secrets."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.\-]+)://")
_LOCAL_URL = re.compile(r"^file:(?://[^/]*)?(?=/)")


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
    if scheme_of(location) is None:
        return location
    parts = urlsplit(location)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def without_secrets(text: str, location: str) -> str:
    """Take out of *text*, another library's words about *location*, what `shown` would hide."""
    parts = urlsplit(location) if scheme_of(location) else None
    text = text.replace(location, shown(location))
    for secret in (parts.query, parts.netloc.rpartition("@")[0]) if parts else ():
        if secret:
            text = text.replace(secret, "***")
    return text
