"""One Spark session for all tests that need one; a JVM is not started for the others."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

import rookery
from rookery.api.lake import Lake
from tests import spark_home
from tests.lakehouse import NewTable, tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

collect_ignore = ["trino"]  # needs a server that make test-trino fetches, and is named to be collected


settings.register_profile("rookery", deadline=None)  # how long an example takes is the machine's matter
settings.load_profile("rookery")


def pytest_configure(config: pytest.Config) -> None:
    os.environ.pop("COLUMNS", None)  # which workers are given: what is printed must not hang on it
    if not hasattr(config, "workerinput"):  # workers inherit it, as do the other processes that start a JVM
        stack = ExitStack()
        stack.enter_context(spark_home.prepared())
        config.add_cleanup(stack.close)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def rookery_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The embedded catalog's folder, away from the one of whoever runs the tests."""
    home = tmp_path_factory.mktemp("rookery-home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROOKERY_HOME", str(home))
        patch.setenv("PYICEBERG_HOME", str(home))
        yield home


@pytest.fixture
def shared_catalog(rookery_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The home is the test's own, but the embedded catalog is the one that the session knows."""
    monkeypatch.setenv("ROOKERY_HOME", str(rookery_home))


@pytest.fixture(scope="session")
def lake(rookery_home: Path) -> Lake:
    return rookery.connect("lake")


@pytest.fixture(scope="session")
def spark(lake: Lake) -> Iterator[SparkSession]:
    session = lake.spark()
    rookery.detach(session)  # tests compare with Spark alone
    session.sql("CREATE NAMESPACE IF NOT EXISTS db")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def new_table(spark: SparkSession) -> Iterator[NewTable]:
    """Make tables, in a namespace of the module's own; they are dropped at its end."""
    with tables(spark) as make:
        yield make


@pytest.fixture
def own_table(spark: SparkSession) -> Iterator[NewTable]:
    """Make tables, in a namespace of the test's own; they are dropped at its end."""
    with tables(spark) as make:
        yield make


@pytest.fixture(autouse=True)
def same_session(request: pytest.FixtureRequest) -> Iterator[None]:
    """Make the session of all tests the active one again: createDataFrame of another has taken its place.

    `rookery.sql` has attached it; the next test compares with Spark alone.
    """
    if "spark" not in request.fixturenames:
        yield
        return
    session: Any = request.getfixturevalue("spark")
    type(session)._activeSession = session
    session._jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(session._jsparkSession)
    yield
    rookery.detach(session)
