"""No configuration but the test's own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def isolate(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a home without catalogs, and forget what the environment says of them; return the home."""
    for variable in [name for name in os.environ if name.startswith(("PYICEBERG_", "ROOKERY_"))]:
        monkeypatch.delenv(variable)
    home = folder / "home"
    home.mkdir()
    monkeypatch.chdir(home)
    for variable in ("HOME", "PYICEBERG_HOME"):
        monkeypatch.setenv(variable, str(home))
    return home
