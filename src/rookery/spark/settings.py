"""Settings that a session is started with: Rookery's defaults, where nothing else is set."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from rookery.io.redaction import is_secret, redact
from rookery.spark.catalogs import SparkCatalog
from rookery.spark.versions import check_runtime
from rookery.tables.config import home

EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
LOCAL = "local[*]"
_GIB = 1 << 30
_PAIR = re.compile(r"([^\s=:#]+)\s*[=:\s]\s*(.*)")
_LISTS = ("spark.jars.packages", "spark.sql.extensions")  # values given twice are joined
_RUNTIME = "iceberg-spark-runtime"
_CATALOGS = "spark.sql.catalog."
# Not shown by Spark's pages, event logs and SET: what it hides by default, and catalogs' other secrets.
_REDACTED = (
    r"(?i)secret|password|token|access[.]?key"
    r"|^spark\.sql\.catalog\..*(credential|account-key|api-key|sas|private|connection-string|authorization|uri)"
)


def settings(
    catalog_name: str,
    known: SparkCatalog,
    given: Mapping[str, str],
    *,
    master: str | None = None,
    memory: str | None = None,
    conf: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the configuration of a new session.

    *given* is set by `spark-defaults.conf` or `spark-submit`, and overrides Rookery's own defaults;
    *conf*, *memory* and *master* override both.
    """
    chosen = {**given, **(conf or {})}
    if memory:
        chosen["spark.driver.memory"] = memory
    chosen["spark.master"] = master or chosen.get("spark.master") or os.environ.get("SPARK_MASTER") or LOCAL
    check_runtime(chosen)
    wanted = {**_defaults(catalog_name), **known.conf}
    if chosen["spark.master"].startswith("local"):
        # Executors of a real cluster must find the driver; here no other machine needs to.
        wanted |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    result = {**wanted, **chosen}
    result["spark.sql.extensions"] = _joined(chosen.get("spark.sql.extensions", ""), [EXTENSIONS])
    brought = " ".join(chosen.get(key, "") for key in ("spark.jars", "spark.jars.packages"))
    packages = [name for name in known.packages if _RUNTIME not in name or _RUNTIME not in brought]
    result["spark.jars.packages"] = _joined(chosen.get("spark.jars.packages", ""), packages)
    return {key: value for key, value in result.items() if value or key not in _LISTS}


def on_command_line(chosen: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that the JVM may be started with: no catalog's, and none that may contain a secret.

    >>> on_command_line({"spark.master": "local[1]", "spark.sql.catalog.c.uri": "x", "spark.my.token": "t"})
    {'spark.master': 'local[1]'}
    """
    return {
        key: value
        for key, value in chosen.items()
        if not key.startswith(_CATALOGS) and not is_secret(key) and redact(value) == value
    }


def python_files(submitted: str, packages: Iterable[str]) -> str:
    """Return `spark.submit.pyFiles`, the files that Python imports from, without the jars of *packages*.

    Spark adds all packages, since a jar may contain Python. Each task of a Python worker reads the directory
    of each such file again, which takes longer for Iceberg's jar than all else that a short task does.

    >>> python_files("/j/mine.zip,/j/org.a_b-1.0.jar", ["org.a:b:1.0"])
    '/j/mine.zip'
    """
    jars = {"{}_{}-{}.jar".format(*package.split(":")) for package in packages}
    return ",".join(path for path in submitted.split(",") if os.path.basename(path) not in jars)


def _joined(given: str, added: list[str]) -> str:
    names = [name.strip() for name in given.split(",") if name.strip()]
    return ",".join(dict.fromkeys([*names, *added]))


def _defaults(catalog_name: str) -> dict[str, str]:
    return {
        "spark.sql.defaultCatalog": catalog_name,
        "spark.driver.memory": default_memory(),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "8",
        "spark.redaction.regex": _REDACTED,
        "spark.sql.warehouse.dir": str(home() / "spark-warehouse"),
        # Workers keep the memory that they read into: if released, each MiB costs 256 page faults to regain.
        "spark.executorEnv.MALLOC_MMAP_THRESHOLD_": str(64 << 20),
        "spark.executorEnv.MALLOC_TRIM_THRESHOLD_": str(256 << 20),
    }


def default_memory() -> str:
    """A quarter of the machine's memory, but between 1 and 4 GiB."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{min(max(total // 4 // _GIB, 1), 4)}g"


def spark_defaults(spark_home: str) -> dict[str, str]:
    """Read `spark-defaults.conf`, of `SPARK_CONF_DIR` or of Spark's own folder; there need not be one."""
    folder = os.environ.get("SPARK_CONF_DIR") or os.path.join(spark_home, "conf")
    try:
        text = (Path(folder) / "spark-defaults.conf").read_text()
    except OSError:
        return {}
    return parse_properties(text)


def parse_properties(text: str) -> dict[str, str]:
    """Read properties as Spark does: a line each, key and value apart by space, `=` or `:`.

    >>> parse_properties("# mine\\nspark.master  local[1]\\nspark.a=b c\\n")
    {'spark.master': 'local[1]', 'spark.a': 'b c'}
    """
    matches = (_PAIR.fullmatch(line.strip()) for line in text.splitlines())
    return {match.group(1): match.group(2).strip() for match in matches if match}
