"""Any error as one of Rookery's: one line and a hint, without secrets."""

from __future__ import annotations

from collections.abc import Sequence

from rookery.io.redaction import redact
from rookery.model import RookeryError
from rookery.tables.config import configured
from rookery.tables.java_errors import as_rookery

__all__ = ["as_rookery", "hide_secrets"]


def hide_secrets(text: str, words: Sequence[str]) -> str:
    """Hide secrets of a command's arguments, and of the configured catalogs."""
    try:
        catalogs = list(configured().values())
    except RookeryError:  # which may be the error in the text
        catalogs = []
    for properties in catalogs:
        text = redact(text, properties)
    for word in words:
        if "://" in word:
            address = word.partition("=")[2] if word.startswith("--") and "=" in word else word
            text = redact(text, location=address)
    return redact(text)
