from __future__ import annotations

import pytest

from tests.isolation import isolate


@pytest.fixture(autouse=True)
def _isolated(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    isolate(tmp_path_factory.mktemp("isolated"), monkeypatch)
