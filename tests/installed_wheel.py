"""The wheel in an empty environment: with the packages that it declares, and no others."""

from __future__ import annotations

import subprocess
import sys
import venv
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent


def build_wheel(folder: Path) -> Path:
    """Build the wheel as an installer does."""
    words = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(words, cwd=ROOT, check=True, capture_output=True)
    return next(folder.glob("rookery-*.whl"))


def install(wheel: Path, folder: Path) -> Path:
    """Make an environment with the wheel and the packages that it requires; return its programs.

    The packages are links to those of this environment, so nothing is downloaded.
    """
    venv.create(folder, with_pip=False, symlinks=True)
    programs = folder / "bin"
    words = [
        "uv",
        "pip",
        "install",
        "--quiet",
        "--offline",
        "--no-deps",
        "--python",
        str(programs / "python"),
    ]
    subprocess.run([sys.executable, "-m", *words, str(wheel)], check=True, capture_output=True)
    link_packages(folder, "rookery")
    return programs


def link_packages(folder: Path, requirement: str) -> None:
    """Add the packages that a requirement, such as `rookery[spark]`, needs."""
    (packages,) = folder.glob("lib/python*/site-packages")
    for each in _required(requirement, set()):
        for name in {
            path.parts[0] for path in each.files or () if path.parts[0] not in ("..", "__pycache__")
        }:
            target = packages / name
            if not target.exists():
                target.symlink_to(Path(str(each.locate_file(name))).resolve())


def _required(requirement: str, seen: set[str]) -> Iterator[Distribution]:
    """Yield the installed packages below a requirement, not itself."""
    wanted = Requirement(requirement)
    for line in distribution(wanted.name).requires or ():
        below = Requirement(line)
        key = f"{canonicalize_name(below.name)}[{','.join(sorted(below.extras))}]"
        applies = below.marker is None or any(
            below.marker.evaluate({"extra": extra}) for extra in (wanted.extras or {""})
        )
        if key in seen or not applies:
            continue
        seen.add(key)
        try:
            yield distribution(below.name)
        except PackageNotFoundError:  # of another platform
            continue
        yield from _required(f"{below.name}[{','.join(below.extras)}]", seen)
