"""Whatever went wrong, as an error of Rookery's: one line and a hint."""

from __future__ import annotations

from rookery.tables.iceberg.java_errors import as_rookery

__all__ = ["as_rookery"]
