"""Properties of Iceberg tables: their names, defaults, and how numbers are read."""

from __future__ import annotations

from collections.abc import Mapping

FILE_FORMAT = "write.format.default"
TARGET_FILE_SIZE = "write.target-file-size-bytes"
DEFAULT_FILE_SIZE = 512 << 20
TARGET_MANIFEST_SIZE = "commit.manifest.target-size-bytes"
DEFAULT_MANIFEST_SIZE = 8 << 20


def number_of(properties: Mapping[str, str], key: str, default: int) -> int:
    """Return a table's property as a whole number; anything else is ignored."""
    stated = properties.get(key, "").strip()
    return int(stated) if stated.isascii() and stated.isdigit() else default
