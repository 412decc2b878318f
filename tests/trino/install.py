"""Getting Trino: `python -m tests.trino.install` puts the server and its Iceberg connector into build/trino.

The files are fetched by the Ivy that Spark ships, from where Spark gets its own packages.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyspark

from rookery.model import MachineError, RookeryError
from rookery.spark.catalogs import SQLITE_JDBC
from rookery.spark.java import find_java, parse_version

VERSION = "476"
OLDEST_JAVA = 24
JAVA_VARIABLE = "TRINO_JAVA_HOME"
FOLDER = Path(__file__).resolve().parents[2] / "build" / "trino" / VERSION

_JVM_FOLDERS = (
    "/usr/lib/jvm/*",
    "/usr/java/*",
    "/opt/java/*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
)
_HOME_FOLDERS = (".jdks/*", ".sdkman/candidates/java/*")
_SETTINGS = """
<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true" usepoms="false"/></resolvers>
</ivysettings>
"""
_DEPENDENCY = (
    '<dependency org="{0}" name="{1}" rev="{2}"><artifact name="{1}" type="{3}" ext="{3}"/></dependency>'
)


@dataclass(frozen=True, slots=True)
class Installation:
    """A Trino that can be started."""

    java: Path
    libraries: Path
    plugins: Path


def installation() -> Installation:
    """Return the Trino in build/trino, and the Java to run it with."""
    if not FOLDER.is_dir():
        raise MachineError(f"there is no Trino {VERSION} in {FOLDER}", hint="run make test-trino")
    return Installation(_java(), FOLDER / "server" / "lib", FOLDER / "plugin")


def install() -> None:
    """Fetch and unpack Trino; the folder appears whole or not at all."""
    _java()  # without it nothing need be fetched
    if FOLDER.is_dir():
        return
    FOLDER.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER.parent) as name:
        folder = Path(name)
        _fetch(folder)
        _unpack(folder)
        (folder / "unpacked").rename(FOLDER)


def _java() -> Path:
    """Find a Java that is new enough: the one named by TRINO_JAVA_HOME, else one in the usual folders."""
    stated = os.environ.get(JAVA_VARIABLE)
    homes = [Path(stated)] if stated else list(_java_homes())
    for home in homes:
        java = home / "bin" / "java"
        if (_version(java) or 0) >= OLDEST_JAVA:
            return java
    where = f"{JAVA_VARIABLE} is {stated}, which is not" if stated else "there is none in the usual folders"
    raise MachineError(
        f"Trino {VERSION} needs Java {OLDEST_JAVA} or newer, and {where}",
        hint=f"install a JDK {OLDEST_JAVA} or newer and set {JAVA_VARIABLE} to its folder",
    )


def _java_homes() -> Iterator[Path]:
    if "JAVA_HOME" in os.environ:
        yield Path(os.environ["JAVA_HOME"])
    for pattern in _JVM_FOLDERS:
        yield from sorted(Path("/").glob(pattern.lstrip("/")))
    for pattern in _HOME_FOLDERS:
        yield from sorted(Path.home().glob(pattern))


def _version(java: Path) -> int | None:
    try:
        ran = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return parse_version(ran.stderr)


def _fetch(folder: Path) -> None:
    driver = SQLITE_JDBC.split(":")
    wanted = (
        ("io.trino", "trino-server-core", VERSION, "tar.gz"),
        ("io.trino", "trino-iceberg", VERSION, "zip"),
        (*driver, "jar"),
    )
    listed = "".join(_DEPENDENCY.format(*each) for each in wanted)
    (folder / "settings.xml").write_text(_SETTINGS)
    (folder / "ivy.xml").write_text(
        f'<ivy-module version="2.0"><info organisation="rookery" module="trino"/>'
        f"<dependencies>{listed}</dependencies></ivy-module>"
    )
    jars = Path(pyspark.__file__).parent / "jars"
    command = [
        find_java().path, "-cp", f"{jars}/*", "org.apache.ivy.Main", "-error",
        "-settings", folder / "settings.xml", "-ivy", folder / "ivy.xml", "-cache", folder / "cache",
        "-retrieve", folder / "[artifact].[ext]",
    ]  # fmt: skip
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    missing = [name for _, name, _, kind in wanted if not (folder / f"{name}.{kind}").is_file()]
    if ran.returncode or missing:
        raise MachineError(
            f"Trino {VERSION} cannot be fetched: no {', '.join(missing)}",
            hint="check that packages can be fetched, as Spark does for make test",
        )


def _unpack(folder: Path) -> None:
    unpacked = folder / "unpacked"
    with tarfile.open(folder / "trino-server-core.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    with zipfile.ZipFile(folder / "trino-iceberg.zip") as connector:
        connector.extractall(folder)
    (unpacked / "plugin").mkdir(parents=True)
    (folder / f"trino-server-core-{VERSION}").rename(unpacked / "server")
    (folder / f"trino-iceberg-{VERSION}").rename(unpacked / "plugin" / "iceberg")
    shutil.move(folder / "sqlite-jdbc.jar", unpacked / "plugin" / "iceberg")


def main() -> int:
    """Install Trino; return 2 where that is not possible on this machine."""
    try:
        install()
    except RookeryError as error:
        print(f"error: {error}\nhint: {error.hint}", file=sys.stderr)  # noqa: T201
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
