"""Statistics and indexes beside lakehouse tables, updated by reading only new data files.

From a file to a query that reads only the files that may have matching rows:

    import rookery

    lake = rookery.connect()  # the embedded catalog, or one of .pyiceberg.yaml by its name
    print(lake.load_files("examples/orders.csv", "db.orders", partition="country"))
    orders = rookery.table("db.orders", lake)
    orders.add_index("bloom", "id")
    print(orders.analyze())  # statistics and indexes; starts Spark only for much data
    print(orders.explain("id = 44 AND country = 'NL'"))
    rows = orders.read("id = 44", columns=["id", "city"])  # a pyarrow.Table

With Spark, `rookery.analyze(spark, "db.orders", lake=lake)` does the same on executors, and
`rookery.attach(spark)` makes plain queries read less. `rookery --help` lists the commands.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rookery.model import RookeryError

if TYPE_CHECKING:
    from rookery import puffin, spark
    from rookery.api.analyze import analyze
    from rookery.api.lake import Lake, connect
    from rookery.api.queries import queries
    from rookery.api.sql import sql
    from rookery.api.table import table
    from rookery.spark.attach import attach, detach
    from rookery.version import __version__

__all__ = [
    "Lake",
    "RookeryError",
    "__version__",
    "analyze",
    "attach",
    "connect",
    "detach",
    "puffin",
    "queries",
    "spark",
    "sql",
    "table",
]

_LAZY = {"puffin": "rookery.puffin", "spark": "rookery.spark"}
_LAZY_NAMES = {
    "__version__": "rookery.version",
    "Lake": "rookery.api.lake",
    "analyze": "rookery.api.analyze",
    "attach": "rookery.spark.attach",
    "connect": "rookery.api.lake",
    "detach": "rookery.spark.attach",
    "queries": "rookery.api.queries",
    "sql": "rookery.api.sql",
    "table": "rookery.api.table",
}


def __dir__() -> list[str]:
    """What there is to complete: the names that are imported when they are first used, too."""
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    """Import a package, or a name out of one, when it is first used: `import rookery` stays quick."""
    if name in _LAZY:
        return import_module(_LAZY[name])
    if name in _LAZY_NAMES:
        return getattr(import_module(_LAZY_NAMES[name]), name)
    raise AttributeError(f"module 'rookery' has no attribute {name!r}")
