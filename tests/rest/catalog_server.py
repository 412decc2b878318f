"""Iceberg's own REST catalog fixture, behind a proxy that hands out storage settings and counts requests."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyspark
import requests

from rookery.spark.catalogs import ICEBERG_AWS, ICEBERG_VERSION, SQLITE_JDBC
from rookery.spark.java import find_java
from tests.rest.s3_server import BUCKET

SOURCE = Path(__file__).with_name("RestCatalog.java")
_FIXTURE = "1.11.0"  # the newest whose test classes are published
_LIBRARIES = ("dev.failsafe:failsafe:3.3.2", "org.eclipse.jetty.ee10:jetty-ee10-servlet:12.1.5")
_JARS = Path(pyspark.__file__).parent / "jars"
_SETTINGS = """<ivysettings>
  <settings defaultResolver="registry"/>
  <resolvers><ibiblio name="registry" m2compatible="true"{root}/></resolvers>
</ivysettings>"""
_MODULE = """<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="rookery" module="rest-catalog"/>
  <dependencies>
    <dependency org="org.apache.iceberg" name="iceberg-core" rev="{fixture}" conf="*->default">
      <artifact name="iceberg-core" type="jar"/>
      <artifact name="iceberg-core" type="jar" m:classifier="tests"/>
    </dependency>
    <dependency org="org.apache.iceberg" name="iceberg-aws" rev="{aws}" conf="*->default" transitive="false"/>
    {others}
  </dependencies>
</ivy-module>"""
AS_CREDENTIALS = "x-as-credentials"  # a header of clients that get the settings as storage-credentials
NEW_KEYS = "/new-keys"  # asks for other keys; those that were handed out have then expired
_HOP = {"transfer-encoding", "connection", "content-length", "content-encoding", "date", "server", "host"}


def _class_path() -> str:
    """Fetch the server's jars with the Ivy that Spark brings, into the cache that Spark uses."""
    others = "\n".join(
        '<dependency org="{}" name="{}" rev="{}" conf="*->default"/>'.format(*each.split(":"))
        for each in (ICEBERG_AWS, SQLITE_JDBC, *_LIBRARIES)
    )
    mirror = os.environ.get("DEFAULT_ARTIFACT_REPOSITORY")  # which Spark heeds too
    with tempfile.TemporaryDirectory() as folder:
        settings, module, listed = (Path(folder) / name for name in ("settings.xml", "ivy.xml", "jars"))
        settings.write_text(_SETTINGS.format(root=f' root="{mirror}"' if mirror else ""))
        module.write_text(_MODULE.format(fixture=_FIXTURE, aws=ICEBERG_VERSION, others=others))
        ivy = next(_JARS.glob("ivy-*.jar"))
        command = [find_java().path, "-cp", str(ivy), "org.apache.ivy.Main", "-types", "jar", "bundle"]
        command += ["-settings", str(settings), "-ivy", str(module), "-cachepath", str(listed)]
        command += ["-cache", str(Path.home() / ".ivy2.5.2" / "cache")]
        subprocess.run(command, check=True, capture_output=True, timeout=280)
        found = listed.read_text().strip()
    compiler = [str(path) for name in ("janino", "commons-compiler") for path in _JARS.glob(f"{name}-*.jar")]
    return os.pathsep.join([found, *compiler])


@contextmanager
def _fixture(properties: Mapping[str, str]) -> Iterator[str]:
    """Run the fixture over a catalog of its own; it ends when its standard input does."""
    text = "".join(f"{key}={value}\n".replace(":", "\\:") for key, value in properties.items())
    command = [find_java().path, "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp"]
    command += [_class_path(), "org.codehaus.janino.SimpleCompiler", str(SOURCE), SOURCE.stem, text]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield f"http://127.0.0.1:{int(server.stdout.readline())}"
    finally:
        server.communicate(timeout=60)


@dataclass
class RestServer:
    """A REST catalog: its address, what it hands out with each table, and what was asked of it."""

    uri: str = ""
    backend: str = ""
    handed_out: dict[str, str] = field(default_factory=dict)  # in a table's config
    credentials: list[dict[str, Any]] = field(default_factory=list)  # as storage-credentials
    defaults: dict[str, str] = field(default_factory=dict)  # of the catalog's config
    requests: list[str] = field(default_factory=list)
    renew_keys: Callable[[], object] = lambda: None

    def answer(self, path: str, body: bytes, *, as_credentials: bool = False) -> bytes:
        """Add what is handed out to what the fixture says."""
        if path.startswith("/v1/config"):
            found = json.loads(body)
            found["defaults"] = {**found.get("defaults", {}), **self.defaults}
            return json.dumps(found).encode()
        if b'"metadata-location"' not in body[:200] and b'"metadata"' not in body[:200]:
            return body
        found = json.loads(body)
        if "metadata" in found:
            config, credentials = self.handed_out, self.credentials
            if as_credentials:
                config, credentials = apart(config)
            found["config"] = {**found.get("config", {}), **config}
            found["storage-credentials"] = credentials
        return json.dumps(found).encode()


def apart(properties: Mapping[str, str]) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """Return the settings of a store, and the secrets among them as storage-credentials."""
    secret = {"s3.access-key-id", "s3.secret-access-key", "s3.session-token"}
    plain = {key: value for key, value in properties.items() if key not in secret}
    keys = {key: value for key, value in properties.items() if key in secret}
    return plain, [{"prefix": f"s3://{BUCKET}/", "config": keys}]


@contextmanager
def serve_catalog(properties: Mapping[str, str]) -> Iterator[RestServer]:
    """Run the fixture with the properties of its own catalog, and the proxy before it."""
    with _fixture(properties) as backend:
        server = RestServer(backend=backend)
        session = requests.Session()

        class Proxy(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _pass_on(self) -> None:
                server.requests.append(f"{self.command} {self.path}")
                if self.path == NEW_KEYS:
                    server.renew_keys()
                    self.send_response(204)
                    self.end_headers()
                    return
                length = int(self.headers.get("Content-Length") or 0)
                headers = {key: value for key, value in self.headers.items() if key.lower() not in _HOP}
                found = session.request(
                    self.command,
                    server.backend + self.path,
                    data=self.rfile.read(length),
                    headers=headers,
                    timeout=60,
                )
                body = found.content
                if found.ok:
                    body = server.answer(self.path, body, as_credentials=AS_CREDENTIALS in self.headers)
                self.send_response(found.status_code)
                for key, value in found.headers.items():
                    if key.lower() not in _HOP:
                        self.send_header(key, value)
                if found.status_code != 204:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_DELETE = do_HEAD = _pass_on

            def log_message(self, format: str, *args: object) -> None:
                pass

        proxy = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
        server.uri = f"http://127.0.0.1:{proxy.server_port}"
        thread = threading.Thread(target=proxy.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            proxy.shutdown()
            thread.join()
            proxy.server_close()
            session.close()
