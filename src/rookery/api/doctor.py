"""`rookery doctor`: what this machine has, what it lacks, and what to do about it."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TypeVar

from rookery.api.lake import Lake
from rookery.io import STORE_HINT, local_path, shown
from rookery.io.file_io import file_io
from rookery.io.redaction import redact
from rookery.model import (
    CatalogError,
    Check,
    CheckOutcome,
    MachineError,
    Report,
    RookeryError,
    Sheet,
    UsageError,
    counted,
    findings,
)
from rookery.model.check import check_sheet
from rookery.spark import find_java, hidden_stores, spark_catalog
from rookery.spark.versions import SPARK
from rookery.tables.config import configured, resolve, sqlite_path
from rookery.tables.formats import open_catalog

__all__ = ["DoctorReport", "doctor"]

T = TypeVar("T")
_SECONDS = 20.0  # that a catalog or a store is waited for
_OLDEST_PYTHON = (3, 11)
_IVY_JARS = Path(".ivy2.5.2") / "jars"


_RULES = {
    "python": "Python 3.11 or newer",
    "java": "Java 17 or newer",
    "spark": f"PySpark {SPARK}",
    "jars": "Iceberg's jars are installed",
    "catalog": "the catalog answers",
    "read": "its tables can be read",
    "write": "the warehouse can be written to",
    "others": "the other configured catalogs answer, and their tables can be read",
}
_HINTS = {
    "catalog": "check the catalog's uri and that its server runs",
    "read": STORE_HINT,
    "write": "check the warehouse's address, its permissions and the credentials",
}


@dataclass(frozen=True, slots=True)
class DoctorReport(Report):
    """The checks, in order."""

    checks: tuple[Check, ...]

    @property
    def has_findings(self) -> bool:  # type: ignore[override]
        """Whether something must be fixed."""
        return bool(findings(self.checks))

    def sheets(self) -> Sequence[Sheet]:
        """One line per check, with a hint if something must be fixed."""
        return [check_sheet("", self.checks)]


def _python(lake: Lake) -> Check:
    running = ".".join(map(str, sys.version_info[:3]))
    return Check.of(
        "python",
        _RULES["python"],
        sys.version_info >= _OLDEST_PYTHON,
        running,
        "install Python 3.11 or newer",
    )


def _java(lake: Lake) -> Check:
    try:
        java = find_java()
    except MachineError as error:
        if _pyspark() is not None:
            raise
        return _optional("java", error.message)
    return Check("java", _RULES["java"], CheckOutcome.OK, f"{java.major} at {java.path}")


def _pyspark() -> str | None:
    """The version of PySpark; None if it is not installed."""
    try:
        return version("pyspark")
    except PackageNotFoundError:
        return None


def _optional(name: str, detail: str) -> Check:
    """A check of what only commands that start Spark need, on a machine without PySpark."""
    return Check(name, _RULES[name], CheckOutcome.NOTE, f"optional, for commands that start Spark: {detail}")


def _spark(lake: Lake) -> Check:
    installed = _pyspark()
    if installed is None:
        return replace(_optional("spark", "not installed"), hint="pip install 'rookery[spark]'")
    return Check.of(
        "spark",
        _RULES["spark"],
        installed.startswith(f"{SPARK}."),
        installed,
        f"pip install 'pyspark=={SPARK}.*'",
    )


def _jars(lake: Lake) -> Check:
    try:
        stores = _within(_SECONDS, lambda: hidden_stores(lake.config))
    except CatalogError:  # which the next check reports
        stores = frozenset()
    packages = spark_catalog(lake.config, stores).packages
    folder = Path.home() / _IVY_JARS
    missing = [package for package in packages if not (folder / _jar_name(package)).exists()]
    if missing and _pyspark() is None:
        return _optional("jars", "downloaded by the first session")
    if missing:
        names = ", ".join(package.split(":")[1] for package in missing)
        return Check("jars", _RULES["jars"], CheckOutcome.NOTE, f"downloaded by the first session: {names}")
    return Check("jars", _RULES["jars"], CheckOutcome.OK, f"{len(packages)} in {folder}")


def _jar_name(package: str) -> str:
    group, artifact, number = package.split(":")
    return f"{group}_{artifact}-{number}.jar"


def _catalog(lake: Lake) -> Check:
    if (folder := _embedded_to_come(lake)) is not None:
        return Check(
            "catalog", _RULES["catalog"], CheckOutcome.NOTE, f"created by the first table, in {folder}"
        )
    count = _within(_SECONDS, lambda: open_catalog(lake.config).count_namespaces())
    return Check(
        "catalog",
        _RULES["catalog"],
        CheckOutcome.OK,
        f"'{lake.name}' ({lake.config.type}), {counted(count, 'namespace')}",
    )


def _embedded_to_come(lake: Lake) -> Path | None:
    """The folder of the embedded catalog, if nothing has created that yet."""
    path = sqlite_path(lake.properties.get("uri", "")) if lake.config.is_embedded else None
    return None if path is None or Path(path).exists() else Path(path).parent


def _read(lake: Lake) -> Check:
    """Read what every other command reads first: a table's manifest list, and its sidecar files."""
    name = _within(_SECONDS, lambda: next(lake.tables(), None))
    if name is None:
        return Check("read", _RULES["read"], CheckOutcome.NOTE, f"'{lake.name}' has no table yet")
    table, store = _within(_SECONDS, lambda: lake.open(name))
    snapshot = table.snapshot()
    _within(_SECONDS, lambda: (table.file_lists(snapshot) if snapshot else (), store.listing()))
    return Check("read", _RULES["read"], CheckOutcome.OK, f"{name} at {shown(table.location)}")


def _others(lake: Lake) -> list[Check]:
    """The other catalogs that are configured, each in a line of its own."""
    checks = []
    for name in sorted(set(configured()) - {lake.name.lower()}):
        results = [_run_one(each, Lake(resolve(name))) for each in ("catalog", "read")]
        worst = next((check for check in results if check.outcome is CheckOutcome.FINDING), results[-1])
        checks.append(replace(worst, subject=name, rule=_RULES["others"]))
    return checks


def _within(seconds: float, call: Callable[[], T]) -> T:
    """Call a function with a timeout, as it may wait on the network for long."""
    answers: SimpleQueue[T | Exception] = SimpleQueue()

    def run() -> None:
        try:
            answers.put(call())
        except Exception as error:  # noqa: BLE001  # raised again below, in the waiting thread
            answers.put(error)

    Thread(target=run, daemon=True).start()
    try:
        answer = answers.get(timeout=seconds)
    except Empty:
        raise CatalogError(f"no answer within {seconds:g} s", hint=STORE_HINT) from None
    if isinstance(answer, Exception):
        raise answer
    return answer


def _write(lake: Lake) -> Check:
    warehouse = lake.properties.get("warehouse", "")
    if not warehouse.startswith("/") and "://" not in warehouse:
        return Check(
            "write", _RULES["write"], CheckOutcome.NOTE, "only the catalog's server knows its location"
        )
    if warehouse.startswith(("/", "file:")) and not (folder := Path(local_path(warehouse))).exists():
        return _to_be_created(folder)
    probe = f"{warehouse.rstrip('/')}/.rookery-doctor-{uuid.uuid4().hex}"
    _within(_SECONDS, lambda: _try_writing(probe, lake.properties))
    return Check("write", _RULES["write"], CheckOutcome.OK, redact(warehouse))


def _to_be_created(folder: Path) -> Check:
    """Whether a local warehouse that does not exist can be created; it is not."""
    above = next(each for each in folder.absolute().parents if each.exists())
    return Check.of(
        "write",
        _RULES["write"],
        os.access(above, os.W_OK | os.X_OK),
        f"{folder} is created by the first table" if os.access(above, os.W_OK) else f"{above} is read-only",
        _HINTS["write"],
    )


def _try_writing(probe: str, properties: Mapping[str, str]) -> None:
    io = file_io(properties, probe)
    with io.new_output(probe).create() as stream:
        stream.write(b"Rookery was here\n")
    io.delete(probe)


CHECKS: Mapping[str, Callable[[Lake], Check | list[Check]]] = {
    "python": _python,
    "java": _java,
    "spark": _spark,
    "jars": _jars,
    "catalog": _catalog,
    "read": _read,
    "write": _write,
    "others": _others,
}


def doctor(lake: Lake, only: tuple[str, ...] = ()) -> DoctorReport:
    """Run the checks, or *only* those named."""
    unknown = [name for name in only if name not in CHECKS]
    if unknown:
        raise UsageError(f"there is no check '{unknown[0]}'", hint=f"the checks are {', '.join(CHECKS)}")
    return DoctorReport(tuple(check for name in only or CHECKS for check in _run(name, lake)))


def _run_one(name: str, lake: Lake) -> Check:
    (check,) = _run(name, lake)
    return check


def _run(name: str, lake: Lake) -> list[Check]:
    try:
        checks = CHECKS[name](lake)
    except RookeryError as error:
        checks = Check(
            subject=name,
            rule=_RULES[name],
            outcome=CheckOutcome.FINDING,
            detail=error.message,
            hint=error.hint,
        )
    except Exception as error:  # noqa: BLE001  # every error is reported as a finding
        reason = redact(" ".join(str(error).split()), lake.properties) or type(error).__name__
        checks = Check(
            subject=name,
            rule=_RULES[name],
            outcome=CheckOutcome.FINDING,
            detail=reason,
            hint=_HINTS.get(name),
        )
    return checks if isinstance(checks, list) else [checks]
