from __future__ import annotations

from pathlib import Path

import pytest

from tests.isolation import isolate


@pytest.fixture
def config_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of `.pyiceberg.yaml`, with nothing in it yet."""
    return isolate(tmp_path, monkeypatch)
