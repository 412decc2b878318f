"""A small web server on the loopback that knows ranges, or pretends not to."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

_RANGE = re.compile(r"bytes=(\d+)-(\d+)$")


@dataclass
class Web:
    """Files by name; what was asked for is kept."""

    address: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    knows_ranges: bool = True
    requests: list[tuple[str, str, str | None]] = field(default_factory=list)

    def url(self, name: str) -> str:
        return f"http://{self.address}/{name}"


@contextmanager
def serve() -> Iterator[Web]:
    web = Web()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            asked = self.headers.get("Range")
            name = urlsplit(self.path).path.lstrip("/")
            web.requests.append((self.command, name, asked))
            if name in web.refused:
                return self._answer(403, b"")
            data = web.files.get(name)
            if data is None:
                return self._answer(404, b"")
            match = _RANGE.match(asked or "") if web.knows_ranges else None
            if match is None:
                return self._answer(200, data)
            start, end = int(match[1]), min(int(match[2]), len(data) - 1)
            if start >= len(data):
                return self._answer(416, b"")
            return self._answer(206, data[start : end + 1], f"bytes {start}-{end}/{len(data)}")

        do_HEAD = do_GET

        def _answer(self, status: int, body: bytes, content_range: str | None = None) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            if web.knows_ranges:
                self.send_header("Accept-Ranges", "bytes")
            if content_range:
                self.send_header("Content-Range", content_range)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    web.address = f"127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield web
    finally:
        server.shutdown()
        server.server_close()
