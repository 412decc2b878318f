"""`rookery maintain`: what it prints, how it leaves, and what it does not start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from rookery.api.lake import Lake
from rookery.api.maintain import maintain
from rookery.cli.app import run
from rookery.maintain import pipeline
from rookery.maintain.pipeline import NAMES
from rookery.maintain.runs.history import History
from rookery.maintain.steps.step import Outcome
from rookery.model import TableName
from rookery.tables.iceberg import IcebergCatalog, IcebergTable
from tests.maintain.tending import DAY, folder_of, plant

Rookery = Callable[..., tuple[int, str, str]]
ROWS = pa.table({"id": pa.array(range(10), pa.int64())})


@pytest.fixture
def rookery(capsys: pytest.CaptureFixture[str], rookery_home: Path) -> Rookery:
    def call(*words: object) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run([str(word) for word in words])
        return code, *capsys.readouterr()

    return call


@pytest.fixture
def namespace(lake: Lake) -> Iterator[str]:
    """A namespace of two tables: one of six small files and an orphan, one that is empty."""
    name = f"m{uuid.uuid4().hex[:8]}"
    lake.catalog.create_namespace(name)
    busy = lake.catalog.create_table(f"{name}.busy", ROWS.schema)
    for _ in range(6):
        busy.append(ROWS)
    lake.catalog.create_table(f"{name}.idle", ROWS.schema)
    plant(folder_of(lake, f"{name}.busy"), "data/stray", 9 * DAY)
    yield name
    for table in lake.catalog.list_tables(name):
        lake.catalog.drop_table(table)
    lake.catalog.drop_namespace(name)


def test_a_dry_run_says_what_would_be_done_and_starts_no_jvm(namespace: str, rookery_home: Path) -> None:
    script = (
        "import sys; from rookery.cli.app import run; "
        f"code = run(['maintain', '{namespace}.*', '--dry-run', '--output', 'json']); "
        "assert 'pyspark' not in sys.modules and 'py4j' not in sys.modules; sys.exit(code)"
    )
    environment = {
        **os.environ,
        "ROOKERY_HOME": str(rookery_home),
        "JAVA_HOME": "/nowhere",
        "PATH": "/nowhere",
    }
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr.decode()
    busy, idle = json.loads(done.stdout)["tables"]
    steps = {step["step"]: step for step in busy["steps"]}
    assert list(steps) == list(NAMES)
    assert busy["outcome"] == "planned"
    assert (steps["rewrite data files"]["files"], steps["rewrite data files"]["before"]["files"]) == (6, 6)
    assert steps["rewrite data files"]["bytes"] == steps["rewrite data files"]["before"]["bytes"]
    assert (steps["remove orphan files"]["files"], steps["remove orphan files"]["bytes"]) == (1, 15)
    assert steps["refresh statistics"]["outcome"] == "planned"
    assert steps["expire snapshots"]["outcome"] == "not needed"
    assert idle["outcome"] == "not needed"
    assert not (rookery_home / "history.db").exists() or History().runs(f"{namespace}.*") == []


def test_a_dry_run_changes_nothing(lake: Lake, namespace: str, rookery: Rookery) -> None:
    folder = folder_of(lake, f"{namespace}.busy")
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    code, out, err = rookery("maintain", f"{namespace}.busy", "--dry-run")
    assert code == 0
    assert "6 small files" in out
    assert "1 file unreferenced" in out
    assert f"lake.{namespace}.busy" in err
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_a_dry_run_loads_and_surveys_a_table_once(
    lake: Lake, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.catalog.create_table(f"{namespace}.other", ROWS.schema)  # which is not maintained
    counted: Counter[str] = Counter()
    load, look = IcebergCatalog.open, pipeline.survey

    def counting(catalog: IcebergCatalog, name: TableName) -> IcebergTable:
        counted.update([".".join(name.identifier)])
        return load(catalog, name)

    monkeypatch.setattr(IcebergCatalog, "open", counting)
    monkeypatch.setattr(pipeline, "survey", lambda *table: (counted.update(["surveys"]), look(*table))[1])
    report = maintain(lake, [f"{namespace}.busy", f"{namespace}.idle"], dry_run=True)
    steps = {step.step: step for step in report.tables[0].steps}
    assert steps["remove orphan files"].files == 1  # its plan needs the other tables
    ours = {name: count for name, count in counted.items() if name.startswith(namespace)}
    assert ours == {f"{namespace}.{name}": 1 for name in ("busy", "idle", "other")}
    assert counted["surveys"] == 2


def test_tables_are_maintained_and_recorded(
    spark: SparkSession, lake: Lake, namespace: str, rookery: Rookery, tmp_path: Path
) -> None:
    history = f"sqlite:///{tmp_path / 'runs.db'}"
    code, out, _ = rookery("maintain", f"{namespace}.*", "--history", history)
    assert code == 0, out
    assert f"lake.{namespace}.busy: done" in out
    assert "files 6 → 1" in out
    assert spark.table(f"lake.{namespace}.busy").count() == 60
    runs = History(history).runs()
    assert {record.table: record.outcome for record in runs} == {
        f"lake.{namespace}.busy": Outcome.DONE,
        f"lake.{namespace}.idle": Outcome.NOT_NEEDED,
    }
    assert [step.step for step in runs[-1].steps] == list(NAMES)
    code, out, _ = rookery("maintain", f"{namespace}.busy", "--history", history)
    assert (code, "not needed" in out) == (0, True)


def test_several_tables_are_summed_up(rookery: Rookery, namespace: str) -> None:
    code, out, _ = rookery("maintain", f"{namespace}.*", "--dry-run")
    lines = out.splitlines()
    assert (code, lines[0]) == (0, "2 tables: 1 not needed, 1 planned")
    assert "not needed" not in "\n".join(lines[2:])
    assert f"lake.{namespace}.idle" not in out
    assert "6 small files" in out
    assert "--verbose" in lines[1]
    _, out, _ = rookery("maintain", f"{namespace}.*", "--dry-run", "-v")
    assert f"lake.{namespace}.idle: not needed" in out
    assert "the table has no files" in out
    assert "--verbose" not in out
    _, out, _ = rookery("maintain", f"{namespace}.busy", "--dry-run")
    assert out.startswith(f"lake.{namespace}.busy: planned")
    assert "not needed" in out  # of one table, all is shown


@pytest.mark.parametrize(
    ("only", "step"),
    [
        ("compaction", "rewrite data files"),
        ("Rewrite-Data-Files", "rewrite data files"),
        ("rewrite data files", "rewrite data files"),
        ("statistics-files", "clean up"),
        ("orphans", "remove orphan files"),
        ("indexes", "refresh statistics"),
    ],
)
def test_steps_by_the_words_of_policies(rookery: Rookery, namespace: str, only: str, step: str) -> None:
    words = ("maintain", f"{namespace}.busy", "--dry-run", "--only", only, "--output", "json")
    (table,) = json.loads(rookery(*words)[1])["tables"]
    assert [each["step"] for each in table["steps"]] == [step]


def test_reasons_have_the_numbers_of_status(lake: Lake, namespace: str, rookery: Rookery) -> None:
    few = lake.catalog.create_table(f"{namespace}.few", ROWS.schema)
    for _ in range(2):
        few.append(ROWS)
    _, out, _ = rookery("maintain", f"{namespace}.few", "--dry-run", "--only", "compaction")
    assert "2 small files, 5 needed" in out
    (table,) = json.loads(rookery("status", f"{namespace}.few", "--output", "json")[1])["tables"]
    assert table["layout"]["small_files"] == 2


def test_one_step_alone(lake: Lake, namespace: str) -> None:
    report = maintain(lake, [f"{namespace}.busy"], only=["clean up", "expire snapshots"], dry_run=True)
    assert [step.step for step in report.tables[0].steps] == ["expire snapshots", "clean up"]


@pytest.mark.parametrize(
    ("words", "said", "hint"),
    [
        (("maintain", "nothing.*"), "no table of lake matches 'nothing.*'", "*"),
        (("maintain", "nothing.here"), "there is no table lake.nothing.here", "check the name"),
        (
            ("maintain", "--only", "dance"),
            "there is no step 'dance'",
            "expire snapshots, remove",
        ),
        (("maintain", "--policy", "/nowhere.yaml"), "/nowhere.yaml", ""),
        (("maintain", "{namespace}.busy", "--conf", "x"), "'x' is not key=value", "--conf"),
    ],
)
def test_bad_input(rookery: Rookery, namespace: str, words: tuple[str, ...], said: str, hint: str) -> None:
    code, out, err = rookery(*(word.format(namespace=namespace) for word in words))
    assert (code, out) == (2, "")
    assert said in err
    assert hint in err


def test_no_retention_is_refused_before_anything_is_done(
    lake: Lake, namespace: str, rookery: Rookery, tmp_path: Path
) -> None:
    policy = tmp_path / "rookery.yaml"
    policy.write_text("defaults:\n  snapshots:\n    keep-for: 0d\n")
    code, _, err = rookery("maintain", f"{namespace}.*", "--policy", policy, "--dry-run")
    assert code == 2
    assert "snapshots.keep-for is 0" in err
    assert "--yes" in err
    words = ("maintain", f"{namespace}.*", "--policy", policy, "--dry-run", "--yes", "--verbose")
    code, out, _ = rookery(*words)
    assert code == 0
    assert "no snapshot of 6 is due to expire" in out  # the last ten stay


def test_a_table_that_cannot_be_loaded_fails_alone(lake: Lake, namespace: str, rookery: Rookery) -> None:
    broken = lake.catalog.create_table(f"{namespace}.broken", ROWS.schema)
    Path(broken.metadata_location.removeprefix("file://")).write_text("{")
    code, out, _ = rookery("maintain", f"{namespace}.*", "--dry-run")
    assert code == 1
    assert f"lake.{namespace}.broken: failed" in out
    assert out.startswith("3 tables: 1 not needed, ")
    assert f"lake.{namespace}.idle" not in out
    assert "6 small files" in out
    assert "another table of the catalog cannot be read" in out  # it may keep files in the folder of this one
    code, out, _ = rookery("maintain", f"{namespace}.*", "--dry-run", "--yes")
    assert f"lake.{namespace}.busy: planned" in out


def test_a_table_that_another_run_has_is_said(
    lake: Lake, namespace: str, rookery: Rookery, tmp_path: Path
) -> None:
    from rookery.api.maintenance import leases_of

    url = f"sqlite:///{tmp_path / 'runs.db'}"
    history = History(url)
    key = str(lake.load(f"{namespace}.idle").metadata.table_uuid)
    broken = lake.catalog.create_table(f"{namespace}.broken", ROWS.schema)
    Path(broken.metadata_location.removeprefix("file://")).write_text("{")
    with leases_of(lake, history).hold(key):
        code, out, _ = rookery("maintain", f"{namespace}.idle", "--history", url)
        assert code == 0
        assert out.startswith(f"lake.{namespace}.idle: taken")
        assert "is being maintained" in out
        words = ("maintain", f"{namespace}.*", "--only", "snapshots", "--history", url)
        code, out, _ = rookery(*words)
    assert code == 1  # for the table that is broken
    assert out.startswith("3 tables: 1 not needed, 1 failed, 1 taken")
    assert History(url).runs("*.idle") == []
