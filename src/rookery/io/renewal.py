"""Storage settings from a catalog that expire, and are fetched again."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from threading import Lock
from typing import TypeVar

from rookery.io.source import Source
from rookery.model import UNUSABLE_FILE, RookeryError, StorageError

log = logging.getLogger(__name__)

Fetch = Callable[[], Mapping[str, str]]
T = TypeVar("T")

_EXPIRES_AT = (
    "s3.session-token-expires-at-ms",
    "gcs.oauth2.token-expires-at",
    "adls.sas-token-expires-at-ms",
)
_MARGIN = 60.0  # seconds before they expire: a read that begins now should end in time
_PAUSE = 30.0  # between attempts, while the catalog returns the same


class RenewableProperties(Mapping[str, str]):
    """A table's storage settings as they are now; *fetch* gets them from the catalog again.

    They cross process borders together with *fetch*, so that the workers of a long run can renew them too.
    """

    def __init__(self, properties: Mapping[str, str], fetch: Fetch) -> None:
        self._properties = dict(properties)
        self._fetch = fetch
        self._lock = Lock()
        self._next_attempt = 0.0

    def current(self) -> Mapping[str, str]:
        """Return the settings, renewed if they expire soon; the same object until they change."""
        properties = self._properties
        expires_at = min(
            (int(value) / 1000 for key, value in properties.items() if _is_expiry(key) and value.isdecimal()),
            default=None,
        )
        now = time.time()
        if expires_at is not None and now > expires_at - _MARGIN and now >= self._next_attempt:
            self.renew(properties)
            self._next_attempt = now + _PAUSE
        return self._properties

    def renew(self, used: Mapping[str, str]) -> bool:
        """Fetch the settings again, unless that was done since *used*; return whether they have changed."""
        with self._lock:
            if self._properties is used:
                try:
                    fetched = dict(self._fetch())
                except RookeryError as error:
                    log.warning("storage settings cannot be renewed: %s", error)
                    return False
                if _texts(fetched) == _texts(used):
                    return False
                self._properties = fetched
            return True

    def __getitem__(self, key: str) -> str:
        return self._properties[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._properties)

    def __len__(self) -> int:
        return len(self._properties)

    def __repr__(self) -> str:
        return f"<RenewableProperties: {', '.join(sorted(self._properties))}>"  # values may be secrets

    def __reduce__(self) -> tuple[object, ...]:
        return RenewableProperties, (_texts(self._properties), self._fetch)


def _texts(properties: Mapping[str, str]) -> dict[str, str]:
    """The settings themselves: PyIceberg's REST catalog puts its own objects among them."""
    return {key: value for key, value in properties.items() if isinstance(value, str)}


def _is_expiry(key: str) -> bool:
    return key.startswith(_EXPIRES_AT)


def renewing(properties: Mapping[str, str], action: Callable[[Mapping[str, str]], T]) -> T:
    """Call a function with storage settings; if it fails, and the catalog has new ones, call it again."""
    if not isinstance(properties, RenewableProperties):
        return action(properties)
    used = properties.current()
    try:
        return action(used)
    except UNUSABLE_FILE:
        raise
    except StorageError:
        if not properties.renew(used):
            raise
        return action(properties.current())


class RenewingSource(Source):
    """A file of a store whose settings may expire while it is open; *open_with* opens it."""

    def __init__(
        self, properties: RenewableProperties, open_with: Callable[[Mapping[str, str]], Source]
    ) -> None:
        self._properties = properties
        self._open_with = open_with
        self._used = properties.current()
        self._source = open_with(self._used)
        super().__init__(self._source.name)

    def _opened(self, properties: Mapping[str, str]) -> Source:
        if properties is not self._used:
            self._source.close()
            self._used, self._source = properties, self._open_with(properties)
        return self._source

    def _measure(self) -> int:
        return renewing(self._properties, lambda current: self._opened(current).size)

    def _fetch(self, offset: int, length: int) -> bytes:
        return renewing(self._properties, lambda current: self._opened(current).read(offset, length))

    def _fetch_all(self) -> bytes:
        return renewing(self._properties, lambda current: self._opened(current).read_all())

    def close(self) -> None:
        """Close the file."""
        self._source.close()
