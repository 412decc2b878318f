"""Sessions of one's own that cannot do the work: each call says so in one line, before it does anything."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import rookery
from rookery.api.lake import Lake
from rookery.model import CatalogError
from rookery.tables.config import CatalogConfig

ROOT = Path(__file__).parents[2]


@pytest.mark.spark
def test_sessions_that_cannot_do_the_work(tmp_path: Path) -> None:
    home = {"ROOKERY_HOME": str(tmp_path), "PYICEBERG_HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.bare_session"],
        env={**os.environ, **home},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    told = json.loads(done.stdout)
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
