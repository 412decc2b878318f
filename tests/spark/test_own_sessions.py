"""Sessions of one's own: with a Hive metastore, and such that cannot do the work, where each call says so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import py4j
import pyarrow as pa
import pyspark
import pytest
from pyspark.sql import SparkSession

import rookery
from rookery.api.lake import Lake
from rookery.collect import run as collect_run
from rookery.collect.interpreters import check_workers, own_python
from rookery.model import CatalogError, MachineError
from rookery.spark.catalogs import SparkCatalog
from rookery.spark.rookery_source import RookeryDataSource
from rookery.spark.settings import settings
from rookery.spark.versions import check_version
from rookery.tables.config import CatalogConfig
from tests.lakehouse import NewTable

ROOT = Path(__file__).parents[2]


def run(program: str, home: Path, *arguments: str) -> Any:
    """Run a program of this folder, and return what it tells."""
    variables = {"ROOKERY_HOME": str(home), "PYICEBERG_HOME": str(home)}
    done = subprocess.run(
        [sys.executable, "-m", f"tests.spark.{program}", *arguments],
        env={**os.environ, **variables},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.spark
def test_sessions_that_cannot_do_the_work(tmp_path: Path) -> None:
    told = run("bare_session", tmp_path)
    assert told["states"] == 0
    found = {(state, call): (message, hint) for state, call, message, hint, _ in told["said"]}
    assert all(ours for *_, ours in told["said"]), found
    for call in ("analyze", "scan", "sql analyze"):
        message, hint = found["bare", call]
        assert message == "the Spark session has no Iceberg on its class path"
        assert "--packages org.apache.iceberg:iceberg-spark-runtime" in hint
    assert found["bare", "register"] == found["bare", "sql"] == ("", "")
    for call in ("analyze", "scan", "register", "sql", "sql analyze"):
        assert found["stopped", call][0] == "the Spark session has been stopped"
        assert found["gone", call][0] == "the Spark session has ended with its JVM"
        assert all("rookery.connect().spark()" in found[state, call][1] for state in ("stopped", "gone"))


@pytest.mark.spark
def test_an_attached_session_with_a_hive_metastore(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    told = run("hive_session", tmp_path / "home", str(tmp_path))
    assert told == {
        "files": 10,
        "committed": True,
        "status": "prod.db.events",
        "word": {"rows": 100, "right": True, "files_read": [1]},
        "key": {"rows": 1, "right": True, "files_read": [1]},
        "absent": {"rows": 0, "right": True, "files_read": [0]},
    }


@pytest.fixture
def bare_python(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The session has an interpreter with PySpark alone for its workers, as `python3` of the PATH may be."""
    program = tmp_path / "python3"
    (tmp_path / "packages").mkdir()
    for module in (pyspark, py4j):
        (tmp_path / "packages" / module.__name__).symlink_to(Path(module.__path__[0]))
    path = f"PYTHONPATH=$PYTHONPATH:{tmp_path}/packages"
    program.write_text(f'#!/bin/sh\n{path} exec {sys.executable} -S "$@"\n')
    program.chmod(0o755)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(program))
    return program


def test_workers_of_this_machine_have_rookery(
    spark: SparkSession, lake: Lake, new_table: NewTable, bare_python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = new_table("id bigint")
    spark.range(0, 100, 1, 2).writeTo(name).append()
    monkeypatch.setattr(collect_run, "LOCAL_BYTES", 0)
    report = rookery.analyze(spark, name, lake=lake)
    assert [column.ndv for column in report.columns] == [100]
    source = type(
        "OwnSource", (RookeryDataSource,), {"name": classmethod(lambda cls: "rookery_of_this_test")}
    )
    with own_python(spark):
        spark.dataSource.register(source)
    rows = spark.read.format("rookery_of_this_test").option("table", name).option("where", "id = 5").load()
    assert [row.id for row in rows.collect()] == [5]
    assert spark.sparkContext.pythonExec == str(bare_python)  # the session's own functions run as before


def test_workers_of_a_cluster_without_rookery(spark: SparkSession, bare_python: Path) -> None:
    with pytest.raises(MachineError, match="No module named 'rookery'") as caught:
        check_workers(spark)
    assert f"this process runs {sys.executable}" in caught.value.message
    assert "PYSPARK_PYTHON" in (caught.value.hint or "")
    bare_python.unlink()
    spark.sparkContext.pythonExec = f"{bare_python}-missing"
    with pytest.raises(MachineError, match="Cannot run program"):
        check_workers(spark)
    spark.sparkContext.pythonExec = sys.executable
    check_workers(spark)


def test_another_spark(spark: SparkSession) -> None:
    check_version(spark.version, "this session is of Spark")
    for version in ("3.5.1", "4.0.0", "4.10.0", "5.0.0-SNAPSHOT"):
        with pytest.raises(MachineError, match=rf"works with Spark 4\.1, and .* {version}") as caught:
            check_version(version, "the installed PySpark is")
        assert "pyspark==4.1.*" in (caught.value.hint or "")


@pytest.mark.parametrize("runtime", ["3.5_2.12", "4.0_2.13", "4.1_2.12"])
def test_an_iceberg_for_another_spark(runtime: str) -> None:
    given = {"spark.jars.packages": f"a:b:1,org.apache.iceberg:iceberg-spark-runtime-{runtime}:1.12.0"}
    with pytest.raises(MachineError, match="has Iceberg for Spark") as caught:
        settings("lake", SparkCatalog({}, ()), given)
    assert "iceberg-spark-runtime-4.1_2.13" in (caught.value.hint or "")


def test_a_session_that_does_not_know_the_catalog(spark: SparkSession, tmp_path: Path) -> None:
    config = CatalogConfig(
        "elsewhere", {"type": "sql", "uri": f"sqlite:///{tmp_path}/c.db", "warehouse": str(tmp_path)}
    )
    lake = Lake(config)
    lake.catalog.create_namespace("db")
    rows = pa.table({"id": pa.array(range(100), pa.int64())})
    lake.catalog.create_table("db.t", rows.schema).append(rows)
    with pytest.raises(CatalogError, match=r"Spark cannot load elsewhere\.db\.t") as caught:
        rookery.analyze(spark, "elsewhere.db.t", lake=lake)
    assert "knows the catalog" in (caught.value.hint or "")
    assert rookery.table("db.t", lake).load()[1].states() == []
