"""An S3 server on the loopback interface that checks signatures, can refuse, and records requests."""

from __future__ import annotations

import hashlib
import hmac
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import boto3
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

REGION = "eu-central-1"
BUCKET = "rookery"
OWNER = ("owner-key-id", "owner-secret-key")


@dataclass
class S3Server:
    """The server's address, whom it lets in, and what was asked of it."""

    endpoint: str = ""
    keys: dict[str, tuple[str, str]] = field(default_factory=dict)  # secret and session token, by key id
    expired: set[str] = field(default_factory=set)  # session tokens
    requests: list[str] = field(default_factory=list)  # of others than the owner
    users: list[str] = field(default_factory=list)  # their key ids
    forbidden: Callable[[str, str], bool] = lambda method, path: False

    def properties(self, key_id: str = OWNER[0]) -> dict[str, str]:
        """Describe the server as a catalog does."""
        secret, token = self.keys[key_id]
        return {
            "s3.endpoint": self.endpoint,
            "s3.access-key-id": key_id,
            "s3.secret-access-key": secret,
            "s3.path-style-access": "true",
            "client.region": REGION,
            **({"s3.session-token": token} if token else {}),
        }

    def admit(self, key_id: str, secret: str, token: str = "") -> dict[str, str]:
        """Let another key in, and return the properties that go with it."""
        self.keys[key_id] = (secret, token)
        return self.properties(key_id)

    def client(self) -> Any:
        """Return a client with the owner's rights."""
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=OWNER[0],
            aws_secret_access_key=OWNER[1],
            region_name=REGION,
        )

    @contextmanager
    def refusing(self, forbidden: Callable[[str, str], bool]) -> Iterator[None]:
        """Answer others than the owner with 403, where this is true of method and path."""
        before, self.forbidden = self.forbidden, forbidden
        try:
            yield
        finally:
            self.forbidden = before

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        method, target = environ["REQUEST_METHOD"], environ["RAW_URI"]
        reason = self._refusal(environ, method, target)
        key = environ.get("HTTP_AUTHORIZATION", "").partition("Credential=")[2].partition("/")[0]
        if key != OWNER[0]:  # which only the catalog's server and the tests use
            self.requests.append(f"{method} {target}")
            self.users.append(key)
        if reason is None:
            return self._app(environ, start)
        start("403 Forbidden", [("Content-Type", "application/xml")])
        body = f"<Error><Code>{reason}</Code><Message>{reason}, says the store</Message></Error>"
        return [] if method == "HEAD" else [body.encode()]

    def _refusal(self, environ: dict[str, Any], method: str, target: str) -> str | None:
        scope, signed, signature = _authorization(environ.get("HTTP_AUTHORIZATION", ""))
        key_id, _, scope = scope.partition("/")
        if key_id not in self.keys:
            return "InvalidAccessKeyId" if key_id else "AccessDenied"
        secret, token = self.keys[key_id]
        if environ.get("HTTP_X_AMZ_SECURITY_TOKEN", "") != token:
            return "InvalidToken"
        if token in self.expired:
            return "ExpiredToken"
        if signature != _signature(environ, method, target, scope, signed, secret):
            return "SignatureDoesNotMatch"
        return "AccessDenied" if key_id != OWNER[0] and self.forbidden(method, target) else None

    _app: Any = field(default_factory=lambda: DomainDispatcherApplication(create_backend_app))


def _authorization(header: str) -> tuple[str, str, str]:
    parts = dict(part.strip().partition("=")[::2] for part in header.partition(" ")[2].split(","))
    return parts.get("Credential", ""), parts.get("SignedHeaders", ""), parts.get("Signature", "")


def _signature(
    environ: dict[str, Any], method: str, target: str, scope: str, signed: str, secret: str
) -> str:
    """What the signature of a request must be, by the fourth version of AWS's scheme."""
    path, _, query = target.partition("?")
    pairs = sorted(pair if "=" in pair else pair + "=" for pair in query.split("&") if pair)
    headers = "".join(f"{name}:{_header(environ, name)}\n" for name in signed.split(";"))
    payload = environ.get("HTTP_X_AMZ_CONTENT_SHA256", "")
    request = "\n".join([method, urlsplit(path).path, "&".join(pairs), headers, signed, payload])
    stated = "\n".join(
        ["AWS4-HMAC-SHA256", environ["HTTP_X_AMZ_DATE"], scope, hashlib.sha256(request.encode()).hexdigest()]
    )
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.digest(key, stated.encode(), "sha256").hex()


def _header(environ: dict[str, Any], name: str) -> str:
    plain = name.upper().replace("-", "_")
    value = environ.get(f"HTTP_{plain}", environ.get(plain, ""))
    return " ".join(value.split())


@contextmanager
def serve_s3() -> Iterator[S3Server]:
    """Run a server with an empty bucket that the owner may use."""
    server = S3Server()
    server.keys[OWNER[0]] = (OWNER[1], "")
    listening = make_server("127.0.0.1", 0, server, threaded=True)
    server.endpoint = f"http://127.0.0.1:{listening.port}"
    thread = threading.Thread(target=listening.serve_forever, daemon=True)
    thread.start()
    try:
        client = server.client()
        with suppress(client.exceptions.BucketAlreadyOwnedByYou):  # moto keeps one store for a whole process
            client.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
        yield server
    finally:
        listening.shutdown()
        thread.join()
        listening.server_close()
