"""Keeping secrets out of what is printed, logged or kept."""

from __future__ import annotations

import re
from collections.abc import Mapping

_SECRET_KEY = re.compile(
    r"secret|password|token|credential|(access|account|api)-key|session|sas|private|connection-string"
    r"|authorization",
    re.I,
)
_URL_PASSWORD = re.compile(r"(://[^/:@\s]*:)[^@\s]+(@)")
HIDDEN = "***"


def is_secret(key: str) -> bool:
    """Whether a catalog property of that name holds a secret.

    >>> is_secret("s3.secret-access-key"), is_secret("s3.endpoint")
    (True, False)
    """
    return _SECRET_KEY.search(key) is not None


def redact(text: str, properties: Mapping[str, object] | None = None) -> str:
    """Take passwords in URLs, and the values of secret properties, out of a text.

    >>> redact("postgresql://me:pw@host/db refused s3cret", {"token": "s3cret"})
    'postgresql://me:***@host/db refused ***'
    """
    secrets = [str(value) for key, value in (properties or {}).items() if is_secret(key) and value]
    for secret in sorted(secrets, key=len, reverse=True):  # one may hold another
        text = text.replace(secret, HIDDEN)
    return _URL_PASSWORD.sub(rf"\1{HIDDEN}\2", text)
