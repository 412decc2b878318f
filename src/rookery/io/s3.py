"""Reading ranges of S3 objects with one request each.

PyArrow asks for an object's size before it reads a byte of it. Sizes are known from table metadata, so where
the keys are plain text in the storage settings, ranges are requested directly. Any answer other
than the bytes is left to PyArrow: it then succeeds in its own way, or raises an error.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from urllib.parse import quote, urlsplit

import urllib3
from pyiceberg import io as names
from pyiceberg.utils.properties import get_first_property_value, property_as_bool
from urllib3.exceptions import HTTPError

from rookery.io.location import FILE_IO, scheme_of, shown
from rookery.io.source import Source

_SCHEMES = frozenset({"s3", "s3a", "s3n"})
_PYARROW = (FILE_IO, "pyiceberg.io.pyarrow.PyArrowFileIO")
# With any of these, keys are not plain text or requests are routed differently, as PyArrow does.
_NOT_HERE = (
    names.S3_ROLE_ARN,
    names.AWS_ROLE_ARN,
    names.S3_PROXY_URI,
    names.S3_ANONYMOUS,
    names.S3_RETRY_STRATEGY_IMPL,
    names.S3_RESOLVE_REGION,
    names.S3_CONNECT_TIMEOUT,
    names.S3_REQUEST_TIMEOUT,
)
_NO_BODY = hashlib.sha256(b"").hexdigest()
_RETRIES = urllib3.Retry(
    total=3, backoff_factor=0.2, status_forcelist=(429, 500, 502, 503, 504), redirect=0, raise_on_status=False
)
_TIMEOUT = urllib3.Timeout(connect=10, read=60)
_OK, _PARTIAL = 200, 206
_UNREACHABLE_SECONDS = 300.0
_unreachable: dict[str, float] = {}  # hosts that did not answer, and until when they are left to PyArrow


@dataclass(frozen=True, slots=True)
class S3Object:
    """An object's address, and the keys to sign requests for it."""

    host: str  # with scheme
    path: str  # percent-encoded
    region: str
    key_id: str
    secret: str = field(repr=False)
    token: str | None = field(repr=False)

    def get(self, byte_range: str | None = None) -> bytes | None:
        """Return the bytes, or None if the store answers with anything else."""
        if time.monotonic() < _unreachable.get(self.host, 0.0):
            return None
        headers = self._signed(time.gmtime())
        if byte_range:
            headers["Range"] = byte_range
        try:
            answer = (
                _connections(os.getpid())
                .connection_from_url(self.host)
                .urlopen(
                    "GET",
                    self.path,
                    headers=headers,
                    retries=_RETRIES,
                    timeout=_TIMEOUT,
                    decode_content=False,
                )
            )
        except HTTPError:
            _unreachable[self.host] = time.monotonic() + _UNREACHABLE_SECONDS
            return None
        return answer.data if answer.status == (_PARTIAL if byte_range else _OK) else None

    def _signed(self, now: time.struct_time) -> dict[str, str]:
        """The headers of a GET request, signed by the fourth version of AWS's scheme."""
        stamp = time.strftime("%Y%m%dT%H%M%SZ", now)
        headers = {"host": urlsplit(self.host).netloc, "x-amz-content-sha256": _NO_BODY, "x-amz-date": stamp}
        if self.token:
            headers["x-amz-security-token"] = self.token
        signed = ";".join(headers)
        lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
        request = f"GET\n{self.path}\n\n{lines}\n{signed}\n{_NO_BODY}"
        scope = f"{stamp[:8]}/{self.region}/s3/aws4_request"
        digest = hashlib.sha256(request.encode()).hexdigest()
        key = f"AWS4{self.secret}".encode()
        for part in scope.split("/"):
            key = hmac.digest(key, part.encode(), "sha256")
        signature = hmac.digest(key, f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{digest}".encode(), "sha256").hex()
        credential = f"Credential={self.key_id}/{scope}, SignedHeaders={signed}, Signature={signature}"
        return {**headers, "authorization": f"AWS4-HMAC-SHA256 {credential}"}


@lru_cache(maxsize=1)
def _connections(process: int) -> urllib3.PoolManager:
    """The open connections of a process; a forked one must not share its parent's."""
    return urllib3.PoolManager(maxsize=16)


def s3_object(location: str, properties: Mapping[str, str]) -> S3Object | None:
    """Return the object at a location, or None where requests cannot be signed and addressed here."""
    if scheme_of(location) not in _SCHEMES or any(properties.get(name) for name in _NOT_HERE):
        return None
    if properties.get(names.PY_IO_IMPL, FILE_IO) not in _PYARROW:
        return None
    known = dict(properties)
    key_id = get_first_property_value(known, names.S3_ACCESS_KEY_ID, names.AWS_ACCESS_KEY_ID)
    secret = get_first_property_value(known, names.S3_SECRET_ACCESS_KEY, names.AWS_SECRET_ACCESS_KEY)
    token = get_first_property_value(known, names.S3_SESSION_TOKEN, names.AWS_SESSION_TOKEN)
    region = get_first_property_value(known, names.S3_REGION, names.AWS_REGION)
    address = _address(location, known, region)
    if not (key_id and secret) or address is None:
        return None
    return S3Object(*address, region or "us-east-1", key_id, secret, token)


def _address(location: str, properties: dict[str, str], region: str | None) -> tuple[str, str] | None:
    """The host, with scheme, and the encoded path of an object."""
    bucket, _, key = location.partition("://")[2].partition("/")
    endpoint = properties.get(names.S3_ENDPOINT)
    if not bucket or not key:
        return None
    if not endpoint:
        if not region or region.startswith("cn-") or "." in bucket:
            return None  # other host names, or none that its certificate covers
        return f"https://{bucket}.s3.{region}.amazonaws.com", _encoded(key)
    scheme, _, host = (endpoint if "://" in endpoint else f"https://{endpoint}").rstrip("/").partition("://")
    if property_as_bool(properties, names.S3_FORCE_VIRTUAL_ADDRESSING, False):
        return f"{scheme}://{bucket}.{host}", _encoded(key)
    return f"{scheme}://{host}", _encoded(f"{bucket}/{key}")


def _encoded(path: str) -> str:
    return "/" + quote(path, safe="/-_.~")


class S3Source(Source):
    """An object of S3; *otherwise* opens it in PyArrow's way."""

    def __init__(self, location: str, target: S3Object, otherwise: Callable[[], Source]) -> None:
        super().__init__(shown(location))
        self._object = target
        self._otherwise = otherwise
        self._slow: Source | None = None

    def _plain(self) -> Source:
        if self._slow is None:
            self._slow = self._otherwise()
        return self._slow

    def _measure(self) -> int:
        return self._plain().size

    def _fetch(self, offset: int, length: int) -> bytes:
        data = self._object.get(f"bytes={offset}-{offset + length - 1}") if self._slow is None else None
        return self._plain().read(offset, length) if data is None else data

    def _fetch_all(self) -> bytes:
        data = self._object.get() if self._slow is None else None
        return self._plain().read_all() if data is None else data

    def close(self) -> None:
        """Close what PyArrow has open."""
        if self._slow is not None:
            self._slow.close()
