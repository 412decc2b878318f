"""Parquet below pyarrow: footers with what pyarrow hides, and values straight from the bytes of pages."""

from rookery.parquet.footer import (
    FIRST_READ,
    Chunk,
    Footer,
    Leaf,
    ParquetError,
    Physical,
    RowGroup,
    damaged,
    read_footer,
)

__all__ = [
    "FIRST_READ",
    "Chunk",
    "Footer",
    "Leaf",
    "ParquetError",
    "Physical",
    "RowGroup",
    "damaged",
    "read_footer",
]
