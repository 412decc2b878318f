"""The Spark that Rookery works with, and what a session or an installation has instead."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec

from rookery.model import MachineError

SPARK, SCALA = "4.1", "2.13"
_RUNTIME = re.compile(r"iceberg-spark-runtime-(\d+\.\d+)_(\d+\.\d+)")
JARS = ("spark.jars.packages", "spark.jars")


def check_installed() -> None:
    """Raise an error if the PySpark of this Python is of another version; no JVM is started for that."""
    if find_spec("pyspark") is not None:
        check_version(import_module("pyspark.version").__version__, "the installed PySpark is")


def check_version(found: str, what: str) -> None:
    """Raise an error if a version is not that of the Spark that Rookery works with.

    >>> check_version("4.1.2", "this session is of Spark")
    """
    if not re.match(rf"{re.escape(SPARK)}(\.|$)", found):
        raise MachineError(
            f"Rookery works with Spark {SPARK}, and {what} {found}",
            hint=f"pip install 'pyspark=={SPARK}.*', and use a cluster of that version; "
            "commands and calls that read without Spark work with any",
        )


def check_runtime(settings: Mapping[str, str]) -> None:
    """Raise an error if the settings of a session name an Iceberg for another Spark or Scala.

    >>> check_runtime({"spark.jars.packages": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"})
    """
    for key in JARS:
        for spark, scala in _RUNTIME.findall(settings.get(key, "")):
            if (spark, scala) != (SPARK, SCALA):
                raise MachineError(
                    f"{key} has Iceberg for Spark {spark} and Scala {scala}, and Spark is {SPARK} with Scala "
                    f"{SCALA}",
                    hint=f"use iceberg-spark-runtime-{SPARK}_{SCALA}",
                )
