"""Options that keep an older name."""

from __future__ import annotations

from typing import Any

import pytest

from rookery.api.analyze_tables import AnalyzedTables
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


@pytest.mark.parametrize("option", ["--column-set", "--together"])
def test_column_sets(rookery: Rookery, monkeypatch: pytest.MonkeyPatch, option: str) -> None:
    seen: list[tuple[object, object]] = []

    def analyze_tables(*_: object, column_sets: object, drop_column_sets: object, **__: object) -> Any:
        seen.append((column_sets, drop_column_sets))
        return AnalyzedTables(())

    monkeypatch.setattr("rookery.api.analyze_tables.analyze_tables", analyze_tables)
    words = [option, "a,b", option, "b, c", option.replace("--", "--drop-"), "c,d"]
    assert rookery("analyze", "db.t", *words)[0] == 0
    assert seen == [([["a", "b"], ["b", "c"]], [["c", "d"]])]
