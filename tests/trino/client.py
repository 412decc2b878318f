"""Statements to Trino over its HTTP protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import requests

SECONDS = 120


class TrinoError(Exception):
    """What Trino says of a statement that failed."""


@dataclass(frozen=True, slots=True)
class ColumnEstimates:
    """What SHOW STATS says of a column; None is unknown."""

    ndv: float | None
    null_fraction: float | None
    low: str | None
    high: str | None


@dataclass(frozen=True, slots=True)
class Estimates:
    """What SHOW STATS says of a table."""

    rows: float | None
    columns: Mapping[str, ColumnEstimates]

    def capped(self, column: str, ndv: float | None) -> float | None:
        """Return what Trino makes of a registered number: no more than there are values that are not null."""
        if ndv is None or self.rows is None:
            return ndv
        return min(ndv, self.rows * (1 - (self.columns[column].null_fraction or 0)))


@dataclass(frozen=True, slots=True)
class Trino:
    """A running server."""

    uri: str

    def ready(self) -> bool:
        """Whether the server takes statements."""
        try:
            answer = requests.get(f"{self.uri}/v1/info", timeout=5)
        except (requests.ConnectionError, requests.Timeout):
            return False
        return answer.ok and not answer.json()["starting"]

    def sql(self, text: str) -> list[list[Any]]:
        """Run a statement and return its rows, values as JSON has them; times are in UTC."""
        headers = {
            "X-Trino-User": "tests",
            "X-Trino-Catalog": "lake",
            "X-Trino-Time-Zone": "UTC",
            "X-Trino-Client-Capabilities": "PARAMETRIC_DATETIME",  # else times are cut to milliseconds
        }
        answer = requests.post(f"{self.uri}/v1/statement", text.encode(), headers=headers, timeout=SECONDS)
        rows: list[list[Any]] = []
        while True:
            answer.raise_for_status()
            page = answer.json()
            if "error" in page:
                raise TrinoError(f"{page['error']['message']}: {text}")
            rows += page.get("data", [])
            if "nextUri" not in page:
                return rows
            answer = requests.get(page["nextUri"], timeout=SECONDS)

    def show_stats(self, table: str) -> Estimates:
        """What Trino's optimizer knows of a table."""
        *columns, last = self.sql(f"SHOW STATS FOR {table}")
        return Estimates(
            last[4],
            {name: ColumnEstimates(ndv, nulls, low, high) for name, _, ndv, nulls, _, low, high in columns},
        )
