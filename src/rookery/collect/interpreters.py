"""The Python that Spark's workers run: it must have Rookery, as the one of this process has.

Spark runs `python3` of the PATH, or `PYSPARK_PYTHON`. In a virtual environment that is not activated, that is
another interpreter. On this machine, the one of this process is used instead. On a cluster, only its
configuration can say where there is one.
"""

from __future__ import annotations

import builtins
import sys
from contextlib import AbstractContextManager, nullcontext
from types import FunctionType
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from rookery.collect.context_setting import ContextSetting
from rookery.model import MachineError
from rookery.model.interrupts import check_interrupted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CAUSES = ("PYTHON_VERSION_MISMATCH", "Cannot run program", "No module named")
_PYTHON = ContextSetting("pythonExec")
_CHECKED: WeakKeyDictionary[Any, str] = (
    WeakKeyDictionary()
)  # the interpreter of each context that has Rookery


def own_python(spark: SparkSession) -> AbstractContextManager[None]:
    """Let workers of this machine run the interpreter of this process for what is planned inside."""
    context: Any = spark.sparkContext
    if not is_local(context.master):
        return nullcontext()
    return _PYTHON.changed(context, lambda _: sys.executable)


def is_local(master: str | None) -> bool:
    """Whether the workers are on this machine, as children of this process.

    >>> is_local("local[4]"), is_local("local-cluster[2,1,1024]"), is_local("yarn")
    (True, False, False)
    """
    return master is not None and (master == "local" or master.startswith("local["))


def check_workers(spark: SparkSession) -> None:
    """Raise `MachineError` if the executors' Python has no Rookery; asked once, by a job of one task."""
    context: Any = spark.sparkContext
    if _CHECKED.get(context) == context.pythonExec:
        return
    try:
        ((executable, reason),) = context.parallelize([None], 1).map(_by_value()).collect()
    except Exception as error:  # the interpreter does not start, or has another version
        check_interrupted(error)
        raise _refused(context.pythonExec, _first_cause(error)) from error
    if reason:
        raise _refused(executable, reason)
    _CHECKED[context] = context.pythonExec


def _refused(executable: str, reason: str) -> MachineError:
    return MachineError(
        f"the executors run {executable}, in which Rookery cannot be used: {reason}; this process runs "
        f"{sys.executable}",
        hint="set PYSPARK_PYTHON or --conf spark.pyspark.python to a Python of the same version that has "
        "Rookery, on all nodes",
    )


def _first_cause(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines()]
    telling = [line for line in lines if any(cause in line for cause in _CAUSES)]
    return (telling or lines or [type(error).__name__])[0]


def _by_value() -> FunctionType:
    """The function as one of `__main__`, which is sent whole: importing it would need Rookery."""
    return FunctionType(_answer.__code__, {"__name__": "__main__", "__builtins__": builtins})


def _answer(_: object) -> tuple[str, str]:
    import sys
    from importlib import import_module

    try:
        import_module("rookery.collect.task")
    except Exception as error:  # noqa: BLE001  # any error of an import is the answer
        return sys.executable, str(error)
    return sys.executable, ""
