"""A home of Spark whose JVMs start at half the cost: `python -m tests.spark_home` makes it, once.

It has links to the programs and jars of PySpark, and an archive of the classes that a session loads, which
a JVM maps instead of reading and checking each class. It has no `python/lib/pyspark.zip`, so that Python
workers import the installed PySpark, which is compiled. Tests run without it too.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import rookery
from rookery.model import RookeryError

HOME = Path(__file__).parents[1] / "build" / "tests" / "spark"
DEFAULTS = Path(__file__).parent / "conf" / "spark-defaults.conf"
ARCHIVE = HOME / "classes.jsa"
_STATEMENTS = (
    "CREATE NAMESPACE db",
    "CREATE TABLE db.t (id bigint, word string) TBLPROPERTIES ('write.delete.mode'='merge-on-read')",
    "INSERT INTO db.t SELECT /*+ REPARTITION(2, id) */ id, 'w' FROM range(8)",
    "DELETE FROM db.t WHERE id = 3",
    "SELECT word, count(DISTINCT id) FROM db.t WHERE id > 1 GROUP BY word ORDER BY word",
    "CALL lake.system.rewrite_data_files(table => 'db.t', options => map('rewrite-all', 'true'))",
)


@contextmanager
def prepared() -> Iterator[None]:
    """Set the variables of processes that start Spark: a folder of settings, and this home if it exists."""
    with tempfile.TemporaryDirectory(prefix="rookery-conf-") as folder:
        os.environ["SPARK_CONF_DIR"] = folder
        if ARCHIVE.exists():
            os.environ.setdefault("SPARK_HOME", str(HOME))
        (Path(folder) / DEFAULTS.name).write_text(with_archive(DEFAULTS.read_text()))
        yield


def with_archive(defaults: str) -> str:
    """Add the archive to the options for Java in the text of a `spark-defaults.conf`, if the home is used."""
    if os.environ.get("SPARK_HOME") != str(HOME):
        return defaults
    # An archive serves a class path that begins with its own, which has no folder of settings: so the jars
    # come before that folder. An archive that does not fit is left unused.
    class_path = [*map(str, HOME.glob("jars/slf4j-api-*.jar")), f"{HOME}/jars/*"]
    options = f" -XX:SharedArchiveFile={ARCHIVE} -Xlog:disable"
    lines = (line + options * ("extraJavaOptions" in line) for line in defaults.splitlines())
    return "\n".join((*lines, f"spark.driver.extraClassPath {':'.join(class_path)}", ""))


def make() -> None:
    """Make the home; the archive is of the classes that some usual statements load."""
    shutil.rmtree(HOME, ignore_errors=True)
    HOME.mkdir(parents=True)
    pyspark = find_spec("pyspark")
    assert pyspark is not None
    assert pyspark.origin is not None
    for name in ("bin", "jars"):
        (HOME / name).symlink_to(Path(pyspark.origin).parent.resolve() / name)
    # An archive cannot be made if the class path has a folder with files in it, as a folder of settings is.
    os.environ |= {"SPARK_HOME": str(HOME), "SPARK_CONF_DIR": str(HOME / "none")}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ROOKERY_HOME"] = os.environ["PYICEBERG_HOME"] = folder
        _archive(HOME / "classes.part")


def _archive(part: Path) -> None:
    options = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ArchiveClassesAtExit={part} -Xlog:disable"
    lake = rookery.connect("lake")
    spark = lake.spark(conf={"spark.driver.extraJavaOptions": options, "spark.sql.shuffle.partitions": "2"})
    for statement in _STATEMENTS:
        spark.sql(statement).collect()
    rookery.analyze(spark, "db.t", lake=lake)
    gateway: Any = spark.sparkContext._gateway
    spark.stop()
    gateway.proc.stdin.close()  # the JVM ends with its standard input
    gateway.proc.wait()
    part.rename(ARCHIVE)


if __name__ == "__main__":
    sys.stderr.write("archiving the classes of Spark for the tests (once)\n")
    try:
        make()
    except (RookeryError, OSError) as error:
        sys.stderr.write(f"each JVM of the tests will take longer to start: {error}\n")
