"""A Trino of one node on the loopback interface, that shares the embedded catalog."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.trino.client import Trino
from tests.trino.install import Installation

SECONDS_TO_START = 180
SECONDS_TO_STOP = 30
LOOPBACK = "127.0.0.1"


@contextmanager
def running(installed: Installation, home: Path, folder: Path) -> Iterator[Trino]:
    """Start Trino with the catalog of *home* as `lake`; its own files go to *folder*."""
    port = _free_port()
    config = _configure(installed, home, folder, port)
    log = folder / "trino.log"
    command = [
        installed.java, "-Xmx2G", "-XX:+ExitOnOutOfMemoryError", "-Duser.timezone=UTC",
        f"-Dconfig={config}", "--add-modules=jdk.incubator.vector", "--enable-native-access=ALL-UNNAMED",
        "-cp", f"{installed.libraries}/*", "io.trino.server.TrinoServer",
    ]  # fmt: skip
    with (
        log.open("wb") as output,
        subprocess.Popen(command, cwd=folder, stdout=output, stderr=output) as process,
    ):
        try:
            trino = Trino(f"http://{LOOPBACK}:{port}")
            _wait(trino, process, log)
            yield trino
        finally:
            process.terminate()
            try:
                process.wait(SECONDS_TO_STOP)
            except subprocess.TimeoutExpired:
                process.kill()


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind((LOOPBACK, 0))
        return int(taken.getsockname()[1])


def _configure(installed: Installation, home: Path, folder: Path, port: int) -> Path:
    catalogs = folder / "catalog"
    catalogs.mkdir()
    _write(
        catalogs / "lake.properties",
        {
            "connector.name": "iceberg",
            "iceberg.catalog.type": "jdbc",
            "iceberg.jdbc-catalog.driver-class": "org.sqlite.JDBC",
            "iceberg.jdbc-catalog.connection-url": f"jdbc:sqlite:{home / 'catalog.db'}?busy_timeout=30000",
            "iceberg.jdbc-catalog.catalog-name": "lake",
            "iceberg.jdbc-catalog.default-warehouse-dir": f"file://{home / 'warehouse'}",
            "iceberg.jdbc-catalog.schema-version": "V1",
            "iceberg.expire-snapshots.min-retention": "0s",
            "iceberg.remove-orphan-files.min-retention": "0s",
            "iceberg.allowed-extra-properties": "*",
            "fs.native-local.enabled": "true",
            "local.location": "/",
        },
    )
    return _write(
        folder / "config.properties",
        {
            "node.environment": "tests",
            "node.id": "one",
            "node.bind-ip": LOOPBACK,
            "node.internal-address": LOOPBACK,
            "http-server.http.port": str(port),
            "discovery.uri": f"http://{LOOPBACK}:{port}",
            "coordinator": "true",
            "node-scheduler.include-coordinator": "true",
            "query.max-memory": "1GB",
            "catalog.config-dir": str(catalogs),
            "plugin.dir": str(installed.plugins),
        },
    )


def _write(path: Path, properties: Mapping[str, str]) -> Path:
    path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    return path


def _wait(trino: Trino, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + SECONDS_TO_START
    while not trino.ready():
        if process.poll() is not None or time.monotonic() > deadline:
            lines = log.read_text(errors="replace").splitlines()
            told = [line for line in lines if "ERROR" in line] or lines[-20:]
            raise RuntimeError("Trino did not start:\n" + "\n".join(told))
        time.sleep(0.2)
