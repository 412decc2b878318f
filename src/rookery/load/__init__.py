"""Rows of files of any format that pyarrow reads, for a table: their types, and the lines that are wrong."""

from rookery.load.appended import check_columns
from rookery.load.inputs import find_inputs
from rookery.load.rows import InputRows, examine

__all__ = ["InputRows", "check_columns", "examine", "find_inputs"]
