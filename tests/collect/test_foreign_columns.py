"""Columns of types that are not known: the others are analysed, pruned and read, and these are listed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyiceberg import expressions as ice
from pyiceberg.table import Transaction

import rookery
from rookery.api.lake import Lake
from rookery.api.table import TableHandle
from rookery.cli.app import run
from rookery.collect import analyze as analysing
from rookery.collect.choose import Choice
from rookery.io import local_path
from rookery.maintain.pipeline import NAMES, maintain_table
from rookery.maintain.steps.step import Outcome
from rookery.model import UsageError
from rookery.tables.iceberg import IcebergTable
from rookery.tables.iceberg.java_types import java_knows
from tests.collect.plain import NO_SPARK
from tests.foreign import FILES, FOREIGN, FUTURE, OTHERS, ROWS, foreign_lake, metadata_text, spelled
from tests.maintain.tending import BRISK, by_step, maintained_of

ALL = FILES * ROWS
KINDS = ("variant", "geometry(srid:0)", FUTURE, "fixed-point(3)")
WHERE_FOREIGN = (
    "g IS NULL", "g IS NOT NULL", "g = 'a'", "g <=> NULL", "g IN (NULL)", "g NOT IN ('a')", "g > X'FF'",
    "g = X'05'", "s.g IS NULL", "late IS NOT NULL", "late = 3", "NOT (late IS NULL)", "g = NULL",
)  # fmt: skip


class Made:
    """A table, its lake, and what was registered for it."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.kind = kind
        self.lake: Lake = foreign_lake(folder, kind)
        self.handle: TableHandle = rookery.table("db.t", self.lake)
        self.registered: list[int] = []

    def analyse(self, choice: Choice = analysing.EVERYTHING) -> analysing.AnalyzeResult:
        return analysing.analyze(lambda: NO_SPARK, *self.lake.open("db.t"), choice)


def _refuse(*_: object, **__: object) -> None:
    raise AssertionError("a commit through PyIceberg")


@pytest.fixture(scope="class", params=KINDS)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    """Java is not asked, and nothing is committed through PyIceberg, whose model may lack something."""
    found = Made(tmp_path_factory.mktemp("foreign"), request.param)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Transaction, "commit_transaction", _refuse)
        patch.setattr(IcebergTable, "check_loadable", lambda *_: None)
        patch.setattr(analysing, "register", lambda *args: found.registered.append(args[2].id))
        yield found


def _refusal(made: Made) -> UsageError:
    with pytest.raises(UsageError) as caught:
        made.handle.read()
    return caught.value


class TestOne:
    """Each kind of table is made once."""

    def test_the_other_columns_are_analysed_and_these_are_listed(self, made: Made) -> None:
        before = metadata_text(made.lake)
        outcome = made.analyse()
        assert outcome.skipped.keys() == set(FOREIGN)
        for why in outcome.skipped.values():
            assert why.startswith(f"columns of type {made.kind} are not analyzed")
            assert why.endswith("so nothing is registered for other engines") is not java_knows(made.kind)
        assert bool(made.registered) is outcome.committed is java_knows(made.kind)
        stats = {column.name: column for column in made.handle.stats().columns}
        assert {name: stats[name].ndv for name in OTHERS} == {"n": ALL, "w": 5, "s.x": 3, "m.key": 1}
        assert {name: stats[name].coverage for name in OTHERS} == dict.fromkeys(OTHERS, 1.0)
        assert (stats["n"].min, stats["n"].max) == (0, ALL - 1)
        for name in FOREIGN:
            found = stats[name]
            assert (found.type, found.ndv, found.min, found.max, found.coverage) == (
                made.kind,
                None,
                None,
                None,
                0,
            )
            assert {found.unknown[key] for key in ("ndv", "min", "max")} == {
                f"columns of type {made.kind} are not analyzed"
            }
        assert metadata_text(made.lake) == before

    def test_only_such_columns(self, made: Made) -> None:
        outcome = made.analyse(Choice(columns=("g",)))
        assert outcome.skipped.keys() == {"g"}
        for choice in (Choice(histogram=("g",)), Choice(top_k=("g",)), Choice(column_sets=(("n", "g"),))):
            with pytest.raises(UsageError):
                made.analyse(choice)

    def test_files_are_pruned_by_the_others(self, made: Made) -> None:
        made.analyse()
        made.handle.add_index("bitmap", "w")
        made.handle.add_index("bloom", "n")
        made.analyse()
        stages = made.handle.explain("n = 25").stages
        assert stages[-1].files_out == 1
        assert made.handle.count("n >= 25 AND n < 35") == 10
        assert made.handle.count("w = 'w1'") == 8
        assert made.handle.count() == ALL
        rows = made.handle.read("n = 25 OR s.x = 'y'", columns=["n", "w"])
        assert rows.to_pylist() == [{"n": 25, "w": "w0"}]
        with pytest.raises(UsageError, match="cannot be indexed"):
            made.handle.add_index("bloom", "g")

    @pytest.mark.parametrize("where", WHERE_FOREIGN)
    def test_predicates_on_them_skip_nothing(self, made: Made, where: str) -> None:
        made.analyse()
        assert {stage.files_out for stage in made.handle.explain(where).stages} == {FILES}
        for call in (made.handle.count, made.handle.read):
            with pytest.raises(UsageError, match=r"columns of type .* are not compared") as caught:
                call(where)
            assert "\n" not in str(caught.value)
        assert made.handle.explain(f"({where}) AND n = 25").stages[-1].files_out == 1
        assert made.handle.explain(f"({where}) OR n = 25").stages[-1].files_out == FILES

    @pytest.mark.parametrize("where", [ice.IsNull("g"), ice.NotNull("late"), ice.EqualTo("g", b"a")], ids=str)
    def test_expressions_on_them_skip_nothing(self, made: Made, where: ice.BooleanExpression) -> None:
        assert made.handle.explain(where).stages[-1].files_out == FILES
        assert made.handle.explain(ice.And(where, ice.EqualTo("n", 25))).stages[-1].files_out == 1

    def test_reading_such_a_column_is_refused(self, made: Made, capsys: pytest.CaptureFixture[str]) -> None:
        for columns in (None, ["g"], ["s"], ["l"], ["m"], ["late"]):
            with pytest.raises(UsageError, match="has a type that is not read here: ") as caught:
                made.handle.read("n = 3", columns=columns)
            assert made.kind in str(caught.value)
        assert "name only columns that are read (n, w)" in str(_refusal(made).hint)
        options = [
            "--uri",
            str(made.lake.properties["uri"]),
            "--warehouse",
            str(made.lake.properties["warehouse"]),
        ]
        assert run([*options, "read", "db.t", "n = 3"]) == 2
        first, second = capsys.readouterr().err.splitlines()
        assert first.startswith("error: 'g' has a type that is not read here")
        assert second.startswith("hint: ")
        assert run([*options, "read", "db.t", "n = 3", "--columns", "n,w", "--output", "json"]) == 0
        assert '"w3"' in capsys.readouterr().out
        assert run([*options, "stats", "db.t"]) == 0
        assert f"not known: columns of type {made.kind} are not analyzed" in capsys.readouterr().out

    def test_status(self, made: Made) -> None:
        made.analyse()
        (status,) = made.handle.status().tables
        assert status.statistics.freshness == "current"
        assert bool(status.engine_visibility) is java_knows(made.kind)


def test_maintenance_where_java_cannot_load_the_table(tmp_path: Path) -> None:
    """No step asks Java; statistics are refreshed, once."""
    lake = foreign_lake(tmp_path, FUTURE)
    done = by_step(maintain_table(maintained_of(lake, "db.t", NO_SPARK, BRISK)))
    assert {name: step.error for name, step in done.items() if step.error} == {}
    for name in NAMES[:5]:
        assert done[name].outcome is Outcome.NOT_NEEDED, name
    assert done["refresh statistics"].outcome is Outcome.DONE
    again = by_step(maintain_table(maintained_of(lake, "db.t", None, BRISK)))
    assert again["refresh statistics"].outcome is Outcome.NOT_NEEDED


def test_a_type_that_is_gone_again_but_in_an_old_schema(tmp_path: Path) -> None:
    """Java parses old schemas too."""
    lake = foreign_lake(tmp_path, FUTURE)
    path = Path(local_path(lake.load("db.t").metadata_location))
    document: dict[str, Any] = json.loads(path.read_text())
    current = json.loads(json.dumps(document["schemas"][0]).replace(spelled(FUTURE), "binary"))
    document["schemas"].append(current | {"schema-id": 1})
    path.write_text(json.dumps(document | {"current-schema-id": 1}))
    table, _ = lake.open("db.t")
    assert {field.type for field in table.fields()} == {"int", "string", "binary"}
    assert table.not_loadable == f"Iceberg's Java library does not know the type {FUTURE}"
    outcome = analysing.analyze(lambda: NO_SPARK, *lake.open("db.t"))
    assert (outcome.committed, outcome.skipped) == (False, {})
