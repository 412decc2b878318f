"""Parquet below pyarrow: footers and page indexes with what pyarrow hides, and only the needed pages."""

from rookery.parquet.footer import FIRST_READ, read_footer
from rookery.parquet.groups import read_row_group
from rookery.parquet.page_index import PageIndex, read_page_index, read_page_indexes
from rookery.parquet.parquet_bloom import read_bloom
from rookery.parquet.ranges import JOIN_GAP
from rookery.parquet.slices import read_columns, read_rows, row_numbers
from rookery.parquet.structure import (
    Chunk,
    ChunkStatistics,
    Footer,
    Leaf,
    ParquetError,
    Physical,
    RowGroup,
    damaged,
)

__all__ = [
    "FIRST_READ",
    "JOIN_GAP",
    "Chunk",
    "ChunkStatistics",
    "Footer",
    "Leaf",
    "PageIndex",
    "ParquetError",
    "Physical",
    "RowGroup",
    "damaged",
    "read_bloom",
    "read_columns",
    "read_footer",
    "read_page_index",
    "read_page_indexes",
    "read_row_group",
    "read_rows",
    "row_numbers",
]
