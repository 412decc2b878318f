"""Beyond the embedded session: a cluster, a session of one's own, spark-submit, `spark-defaults.conf`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark
import pytest

import rookery
import rookery.__main__
from rookery.api.lake import Lake
from rookery.spark.catalogs import ICEBERG_RUNTIME, SQLITE_JDBC
from tests.lakehouse import NewTable, distinct, tables
from tests.spark_home import with_archive

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
SPARK = Path(pyspark.__file__).parent
CLUSTER, COMMAND, SUBMITTED = "a cluster", "the command line", "spark-submit"
ATTACHED = "an attached session under spark-submit"
FILES = 6


@dataclass
class Ran:
    """A process that has ended, and the table that it analysed."""

    table: str
    returncode: int
    out: str
    err: str


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cluster")


@pytest.fixture(scope="module")
def ran(spark: SparkSession, lake: Lake, rookery_home: Path, folder: Path) -> Iterator[dict[str, Ran]]:
    """All the processes at once, since starting JVMs is what takes the time."""
    environment = {
        **os.environ,
        "ROOKERY_HOME": str(rookery_home),
        "PYICEBERG_HOME": str(rookery_home),
        "PYTHONPATH": str(ROOT),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_CONF_DIR": str(defaults(folder)),
    }
    with tables(spark) as make:
        names = {kind: make("id bigint, word string") for kind in (CLUSTER, COMMAND, SUBMITTED)}
        for name in names.values():
            rows = spark.range(0, 6000, 1, FILES).selectExpr("id", "concat('w', id % 7) AS word")
            rows.writeTo(name).append()
            spark.sql(f"DELETE FROM {name} WHERE id = 17")  # one file has deletes: it is for the engine
        queried = [keyed(spark, lake, make, indexed=True), keyed(spark, lake, make, indexed=False)]
        address = [lake.properties["uri"], lake.properties["warehouse"]]
        words = {
            CLUSTER: [sys.executable, "-m", "tests.spark.own_session", names[CLUSTER], *queried, *address],
            COMMAND: [sys.executable, "-m", "rookery", *command_words(names[COMMAND])],
            SUBMITTED: [str(SPARK / "bin" / "spark-submit"), *submit_words(names[SUBMITTED])],
            ATTACHED: [str(SPARK / "bin" / "spark-submit"), *query_words(*queried, *address)],
        }
        extra = {CLUSTER: {"SPARK_HOME": str(spark_home(folder)), "SPARK_CONF_DIR": str(folder)}}
        started = {
            kind: subprocess.Popen(
                words[kind],
                env=environment | extra.get(kind, {}),
                cwd=ROOT,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,  # the JVMs are of the group, and end with it
            )
            for kind in words
        }
        try:
            yield {kind: Ran(names.get(kind, ""), *finished(process)) for kind, process in started.items()}
        finally:
            for process in started.values():
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.communicate()


def keyed(spark: SparkSession, lake: Lake, make: NewTable, *, indexed: bool) -> str:
    """An analysed table with keys in no order."""
    name = make("id bigint, key string", **{"write.distribution-mode": "none"})
    rows = spark.range(0, 600, 1, FILES if indexed else 1).selectExpr("id", "md5(cast(id AS string)) AS key")
    rows.writeTo(name).append()
    if indexed:
        rookery.table(name, lake).add_index("bloom", "key")
    rookery.analyze(spark, name, lake=lake)
    return name


def finished(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=240)
    return process.returncode, out, err


def defaults(folder: Path) -> Path:
    """A folder with `spark-defaults.conf`, which has every session keep a log of its configuration."""
    conf = folder / "conf"
    conf.mkdir()
    (folder / "events").mkdir()
    text = (
        "# what the people who run the cluster have decided\n"
        f"spark.eventLog.enabled  true\nspark.eventLog.dir=file://{folder}/events\n"
        "spark.eventLog.compress false\n"
        "spark.master            local[3]\nspark.driver.memory     700m\n"
        "spark.sql.shuffle.partitions 5\nspark.app.name theirs\n"
        "spark.driver.extraJavaOptions -XX:TieredStopAtLevel=1 -XX:+UseSerialGC\n"
    )
    (conf / "spark-defaults.conf").write_text(with_archive(text))
    return conf


def spark_home(folder: Path) -> Path:
    """Spark as it is installed, in a folder where its workers may leave their files."""
    home = folder / "spark"
    home.mkdir()
    for entry in SPARK.iterdir():
        (home / entry.name).symlink_to(entry)
    return home


def command_words(table: str) -> list[str]:
    settings = ["--master", "local[1]", "--conf", "spark.app.name=mine", "--conf", "spark.rookery.probe=7=7"]
    return ["analyze", table, "--output", "json", *settings]


def submit_words(table: str) -> list[str]:
    return [
        "--master", "local[2]", "--name", "submitted", "--driver-memory", "600m",
        "--packages", f"{ICEBERG_RUNTIME},{SQLITE_JDBC}",
        rookery.__main__.__file__, "analyze", table, "--output", "json",
    ]  # fmt: skip


def query_words(*arguments: str) -> list[str]:
    program = str(ROOT / "tests" / "spark" / "attached_program.py")
    return ["--packages", f"{ICEBERG_RUNTIME},{SQLITE_JDBC}", program, *arguments]


def configuration(folder: Path, name: str) -> dict[str, str]:
    """What the session of that name was configured with, from its event log."""
    for log in (folder / "events").rglob("events_*"):
        for event in map(json.loads, log.read_text().splitlines()):
            if event["Event"] == "SparkListenerEnvironmentUpdate":
                found = dict(event["Spark Properties"])
                if found["spark.app.name"] == name:
                    return found
    raise AssertionError(f"no session was called {name}")


def assert_as_here(spark: SparkSession, lake: Lake, table: str) -> None:
    """What the other process has kept and registered is what this one finds, hash by hash."""

    def kept() -> tuple[dict[int, Any], list[Any]]:
        loaded, store = rookery.table(table, lake).load()
        _, state = next(store.newest([loaded.snapshot().id]))
        blobs = [blob for file in loaded.table.metadata.statistics for blob in file.blob_metadata]
        return dict(state.thetas), blobs

    there = kept()
    report = rookery.analyze(spark, table, lake=lake, full=True)
    here = kept()
    assert (report.files_read, report.committed) == (FILES, True)
    assert there == here
    exact = distinct(spark, table, ["id"])
    assert there[0][2].estimate().value == 7
    assert there[0][1].estimate().value == pytest.approx(exact["id"], rel=0.06)


def test_a_cluster(spark: SparkSession, lake: Lake, ran: dict[str, Ran]) -> None:
    done = ran[CLUSTER]
    assert done.returncode == 0, done.err[-2000:]
    told = json.loads(done.out.splitlines()[-1])
    assert told["files"] == FILES
    assert told["columns"]["word"] == 7
    assert told["chunks"]["engine"] == 2
    executors = {key: count for key, count in told["tasks"].items() if key != "driver"}
    assert sum(executors.values()) >= 3  # tasks of files, and those of the engine
    assert told["tasks"].get("driver", 0) == 0
    assert_as_here(spark, lake, done.table)


def test_a_session_of_ones_own(ran: dict[str, Ran]) -> None:
    told = json.loads(ran[CLUSTER].out.splitlines()[-1])
    assert told["rows"] == 5999
    assert told["unchanged"]
    assert told["is_the_active_one"]
    assert told["connected"]
    assert told["catalog"] == "spark_catalog"


def assert_pruned(told: dict[str, Any]) -> None:
    assert (told["lookup"]["rows"], told["lookup"]["files"]) == ([77], 1)
    assert (told["join"]["rows"], told["join"]["files"]) == ([3, 503], 2)
    assert "(join keys)" in told["join"]["by"]


def test_attached_queries_on_a_cluster(ran: dict[str, Ran]) -> None:
    assert_pruned(json.loads(ran[CLUSTER].out.splitlines()[-1])["attached"])


def test_attached_queries_under_spark_submit(ran: dict[str, Ran]) -> None:
    done = ran[ATTACHED]
    assert done.returncode == 0, done.err[-2000:]
    assert_pruned(json.loads(done.out.splitlines()[-1]))


def test_the_command_line(spark: SparkSession, lake: Lake, ran: dict[str, Ran], folder: Path) -> None:
    done = ran[COMMAND]
    assert (done.returncode, done.err) == (0, "")
    report = json.loads(done.out)
    assert (report["table"], report["files_read"]) == (done.table, FILES)
    assert_as_here(spark, lake, done.table)
    found = configuration(folder, "mine")
    assert found["spark.master"] == "local[1]"  # said here, before what the defaults say
    assert found["spark.rookery.probe"] == "7=7"
    assert found["spark.driver.memory"] == "700m"  # of the defaults, before what Rookery would say
    assert found["spark.sql.shuffle.partitions"] == "5"
    assert ICEBERG_RUNTIME in found["spark.jars.packages"]


def test_spark_submit(spark: SparkSession, lake: Lake, ran: dict[str, Ran], folder: Path) -> None:
    done = ran[SUBMITTED]
    assert done.returncode == 0, done.err[-2000:]
    report = json.loads(done.out)
    assert (report["table"], report["files_read"]) == (done.table, FILES)
    assert_as_here(spark, lake, done.table)
    found = configuration(folder, "submitted")
    assert found["spark.master"] == "local[2]"
    assert found["spark.driver.memory"] == "600m"
    assert found["spark.sql.shuffle.partitions"] == "5"
    assert found["spark.sql.catalog.lake.type"] == "jdbc"
