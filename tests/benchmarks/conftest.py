from __future__ import annotations

import pytest
from benchmarks.harness import Effort


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Effort:
    """A handful of rows. All benchmarks share the folder, as the session knows their catalog by one name."""
    return Effort(rounds=1, seconds=0, scale=0.0005, data=tmp_path_factory.mktemp("bench"))
