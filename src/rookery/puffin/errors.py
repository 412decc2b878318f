"""Errors in Puffin files."""

from rookery.model import FormatError


class PuffinError(FormatError):
    """The bytes are not a valid Puffin file."""


class UnsupportedPuffinError(PuffinError):
    """The file uses a flag or a codec that the specification (or this reader) does not know."""


class PuffinLimitError(PuffinError):
    """The file claims a size beyond the limit that the reader was given."""


class DeletionVectorError(PuffinError):
    """The payload is not a valid `deletion-vector-v1`."""
