"""Finding Java, with a clear error when it is missing or too old."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass

from rookery.model import MachineError

OLDEST = 17
_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?')
_HINT = f"install a JDK or JRE {OLDEST} or newer, and put it on the PATH or in JAVA_HOME"


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that was found."""

    path: str
    major: int


def find_java() -> Java:
    """Find the Java that Spark will use, as Spark does: `JAVA_HOME`, else the PATH."""
    home = os.environ.get("JAVA_HOME")
    path = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if path is None or not os.access(path, os.X_OK):
        where = f"JAVA_HOME is {home}, which has no bin/java" if home else "there is no java on the PATH"
        raise MachineError(f"Spark needs Java {OLDEST} or newer, and {where}", hint=_HINT)
    try:
        printed = subprocess.run(  # noqa: S603 (the machine's own java, by its full path)
            [path, "-version"], capture_output=True, text=True, timeout=60, check=True
        ).stderr
    except (OSError, subprocess.SubprocessError) as error:
        raise MachineError(f"{path} does not run: {error}", hint=_HINT) from error
    major = parse_version(printed)
    if major is None:
        raise MachineError(f"{path} does not print its version", hint=_HINT)
    if major < OLDEST:
        raise MachineError(f"Spark needs Java {OLDEST} or newer, and {path} is Java {major}", hint=_HINT)
    return Java(path, major)


def parse_version(printed: str) -> int | None:
    """Return the major version from the output of `java -version`.

    >>> parse_version('openjdk version "17.0.15" 2025-04-15'), parse_version('java version "1.8.0_402"')
    (17, 8)
    """
    match = _VERSION.search(printed)
    if match is None:
        return None
    major, minor = int(match.group(1)), int(match.group(2) or 0)
    return minor if major == 1 else major
