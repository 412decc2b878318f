"""A kind in one module and one line: declared, built, merged, used, listed, shown, dropped, documented."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from rookery.api.indexes import drop_index
from rookery.cli.app import run
from rookery.collect import plan
from rookery.maintain.policies.policy import WantedIndex
from rookery.maintain.policies.policy_file import load_policies
from rookery.model import TableName, UsageError
from rookery.model.cache import clear_caches
from tests.indexes.conftest import LakeTable, Rookery, stage_of
from tests.indexes.toy import LengthsKind

pytestmark = pytest.mark.usefixtures("toy")
GENERATOR = Path(__file__).resolve().parents[2] / "tools" / "generate_docs.py"


def test_by_the_command_line(table: LakeTable, rookery: Rookery, tmp_path: Path) -> None:
    table.append_files(*range(4))
    code, out, _ = rookery("index", "add", "db.t", "lengths", "word")
    assert (code, "declared; the next analyze builds it" in out) == (0, True)
    table.analyse("id")
    code, out, _ = rookery("index", "list", "db.t", "--output", "json")
    (listed,) = json.loads(out)["indexes"]
    assert (listed["kind"], listed["column"], listed["files_covered"]) == ("lengths", "word", 4)
    code, out, _ = rookery("explain", "db.t", "word = 'bbbbb'", "--output", "json")
    (stage,) = (stage for stage in json.loads(out)["stages"] if stage["name"] == "lengths")
    assert (code, stage["files_in"], stage["files_out"]) == (0, 4, 1)
    (segment,) = Path(table.store.location.removeprefix("file://")).glob("segment-*.puffin")
    code, out, _ = rookery("puffin", "inspect", segment)
    assert code == 0
    assert "toy-lengths-v1" in out
    assert "covered" in out
    code, out, _ = rookery("index", "drop", "db.t", "lengths", "word")
    assert (code, "has no indexes" in out) == (0, True)
    assert table.analyse("id").header.segments[0].indexes == ()
    clear_caches()
    assert stage_of(table, "word = 'bbbbb'") == (4, 4, "no lengths index on these columns")


def test_stages_keep_their_order(table: LakeTable) -> None:
    table.append_files(0)
    names = [stage.name for stage in table.explain("word = 'a'").stages]
    assert names[4:8] == ["inverted theta", "bitmap", "bloom filter check", "lengths"]


@pytest.mark.parametrize(
    "words", [("lengths", "id"), ("lengths", "word", "--fpp", "0.1"), ("widths", "word")], ids=" ".join
)
def test_refused(table: LakeTable, rookery: Rookery, words: tuple[str, ...]) -> None:
    code, out, err = rookery("index", "add", "db.t", *words)
    assert (code, out, "hint:" in err) == (2, "", True)
    if words[0] == "widths":
        assert "the kinds are bitmap, bloom, lengths" in err
    assert table.indexes().indexes == ()


def test_built_in_parts_and_kept_current(table: LakeTable, monkeypatch: pytest.MonkeyPatch) -> None:
    table.table.transaction().set_properties({"write.parquet.row-group-limit": "5"}).commit_transaction()
    table.append_files(*range(3))
    table.add_index("lengths", "word")
    monkeypatch.setattr(plan, "SPLIT_BYTES", 50)
    monkeypatch.setattr("tests.collect.plain.NO_SPARK.sparkContext.defaultParallelism", 8)
    work = table.prepared("id")
    assert max(file.parts for task in plan.tasks(work.groups, 8, {}) for file in task.files) > 1
    table.analyse("id")
    assert stage_of(table, "word = 'bbbbb'") == (3, 1, "")
    table.append_files(3)
    clear_caches()
    assert stage_of(table, "word = 'bbbbb'") == (4, 2, "1 file not indexed yet")
    assert [group.files.num_rows for group in table.prepared("id").groups] == [1]
    table.analyse("id")
    table.assert_answers()
    assert stage_of(table, "word = 'bbbbb'") == (4, 1, "")


def test_merged_across_segments(table: LakeTable) -> None:
    """Eight segments become one, without the file that has been deleted; answers and skipping stay."""
    table.add_index("lengths", "word")
    table.add_index("bloom", "word")
    for number in range(7):
        table.append_files(number)
        state = table.analyse("id")
    assert len(state.header.segments) == 7
    table.table.refresh().delete("id >= 40 AND id < 60")
    for number in (7, 8):
        table.append_files(number)
        state = table.analyse("id")
    assert [entry.files for entry in state.header.segments] == [8]
    assert {index.kind for index in state.header.segments[0].indexes} == {"lengths", "bloom"}
    clear_caches()
    assert [stage_of(table, f"word = '{'b' * (2 + 3 * n)}'", "lengths") for n in (0, 1, 2, 8)] == [
        (0, 0, "no file is left")
    ] * 4  # the Bloom filters come first
    table.assert_answers()
    drop_index(table.load(), table.store, "bloom", "word")
    table.analyse("id")
    clear_caches()
    found = [stage_of(table, f"word = '{'b' * (2 + 3 * n)}'")[:2] for n in (0, 1, 2, 8)]
    assert found == [(8, 1), (8, 1), (8, 0), (8, 1)]
    table.assert_answers()


def test_a_damaged_blob_keeps_every_file(table: LakeTable, toy: LengthsKind) -> None:
    table.append_files(*range(3))
    table.add_index("lengths", "word")
    state = table.analyse("id")
    path = Path(table.store.path(state.header.segments[0].name).removeprefix("file://"))
    with table.store.open_segment(state.header.segments[0]) as segment:
        ((blob, _),) = segment.heads(toy.blob_type, 2, lambda data, *, place: data)
    damaged = bytearray(path.read_bytes())
    damaged[blob.offset + 3] ^= 1
    path.write_bytes(damaged)
    clear_caches()
    files_in, files_out, note = stage_of(table, "word = 'bbbbb'")
    assert (files_in, files_out) == (3, 3)
    assert "could not be used" in note
    table.assert_answers()


def test_named_in_a_policy(tmp_path: Path) -> None:
    path = tmp_path / "rookery.yaml"
    path.write_text("defaults:\n  indexes: [lengths(word), bloom(id)]\n")
    policy = load_policies(path).policy_of(TableName("c", ("db",), "t"), {}).policy
    assert policy.indexes == (WantedIndex("lengths", "word"), WantedIndex("bloom", "id"))


def generator() -> Any:
    spec = importlib.util.spec_from_file_location("generate_docs_of_kinds", GENERATOR)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_in_the_documents_and_the_help(toy: LengthsKind, capsys: pytest.CaptureFixture[str]) -> None:
    module = generator()
    (page,) = (page for page in module.pages() if page.name == "index-add")
    text = module.render(page)
    assert f"| `lengths` | {toy.summary} |  |" in text
    assert "| `bloom` |" in text
    assert run(["index", "add", "--help"]) == 0
    assert f"lengths: {toy.summary}" in " ".join(capsys.readouterr().out.split())


def test_a_policy_of_an_unknown_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rookery.yaml"
    path.write_text("defaults:\n  indexes: [widths(word)]\n")
    with pytest.raises(UsageError, match="'widths\\(word\\)' is not a known kind of index") as caught:
        load_policies(path)
    assert caught.value.hint == "the kinds are bitmap, bloom, lengths"
