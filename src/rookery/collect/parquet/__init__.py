"""Parquet below pyarrow: footers with what pyarrow hides, and values straight from the bytes of pages."""

from rookery.collect.parquet.footer import Chunk, Footer, Leaf, ParquetError, Physical, RowGroup, read_footer

__all__ = ["Chunk", "Footer", "Leaf", "ParquetError", "Physical", "RowGroup", "read_footer"]
