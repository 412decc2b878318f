"""Blob types: a module each with what is known of it, and the registry that lists them."""

from rookery.blobs.blob_type import BlobType, Summarize, Summary
from rookery.blobs.ndv import NDV
from rookery.blobs.registry import BLOB_TYPES, CHECKS, KNOWN, is_carried

__all__ = [
    "BLOB_TYPES",
    "CHECKS",
    "KNOWN",
    "NDV",
    "BlobType",
    "Summarize",
    "Summary",
    "is_carried",
]
