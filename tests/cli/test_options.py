"""Options that keep an older name."""

from __future__ import annotations

from typing import Any

import pytest

from rookery.api.maintain import MaintainReport
from rookery.api.watch import WatchReport
from tests.cli.conftest import Rookery


@pytest.mark.parametrize("option", ["--catalog-timeout", "--patience"])
@pytest.mark.parametrize("command", ["maintain", "watch"])
def test_the_timeout_of_the_catalog(
    rookery: Rookery, monkeypatch: pytest.MonkeyPatch, command: str, option: str
) -> None:
    seen: list[float] = []

    def watch(*_: object, pace: Any, **__: object) -> WatchReport:
        seen.append(pace.catalog_timeout)
        return WatchReport(())

    def maintain(*_: object, catalog_timeout: float, **__: object) -> MaintainReport:
        seen.append(catalog_timeout)
        return MaintainReport(())

    monkeypatch.setattr("rookery.api.watch.watch", watch)
    monkeypatch.setattr("rookery.api.maintain.maintain", maintain)
    words = [command, *(["--once"] if command == "watch" else []), option]
    assert rookery(*words, "90s")[0] == 0
    assert seen == [90]
    code, out, err = rookery(*words, "-1s")
    assert (code, out) == (2, "")
    assert "-1s is not a timeout" in err
    assert seen == [90]
