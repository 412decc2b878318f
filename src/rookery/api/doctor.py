"""`rookery doctor`: what this machine has, what it lacks, and what to do about it."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pyiceberg.io import load_file_io

from rookery.api.lake import Lake
from rookery.model import Check, Outcome, RookeryError, UsageError, findings
from rookery.spark import find_java, spark_catalog
from rookery.tables import redact

_OLDEST_PYTHON = (3, 11)
_SPARK = "4.1"
_IVY_JARS = Path(".ivy2.5.2") / "jars"


_RULES = {
    "python": "Python 3.11 or newer",
    "java": "Java 17 or newer",
    "spark": f"PySpark {_SPARK}",
    "jars": "Iceberg's jars at hand",
    "catalog": "the catalog answers",
    "write": "the warehouse can be written to",
}
_HINTS = {
    "catalog": "check the catalog's uri and that its server runs",
    "write": "check the warehouse's address, its permissions and the credentials",
}


@dataclass(frozen=True, slots=True)
class DoctorReport:
    """The checks, in order."""

    checks: tuple[Check, ...]

    @property
    def has_findings(self) -> bool:
        """Whether something must be mended."""
        return bool(findings(self.checks))


def _python(lake: Lake) -> Check:
    found = ".".join(map(str, sys.version_info[:3]))
    return Check.of(
        "python", _RULES["python"], sys.version_info >= _OLDEST_PYTHON, found, "install Python 3.11 or newer"
    )


def _java(lake: Lake) -> Check:
    java = find_java()
    return Check("java", _RULES["java"], Outcome.OK, f"{java.major} at {java.path}")


def _spark(lake: Lake) -> Check:
    try:
        found = version("pyspark")
    except PackageNotFoundError:
        return Check(
            "spark", _RULES["spark"], Outcome.FINDING, "not installed", "pip install 'rookery[spark]'"
        )
    return Check.of(
        "spark", _RULES["spark"], found.startswith(f"{_SPARK}."), found, f"pip install 'pyspark=={_SPARK}.*'"
    )


def _jars(lake: Lake) -> Check:
    packages = spark_catalog(lake.config).packages
    folder = Path.home() / _IVY_JARS
    missing = [package for package in packages if not (folder / _jar_name(package)).exists()]
    if missing:
        names = ", ".join(package.split(":")[1] for package in missing)
        return Check("jars", _RULES["jars"], Outcome.NOTE, f"fetched at the first session: {names}")
    return Check("jars", _RULES["jars"], Outcome.OK, f"{len(packages)} in {folder}")


def _jar_name(package: str) -> str:
    group, artifact, number = package.split(":")
    return f"{group}_{artifact}-{number}.jar"


def _catalog(lake: Lake) -> Check:
    count = len(lake.catalog.list_namespaces())
    return Check(
        "catalog",
        _RULES["catalog"],
        Outcome.OK,
        f"'{lake.name}' ({lake.config.type.value}), {count} namespaces",
    )


def _write(lake: Lake) -> Check:
    warehouse = lake.properties.get("warehouse", "")
    if not warehouse.startswith("/") and "://" not in warehouse:
        return Check(
            "write", _RULES["write"], Outcome.NOTE, "its place is known to the catalog's server only"
        )
    probe = f"{warehouse.rstrip('/')}/.rookery-doctor-{uuid.uuid4().hex}"
    io = load_file_io(dict(lake.properties), probe)
    with io.new_output(probe).create() as stream:
        stream.write(b"Rookery was here\n")
    io.delete(probe)
    return Check("write", _RULES["write"], Outcome.OK, redact(warehouse))


CHECKS: Mapping[str, Callable[[Lake], Check]] = {
    "python": _python,
    "java": _java,
    "spark": _spark,
    "jars": _jars,
    "catalog": _catalog,
    "write": _write,
}


def doctor(lake: Lake, only: tuple[str, ...] = ()) -> DoctorReport:
    """Run the checks, or *only* those named."""
    unknown = [name for name in only if name not in CHECKS]
    if unknown:
        raise UsageError(f"there is no check '{unknown[0]}'", hint=f"the checks are {', '.join(CHECKS)}")
    return DoctorReport(tuple(_run(name, lake) for name in only or CHECKS))


def _run(name: str, lake: Lake) -> Check:
    try:
        return CHECKS[name](lake)
    except RookeryError as error:
        return Check(name, _RULES[name], Outcome.FINDING, error.message, error.hint)
    except Exception as error:  # noqa: BLE001  # a doctor reports whatever goes wrong, of whatever kind
        reason = redact(" ".join(str(error).split()), lake.properties) or type(error).__name__
        return Check(name, _RULES[name], Outcome.FINDING, reason, _HINTS.get(name))
