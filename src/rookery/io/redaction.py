"""Keeping secrets out of what is printed, logged or stored."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import unquote

from rookery.io.location import CONTAINERS, scheme_of, shown

HIDDEN = "***"
_SECRET_KEY = re.compile(
    r"secret|password|token|credential|(access|account|api)-key|session|sas|private|connection-string"
    r"|authorization",
    re.I,
)
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+://[^\s'\"<>()]+")
_URL_PASSWORD = re.compile(r"(://[^/:@\s]*:)[^@\s]+(@)")  # which may hold a slash
_ASSIGNED = re.compile(
    r"((?:password|passwd|pwd|secret|token|credential|(?:access|account|api)[-_.]?key)[\w.\-]*[\"']?\s*[=:]\s*)"
    r"(\"[^\"]*\"|'[^']*'|[^\s,;&)}\]]+)",
    re.I,
)
_SHORTEST = 3  # hiding shorter secrets would make the text unreadable and keep nothing secret
_LONGEST_LINE = 2000  # characters; an error of Spark may hold a plan
_SEARCHED = 4 * _LONGEST_LINE


def is_secret(key: str) -> bool:
    """Whether a catalog property of that name holds a secret.

    >>> is_secret("s3.secret-access-key"), is_secret("s3.endpoint")
    (True, False)
    """
    return _SECRET_KEY.search(key) is not None


def redact(text: str, properties: Mapping[str, object] | None = None, location: str = "") -> str:
    """Take secrets out of a text: credentials and queries of URLs, assigned passwords, secret properties.

    Where another library speaks of a *location*, what it may quote of it is hidden too.

    >>> redact("postgresql://me:pw@host/db refused s3cret, password=pw", {"token": "s3cret"})
    'postgresql://host/db refused ***, password=***'
    """
    if location:
        text = text.replace(location, shown(location))
    secrets = [str(value) for key, value in (properties or {}).items() if is_secret(key) and value]
    for secret in sorted(secrets, key=len, reverse=True):  # one may hold another
        text = text.replace(secret, HIDDEN)
    text = _URL.sub(lambda url: shown(url.group()), _URL_PASSWORD.sub(rf"\1{HIDDEN}\2", text))
    for secret in _parts(location):
        text = text.replace(secret, HIDDEN)
    return _ASSIGNED.sub(rf"\1{HIDDEN}", text)


def one_line(text: str) -> str:
    """Return a text without secrets, in one line of bounded length.

    >>> one_line("refused:\\n postgresql://me:pw@host/db?sslkey=k password=pw")
    'refused: postgresql://host/db password=***'
    """
    whole = " ".join(text.split())
    # What is searched is bounded too, and ends with a whole word: half a secret would not be known as one.
    text = redact(whole if len(whole) <= _SEARCHED else whole[:_SEARCHED].rpartition(" ")[0])
    return text if len(text) < _LONGEST_LINE and len(whole) <= _SEARCHED else text[: _LONGEST_LINE - 1] + "…"


def _parts(location: str) -> list[str]:
    """The query and the user, whole and in pieces, as written and as decoded; the longest first."""
    scheme = scheme_of(location)
    if scheme is None:
        return []
    address, _, query = location.partition("://")[2].partition("?")
    user = "" if scheme in CONTAINERS else address.partition("/")[0].rpartition("@")[0]
    pieces = {query, user, user.partition(":")[2], *(pair.partition("=")[2] for pair in query.split("&"))}
    pieces |= set(map(unquote, pieces))
    return sorted((piece for piece in pieces if len(piece) >= _SHORTEST), key=len, reverse=True)
