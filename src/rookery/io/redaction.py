"""Removing secrets from what is printed, logged or stored."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote, quote_plus, unquote, unquote_plus

from rookery.io.location import CONTAINERS, scheme_of, shown

HIDDEN = "***"
_HIDDEN_NAMES = r"secret|password|token|credential|(?:access|account|api)[-_.]?key"
_SECRET_KEY = re.compile(rf"{_HIDDEN_NAMES}|session|sas|private|connection-string|authorization", re.I)
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+://[^\s'\"<>()]+")
_URL_PASSWORD = re.compile(r"(://[^/:@\s]*:)[^@\s]+(@)")  # which may contain a slash
_ASSIGNED = re.compile(
    rf"((?:{_HIDDEN_NAMES}|passwd|pwd)[\w.\-]*[\"']?\s*[=:]\s*)"
    r"(\"[^\"]*\"|'[^']*'|[^\s,;&)}\]]+)",
    re.I,
)
_QUERY = re.compile(r"(/[^\s?'\"<>()]*)\?[^\s'\"<>()]*=[^\s'\"<>()]*")  # of an address without its host
_USER = re.compile(r"://([^/:@\s?#]*(?::[^@\s]*)?)@")  # whose password may contain slashes and question marks
# Parts of queries that are not secret: how to connect, not as which user.
_OPEN_KEY = re.compile(
    r"(connect_)?timeout|sslmode|charset|application_name|check_same_thread|mode|cache", re.I
)
_PYDANTIC = re.compile(r"Value error, (.*?) \[type=")
_SHORTEST = 3  # hiding shorter secrets would make the text unreadable and keep nothing secret
_LONGEST_LINE = 2000  # characters; an error of Spark may contain a plan
_SEARCHED = 4 * _LONGEST_LINE


def is_secret(key: str) -> bool:
    """Whether a catalog property of that name holds a secret.

    >>> is_secret("s3.secret-access-key"), is_secret("s3.endpoint")
    (True, False)
    """
    return _SECRET_KEY.search(key) is not None


def redact(text: str, properties: Mapping[str, object] | None = None, location: str = "") -> str:
    """Remove secrets from a text: credentials and queries of URLs, assigned passwords, secret properties.

    For errors of other libraries about a *location*, what they may quote of it is hidden too.

    >>> redact("postgresql://me:pw@host/db refused s3cret, password=pw", {"token": "s3cret"})
    'postgresql://host/db refused ***, password=***'
    """
    given = {key: str(value) for key, value in (properties or {}).items() if value}
    addresses = [location, *(value for key, value in given.items() if not is_secret(key) and "://" in value)]
    for address in filter(None, addresses):
        text = text.replace(address, shown(_without_password(address)))
    secrets = {secret for key, value in given.items() if is_secret(key) for secret in _pieces(value)}
    text = _hidden(text, secrets)
    text = _URL.sub(lambda url: shown(url.group()), _without_password(text))
    text = _hidden(text, {part for address in addresses for part in _parts(address)})
    return _ASSIGNED.sub(rf"\1{HIDDEN}", _QUERY.sub(r"\1", text))


def _without_password(text: str) -> str:
    return _URL_PASSWORD.sub(rf"\1{HIDDEN}\2", text)


def _hidden(text: str, secrets: set[str]) -> str:
    for secret in sorted(_spellings(secrets), key=len, reverse=True):  # one may contain another
        text = text.replace(secret, HIDDEN)
    return text


def _spellings(secrets: set[str]) -> set[str]:
    """Secrets as libraries quote them: as they are, decoded, encoded for URLs, and escaped."""
    forms = set(secrets)
    for decode in (unquote, unquote_plus):
        forms |= set(map(decode, secrets))
    for encode in (quote, quote_plus):
        forms |= {encode(secret, safe="") for secret in forms}
    return forms | {repr(secret)[1:-1] for secret in forms}


def one_line(text: str) -> str:
    """Return a text without secrets, in one line of bounded length.

    >>> one_line("refused:\\n postgresql://me:pw@host/db?sslkey=k password=pw")
    'refused: postgresql://host/db password=***'
    """
    whole = " ".join(text.split())
    # The searched text is limited too, and ends with a whole word: half a secret would not be recognised.
    text = redact(whole if len(whole) <= _SEARCHED else whole[:_SEARCHED].rpartition(" ")[0])
    return text if len(text) < _LONGEST_LINE and len(whole) <= _SEARCHED else text[: _LONGEST_LINE - 1] + "…"


def reason_of(error: Exception, properties: Mapping[str, str]) -> str:
    """Return another library's error as one line, without secrets."""
    text = " ".join(str(error).split())
    match = _PYDANTIC.search(text)  # pydantic quotes the input and adds a link
    return redact(match.group(1) if match else text, properties) or type(error).__name__


def _pieces(secret: str) -> set[str]:
    """A secret, and the second half of a pair as `client:secret`."""
    return {secret} | {half for half in [secret.partition(":")[2]] if len(half) >= _SHORTEST}


def _parts(address: str) -> set[str]:
    """The query and the user of an address, whole and in pieces."""
    before, separator, rest = address.partition("://")
    if not separator or (scheme_of(address) is None and not before.startswith("jdbc:")):
        return set()
    pieces = {query for mark in "?#" if (query := rest.partition(mark)[2])}
    for query in list(pieces):
        pairs = [pair.partition("=") for pair in re.split("[&;#?]", query)]
        pieces |= {value or key for key, _, value in pairs if not _OPEN_KEY.fullmatch(key)}
    if before.rpartition(":")[2].lower() not in CONTAINERS:
        users = {match.group(1) for match in [_USER.match("://" + rest)] if match}
        users.add(re.split("[/?#]", rest, maxsplit=1)[0].rpartition("@")[0])
        passwords = {user.partition(":")[2] for user in users}
        pieces |= users | passwords | {half for word in passwords for half in re.split("[/?#]", word)}
    return {piece for piece in pieces if len(piece) >= _SHORTEST and piece not in before}
