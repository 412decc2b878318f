"""The Puffin file format: layout, reader, writer, codecs, footer; and the deletion vectors it defines."""

from rookery.puffin.copy import KEEP, copy_blobs, selection
from rookery.puffin.deletion_vector import DeletionVector
from rookery.puffin.errors import DeletionVectorError, PuffinError, PuffinLimitError, UnsupportedPuffinError
from rookery.puffin.metadata import (
    DELETION_VECTOR_V1,
    THETA_V1,
    Blob,
    BlobMetadata,
    FileMetadata,
    WrittenFile,
)
from rookery.puffin.reader import DEFAULT_LIMITS, Limits, Reader, open_puffin
from rookery.puffin.writer import Writer

__all__ = [
    "DEFAULT_LIMITS",
    "DELETION_VECTOR_V1",
    "KEEP",
    "THETA_V1",
    "Blob",
    "BlobMetadata",
    "DeletionVector",
    "DeletionVectorError",
    "FileMetadata",
    "Limits",
    "PuffinError",
    "PuffinLimitError",
    "Reader",
    "UnsupportedPuffinError",
    "Writer",
    "WrittenFile",
    "copy_blobs",
    "open_puffin",
    "selection",
]
