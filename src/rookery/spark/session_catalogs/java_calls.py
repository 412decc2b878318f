"""Calls of `RookeryCatalogs`, which is compiled in the session's JVM."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from rookery.tables.java_code import call_compiled, joined_sources

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FOLDER = files("rookery.spark.session_catalogs").joinpath("java")
STORAGE = _FOLDER.joinpath("Storage.java")


def ask(spark: SparkSession, question: str, catalog: str | None = None, parts: Sequence[str] = ()) -> Any:
    """Ask about a catalog, or a name in it; what Java throws is raised as py4j wraps it."""
    names = spark._jvm.java.util.ArrayList()  # type: ignore[union-attr]
    for part in parts:
        names.add(part)
    session = spark._jsparkSession
    return json.loads(
        call_compiled(spark, "RookeryCatalogs", _source(), "ask", session, question, catalog, names)
    )


@cache
def _source() -> str:
    return joined_sources([STORAGE, _FOLDER.joinpath("RookeryCatalogs.java")])
