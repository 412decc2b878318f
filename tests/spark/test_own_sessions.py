"""Sessions of one's own: with a Hive metastore, and such that cannot do the work, where each call says so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import rookery
from rookery.api.lake import Lake
from rookery.model import CatalogError
from rookery.tables.config import CatalogConfig

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
