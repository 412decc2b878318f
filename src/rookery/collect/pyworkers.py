"""Spark's Python workers: faster start of tasks, and readable errors."""

from __future__ import annotations

import gc
import re
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING
from zipimport import zipimporter

from rookery.collect.context_setting import ContextSetting
from rookery.collect.interpreters import check_workers, is_local, own_python
from rookery.model import MachineError, RookeryError
from rookery.tables.java_errors import CancelledError, failure_hint, java_reason, translate_java_error

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_INCLUDES = ContextSetting("_python_includes")
_PYTHON_ERROR = re.compile(r"^(?:[\w.]+\.)?(?P<kind>\w+(?:Error|Exception)): (?P<message>.*)", re.M)


@contextmanager
def on_spark(spark: SparkSession) -> Iterator[None]:
    """Run work in Python workers: quickly, and with errors of one line instead of a stack trace."""
    with _no_jars_on_python_path(spark), own_python(spark):
        try:
            if not is_local(spark.sparkContext.master):
                check_workers(spark)
            yield
        except RookeryError:
            raise
        except Exception as error:
            meant = translate_java_error(error, "reading")
            if isinstance(meant, CancelledError | MachineError):
                raise meant from error
            reason = _reason(error)
            raise WorkError(
                f"reading failed on Spark: {reason}", hint=f"{failure_hint(reason)} Nothing was registered"
            ) from error


class WorkError(RookeryError):
    """A task failed on an executor."""


def _reason(error: Exception) -> str:
    """What the worker's Python raised, or else Java's error."""
    raised = list(_PYTHON_ERROR.finditer(str(error))) if type(error).__name__ == "PythonException" else []
    return raised[-1].group("message") if raised else java_reason(error)


def _no_jars_on_python_path(spark: SparkSession) -> AbstractContextManager[None]:
    """Keep jars off the path of Python workers whose work is planned inside.

    Spark puts the jars of `spark.jars.packages` there, for packages that carry Python code. Workers then read
    the directory of each jar again for every task: a quarter of a second for Iceberg's. None is needed here.
    """
    return _INCLUDES.changed(
        spark.sparkContext, lambda names: [name for name in names or () if not name.endswith(".jar")]
    )


def forget_jars() -> None:
    """Take jars off the path of this process, if earlier work has put them there. Called in a worker.

    Work that needs them puts them there again. Between tasks a worker reads the directory of every archive
    that it has ever imported from, Spark's own included, and looks at every object for garbage: nearly a
    fifth of a second. Finders that were removed are made again from a cache when an import needs them.
    """
    sys.path[:] = [entry for entry in sys.path if not entry.endswith(".jar")]
    for entry, finder in list(sys.path_importer_cache.items()):
        if entry.endswith(".jar") or isinstance(finder, zipimporter):
            del sys.path_importer_cache[entry]
    if gc.get_freeze_count() == 0:  # once: the objects so far are modules, which stay
        gc.freeze()
