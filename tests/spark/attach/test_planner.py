"""What the planner answers, with no JVM: files to skip, and statistics of those that are left."""

from __future__ import annotations

import base64
import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rookery.prune import cascade
from rookery.prune.cascade import Pruning, prune
from rookery.prune.fileset import FileSet
from rookery.puffin import open_puffin
from rookery.sidecar.lengths import LENGTHS_V1
from rookery.sidecar.live import live_files
from rookery.spark.attach import planner as module
from rookery.spark.attach.planner import Planner, Settings
from tests.collect.plain import PlainTable

FILES, ROWS = 6, 50
SCHEMA = pa.schema([("id", pa.int64()), ("n", pa.int32()), ("x", pa.float64()), ("s", pa.string())])


def rows(number: int) -> pa.Table:
    """File *number*: `id` is clustered, the other columns are the same in every file."""
    places = np.arange(ROWS)
    return pa.table(
        {
            "id": places + number * ROWS,
            "n": pa.array(places % 10, pa.int32()),
            "x": pa.array([None if place % 5 == 0 else place / 2 for place in places], pa.float64()),
            "s": [f"s{place % 7}" for place in places],
        },
        schema=SCHEMA,
    )


@pytest.fixture
def table(tmp_path: Path) -> PlainTable:
    made = PlainTable(tmp_path, SCHEMA)
    with made.table.transaction() as change:
        change.set_properties({"rookery.location": made.store.location})
    for number in range(FILES):
        made.append(rows(number))
    made.analyse()
    return made


def request(table: PlainTable, *where: dict[str, Any], **more: Any) -> str:
    loaded = table.load()
    asked = {
        "table": "plain.db.t",
        "uuid": loaded.uuid,
        "metadata": loaded.version,
        "io": {},
        "snapshot": table.snapshot().id,
        "current_schema": True,
        "columns": [1, 2, 3, 4],
        "where": where,
        "costs": True,
        "joins": True,
    }
    return json.dumps(asked | more)


def answer(table: PlainTable, *where: dict[str, Any], settings: Settings | None = None, **more: Any) -> Any:
    return json.loads(Planner(settings or Settings()).answer(request(table, *where, **more)))


def equal(column: int, kind: str, value: Any) -> dict[str, Any]:
    return {"op": "=", "of": [{"column": column}, {"type": kind, "value": value}]}


def paths(table: PlainTable) -> list[str]:
    files = table.table.refresh().inspect.data_files()
    by_least = sorted(
        zip(files["readable_metrics"].to_pylist(), files["file_path"].to_pylist(), strict=True),
        key=lambda each: each[0]["id"]["lower_bound"],
    )
    return [path for _, path in by_least]


def test_files_that_cannot_match_are_named(table: PlainTable) -> None:
    found = answer(table, equal(1, "bigint", 2 * ROWS))
    assert sorted(found["skipped"]) == sorted(set(paths(table)) - {paths(table)[2]})
    assert found["by"] == "manifest file scan 5"
    assert found["rows"] == ROWS
    assert found["matching"] == 1
    assert found["columns"]["1"] == {"nulls": 0, "min": 2 * ROWS, "max": 2 * ROWS, "ndv": 1}


def test_an_answer_begins_with_the_number_of_its_question(table: PlainTable) -> None:
    planner, asked = Planner(Settings()), request(table, equal(1, "bigint", 5))
    for number in ("1", "2"):  # the second is answered from the cache
        assert planner.apply(f"{number}\n{asked}") == f"{number}\n{planner.answer(asked)}"


def test_many_files_are_numbered(table: PlainTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_LISTED", 1)
    planner = Planner(Settings())
    found = json.loads(planner.answer(request(table, equal(1, "bigint", 2 * ROWS))))
    assert "skipped" not in found
    listed = json.loads(planner.answer(request(table, numbering=found["numbering"])))
    bits = np.unpackbits(np.frombuffer(base64.b64decode(found["bits"]), np.uint8), bitorder="little")
    kept = [path for path, is_skipped in zip(listed, bits, strict=False) if not is_skipped]
    assert sorted(listed) == sorted(paths(table))
    assert kept == [paths(table)[2]]
    assert json.loads(planner.answer(request(table, numbering="another"))) == []


def test_nothing_is_skipped_where_every_file_may_match(table: PlainTable) -> None:
    assert not answer(table, equal(2, "int", 5)).keys() & {"skipped", "numbering"}
    assert not answer(table, equal(1, "int", 5)).keys() & {"skipped", "numbering"}  # of another type
    assert not answer(table).keys() & {"skipped", "numbering"}


def test_statistics_of_the_whole_table(table: PlainTable) -> None:
    found = answer(table)
    assert found["rows"] == FILES * ROWS
    assert found["columns"] == {
        "1": {"nulls": 0, "min": 0, "max": FILES * ROWS - 1, "ndv": FILES * ROWS},
        "2": {"nulls": 0, "min": 0, "max": 9, "ndv": 10},
        "3": {"nulls": FILES * ROWS // 5, "min": 0.5, "max": 24.5, "ndv": 40},
        "4": {"nulls": 0, "ndv": 7, "avg_len": 2, "max_len": 2},
    }


def test_a_text_column_with_a_disjunction_has_lengths_alone(table: PlainTable) -> None:
    either = {"op": "OR", "of": [{"op": "IS_NULL", "of": [{"column": 4}]}, equal(2, "int", 5)]}
    assert answer(table, either)["columns"]["4"] == {"avg_len": 2, "max_len": 2}


def test_lengths_that_are_damaged_are_not_used(table: PlainTable, caplog: pytest.LogCaptureFixture) -> None:
    for path in table.segment_paths():
        data = bytearray(path.read_bytes())
        with open_puffin(str(path)) as reader:
            blobs = [blob for blob in reader.metadata.blobs if blob.type == LENGTHS_V1]
        assert blobs
        for blob in blobs:
            data[blob.offset + blob.length // 2] ^= 1
        path.write_bytes(data)
    with caplog.at_level(logging.WARNING):
        found = answer(table, equal(1, "bigint", 5))
    assert found["columns"]["4"] == {"nulls": 0, "ndv": 7}
    assert len(found["skipped"]) == FILES - 1
    assert "the lengths of s are not used" in caplog.text


def test_statistics_move_with_rows_that_the_state_does_not_know(table: PlainTable) -> None:
    for number in (FILES, FILES + 1, FILES + 2):
        table.append(rows(number))
    found = answer(table)
    assert found["rows"] == (FILES + 3) * ROWS
    assert found["columns"]["1"]["max"] == (FILES + 3) * ROWS - 1
    assert found["columns"]["1"]["ndv"] == (FILES + 3) * ROWS  # nearly all are distinct
    assert found["columns"]["2"]["ndv"] == 10


def compared(column: int, op: str, kind: str, value: Any) -> dict[str, Any]:
    return {"op": op, "of": [{"column": column}, {"type": kind, "value": value}]}


def test_a_condition_on_another_column_leaves_the_distinct_values(table: PlainTable) -> None:
    """Spark takes the values of the side of a join that has fewer for values of the other side too."""
    found = answer(table, equal(2, "int", 5))
    assert found["matching"] == FILES * ROWS // 10
    assert found["columns"]["1"]["ndv"] == FILES * ROWS
    assert found["columns"]["4"]["ndv"] == 7
    # Of files that are skipped, no values are left.
    found = answer(table, equal(2, "int", 5), compared(1, "<", "bigint", ROWS))
    assert found["columns"]["1"]["ndv"] == ROWS


def test_statistics_are_those_of_the_matching_rows(table: PlainTable) -> None:
    found = answer(table, compared(1, ">", "bigint", 99), compared(1, "<", "bigint", 150))
    assert (found["rows"], found["matching"]) == (ROWS, ROWS)
    ends = found["columns"]["1"]
    assert (ends["min"], ends["max"], ends["ndv"]) == (100, 149, 50)
    found = answer(table, equal(2, "int", 5), compared(3, ">", "double", (10.0).hex()))
    assert found["rows"] == FILES * ROWS
    assert found["columns"]["2"] == {"nulls": 0, "min": 5, "max": 5, "ndv": 1}
    assert found["columns"]["3"]["min"] == np.nextafter(10.0, 11)
    assert found["columns"]["3"]["nulls"] == 0


def test_conditions_that_spark_would_estimate_again(table: PlainTable) -> None:
    either = {"op": "OR", "of": [equal(2, "int", 5), equal(1, "bigint", 5)]}
    assert answer(table, either)["columns"].keys() == {"3", "4"}
    assert answer(table, compared(2, "<>", "int", 5))["columns"].keys() == {"1", "3", "4"}  # one of ten
    assert answer(table, compared(1, "<>", "bigint", 5))["columns"].keys() == {"1", "2", "3", "4"}
    null = answer(table, {"op": "IS_NULL", "of": [{"column": 3}]})
    assert null["columns"]["3"] == {"nulls": null["matching"]}
    assert null["matching"] == FILES * ROWS // 5


def test_conditions_that_are_not_understood_are_left_to_spark(table: PlainTable) -> None:
    other = {"op": "<", "of": [{"column": 1}, {"column": 2}]}
    assert answer(table, other)["matching"] == FILES * ROWS
    assert answer(table, other, equal(1, "bigint", 5))["matching"] == 1


def test_infinite_bounds_are_no_statistics(table: PlainTable) -> None:
    table.append(pa.table({"id": [1], "n": [1], "x": [float("-inf")], "s": ["a"]}, schema=SCHEMA))
    assert answer(table)["columns"].keys() == {"1", "2", "4"}


def test_columns_to_prune_by_at_run_time(table: PlainTable) -> None:
    assert answer(table)["runtime"] == [1]  # clustered
    assert "runtime" not in answer(table, settings=Settings(runtime=False))
    table.add_index("bloom", "s")
    table.analyse(full=True)
    assert answer(table)["runtime"] == [1, 4]


def test_the_small_side_of_a_join_is_not_pruned_by_the_large_one(table: PlainTable) -> None:
    assert "runtime" not in answer(table, equal(1, "bigint", 5))  # one row of 300
    at_least = {"op": ">=", "of": [{"column": 1}, {"type": "bigint", "value": 5}]}
    assert answer(table, at_least)["runtime"] == [1]


def test_whether_the_keys_of_a_scan_may_prune_another_one(table: PlainTable) -> None:
    at_least = {"op": ">=", "of": [{"column": 1}, {"type": "bigint", "value": 5}]}
    unknown = {"opaque": "f(s)"}
    assert answer(table)["selective"] is False
    assert answer(table, at_least)["selective"] is False
    assert answer(table, equal(1, "bigint", 5), bytes=0)["selective"] is True
    assert answer(table, unknown)["selective"] is True
    assert answer(table, at_least, unknown)["selective"] is True
    assert "selective" not in answer(table, joins=False)


def test_columns_with_a_condition_have_histograms(table: PlainTable) -> None:
    table.append(pa.table({"id": [10_000], "n": [1], "x": [1.0], "s": ["a"]}, schema=SCHEMA))
    at_least = {"op": ">=", "of": [{"column": 1}, {"type": "bigint", "value": 5}]}
    found = answer(table, at_least)["columns"]
    edges = found["1"]["histogram"]["edges"]
    assert (edges[0], edges[-1]) == (5, 10_000)
    assert edges[-2] < 2 * FILES * ROWS  # one row alone is far from all others
    assert "histogram" not in found["2"]
    assert "histogram" not in answer(table)["columns"]["1"]


def test_an_estimate_that_fails_costs_no_pruning(
    table: PlainTable, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "select", lambda _: 1 / 0)
    with caplog.at_level(logging.WARNING):
        found = answer(table, equal(1, "bigint", 2 * ROWS))
    assert len(found["skipped"]) == FILES - 1
    (record,) = caplog.records
    assert "no statistics: division by zero" in record.getMessage()


def test_nothing_is_estimated_for_a_session_that_does_not_plan_by_costs(
    table: PlainTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "select", None)
    found = answer(table, equal(1, "bigint", 2 * ROWS), costs=False, joins=False)
    assert found.keys() == {"skipped", "by", "rows"}
    assert found["rows"] == ROWS


def test_only_the_scans_of_a_join_are_pruned_at_run_time(table: PlainTable) -> None:
    assert answer(table, costs=False)["runtime"] == [1]
    assert "runtime" not in answer(table, costs=False, joins=False)


def test_keys_of_a_join(table: PlainTable) -> None:
    keys = {"op": "IN", "of": [{"column": 1}], "type": "bigint", "values": [1, ROWS * 3]}
    found = answer(table, keys, runtime=True)
    assert len(found["skipped"]) == FILES - 2
    assert "columns" not in found


def test_parts_can_be_turned_off(table: PlainTable) -> None:
    where = equal(1, "bigint", 2 * ROWS)
    assert "skipped" not in answer(table, where, settings=Settings(pruning=False))
    assert "columns" not in answer(table, where, settings=Settings(statistics=False))


def test_a_file_that_is_listed_twice(table: PlainTable) -> None:
    """It is left out if both entries are."""
    files = FileSet(
        table.store,
        None,
        live_files(table.load(), table.snapshot(), None, decode_all=True),
    )
    files.files = pa.concat_tables([files.files, files.files.slice(0, 1)])
    keep = np.zeros(FILES + 1, bool)
    keep[FILES] = True
    assert files.repeats_paths
    found = module._skipped(files, keep)
    assert found == {"skipped": files.files["path"].to_pylist()[1:FILES]}


def test_a_table_without_a_state_is_not_known(tmp_path: Path) -> None:
    made = PlainTable(tmp_path, SCHEMA)
    made.append(rows(0))
    assert answer(made) == {"unknown": True}


def test_another_table_at_the_same_metadata_is_not_known(table: PlainTable) -> None:
    assert answer(table, uuid="00000000-0000-0000-0000-000000000000") == {"unknown": True}


def test_one_warning_a_session_and_cause(table: PlainTable, caplog: pytest.LogCaptureFixture) -> None:
    planner = Planner(Settings())
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert json.loads(planner.answer(request(table, metadata="/nowhere/v1.json"))) == {
                "unknown": True
            }
            planner.answer(request(table, missed="no answer within 5000 ms"))
    metadata, missed = caplog.records
    assert "the metadata of" in metadata.getMessage()
    assert "no answer within 5000 ms" in missed.getMessage()


def test_a_damaged_state_is_warned_of_once(table: PlainTable, caplog: pytest.LogCaptureFixture) -> None:
    (state,) = Path(table.store.location).glob("state-*")
    state.write_bytes(state.read_bytes()[:-100])
    planner = Planner(Settings())
    with caplog.at_level(logging.WARNING):
        for number in range(3):
            assert json.loads(planner.answer(request(table, equal(1, "bigint", number)))) == {"unknown": True}
    (record,) = caplog.records
    assert "a state is skipped" in record.getMessage()


def test_causes_that_are_always_different_are_not_all_warned_of(
    table: PlainTable, caplog: pytest.LogCaptureFixture
) -> None:
    planner = Planner(Settings())
    with caplog.at_level(logging.WARNING):
        for number in range(30):
            planner.answer(request(table, metadata=f"/nowhere/v{number}.json"))
    assert len(caplog.records) == 10


def test_damage_is_warned_of_once_a_session(table: PlainTable, caplog: pytest.LogCaptureFixture) -> None:
    for name in table.store.names("segment-", ".puffin"):
        path = Path(table.store.path(name))
        data = bytearray(path.read_bytes())
        data[len(data) // 8 : len(data) // 2] = bytes(len(data) // 2 - len(data) // 8)
        path.write_bytes(data)
    planner = Planner(Settings())
    with caplog.at_level(logging.WARNING):
        for number in range(4):
            planner.answer(request(table, equal(2, "int", number)))
        seen = [record.getMessage() for record in caplog.records]
        assert seen
        assert len(seen) == len(set(seen))
        Planner(Settings()).answer(request(table, equal(2, "int", 5)))
    assert len(caplog.records) > len(seen)  # another session says so too


def index_bytes(table: PlainTable, monkeypatch: pytest.MonkeyPatch, *where: dict[str, Any]) -> int:
    """How many bytes a planner with nothing cached reads of sketches and indexes to prune by a condition."""
    seen: list[Pruning] = []

    def pruned(*given: Any) -> Pruning:
        seen.append(prune(*given))
        return seen[-1]

    with monkeypatch.context() as patch:
        patch.setattr(module, "prune", pruned)
        assert answer(table, *where, costs=False, joins=False) != {"unknown": True}
    (pruning,) = seen
    return sum(stage.index_bytes for stage in pruning.stages if stage.name != "manifest file scan")


def test_no_index_is_read_for_a_condition_that_none_serves(
    table: PlainTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.add_index("bloom", "s")
    table.analyse(full=True)
    text = base64.b64encode(b"s1").decode()
    assert index_bytes(table, monkeypatch, equal(4, "string", text)) > 0
    for where in (
        {"opaque": "f(s)"},
        {"op": "ENDS_WITH", "of": [{"column": 4}, {"type": "string", "value": text}]},
        {"op": "<>", "of": [{"column": 4}, {"type": "string", "value": text}]},
        {"op": "IS_NULL", "of": [{"column": 4}]},
        compared(1, ">", "bigint", 5),
        equal(1, "bigint", -5),  # in no file, by its bounds
    ):
        assert index_bytes(table, monkeypatch, where) == 0, where


def test_the_same_question_is_answered_from_the_cache(
    table: PlainTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    planner, asked = Planner(Settings()), request(table, equal(1, "bigint", 5))
    first = planner.answer(asked)
    monkeypatch.setattr(module, "prune", None)
    assert planner.answer(asked) == first


def test_an_answer_that_an_error_made_poorer_is_not_cached(
    table: PlainTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    planner, asked = Planner(Settings()), request(table, equal(1, "bigint", 5))
    broken: list[tuple[object, str, object, str]] = [
        (module, "select", lambda _: 1 / 0, "columns"),
        (cascade, "CASCADE", [(name, lambda _: 1 / 0) for name, _ in cascade.CASCADE], "skipped"),
    ]
    for place, name, failing, left_out in broken:
        with monkeypatch.context() as patch:
            patch.setattr(place, name, failing)
            assert left_out not in json.loads(planner.answer(asked))
    assert json.loads(planner.answer(asked)).keys() >= {"columns", "skipped"}
