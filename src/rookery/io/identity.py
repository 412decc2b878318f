"""Whether two locations may be one file: one object has many names, not all of them similar.

A possible match protects a file from deletion; nothing is deleted because two names match.
So every doubt counts as a match: case, Unicode form, percent-encoding, dots and double slashes, scheme and
bucket are all ignored, links are resolved, and local files are compared by device and inode as well.
"""

from __future__ import annotations

import os
import posixpath
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from rookery.io.listing import Inode, Listed
from rookery.io.location import local_path, scheme_of

_SCHEME_AND_AUTHORITY = re.compile(r"^[A-Za-z][A-Za-z0-9+.\-]*:(?://([^/]*))?(?=/|$)")
_FAMILIES = {"s3a": "s3", "s3n": "s3", "abfs": "azure", "abfss": "azure", "wasb": "azure", "wasbs": "azure"}
_WEB = ("http", "https")
_BUCKETS = frozenset({"s3", "gs", "oss", "obs", "cosn", "tos"})  # stores in which an authority is a bucket


def path_keys(location: str) -> frozenset[str]:
    """Return the paths by which a location may be known, without scheme and bucket.

    >>> path_keys("s3a://bucket/a//b/../c%20d") == {"/a/c%20d", "/a/c d"}
    True
    >>> bool(path_keys("file:/T/x") & path_keys("/t/X"))
    True
    """
    path = _SCHEME_AND_AUTHORITY.sub("", location) or "/"
    readings = {_folded(reading) for reading in _readings(path)}
    if scheme_of(location) in _WEB:  # the first part may be a bucket
        readings |= {_folded("/" + reading.lstrip("/").partition("/")[2]) for reading in _readings(path)}
    return frozenset(readings)


def _readings(path: str) -> list[str]:
    """A path as it is written, and with percent-encoding decoded, repeatedly if necessary."""
    readings = [path]
    while "%" in path and (path := unquote(path, errors="surrogateescape")) != readings[-1]:
        readings.append(path)
    return readings


def _folded(path: str) -> str:
    path = posixpath.normpath(path)
    if path.startswith("//"):
        path = path[1:]
    return path.lower() if path.isascii() else unicodedata.normalize("NFC", path).casefold()


def _last(location: str) -> set[str]:
    return {_folded(reading).rpartition("/")[2] for reading in _readings(location)}


class Identities:
    """Keys of files and folders; parents of local ones are resolved once."""

    def __init__(self) -> None:
        self._real: dict[str, str] = {}

    def of(self, location: str, inode: Inode | None = None) -> frozenset[str]:
        """Return all keys of a location: two locations with a key in common may be one file."""
        keys = path_keys(location)
        if scheme_of(location) is not None:
            return keys
        all_keys = set(keys)
        for reading in _readings(local_path(location)):
            all_keys.add(_folded(self._resolved(reading)))
            if inode is None and (status := _status(reading)) is not None:
                all_keys.add(_inode_key((status.st_dev, status.st_ino)))
        if inode is not None:
            all_keys.add(_inode_key(inode))
        return frozenset(all_keys)

    def surely(self, location: str) -> frozenset[str]:
        """Return keys that two locations have in common only if they are one file."""
        if scheme_of(location) is not None:
            family, authority = _store(location)
            return frozenset(
                {f"{family}://{authority}{posixpath.normpath(_SCHEME_AND_AUTHORITY.sub('', location))}"}
            )
        status = _status(local_path(location))
        if status is not None:
            return frozenset({_inode_key((status.st_dev, status.st_ino))})
        return frozenset({self._resolved(local_path(location))})

    def likely(self, location: str) -> frozenset[str]:
        """Return keys that two locations have in common if they are one file by all that is known of stores.

        Less is ignored than by `of`: copies of a table in two buckets are two tables.

        >>> known = Identities().likely
        >>> bool(known("hdfs:///t/x") & known("hdfs://nn:8020/t/x")), bool(known("s3://a/x") & known("s3://b/x"))
        (True, False)
        >>> bool(known("abfss://c@me.dfs.core/x") & known("wasbs://c@me.blob.core/x"))
        True
        >>> bool(known("s3://b/a%20x") & known("s3a://b//a x"))
        True
        """
        if scheme_of(location) is None:
            return frozenset(
                key for reading in _readings(local_path(location)) for key in self.surely(reading)
            )
        family, authority = _store(location)
        if family == "azure":  # container@account, for any service of the account
            authority = authority.partition(".")[0]
        elif family not in _BUCKETS:  # a server by one of its names, or by none
            authority = ""
        path = _SCHEME_AND_AUTHORITY.sub("", location)
        return frozenset(
            f"{family}://{authority}{posixpath.normpath('/' + reading.lstrip('/'))}"
            for reading in _readings(path)
        )

    def _resolved(self, path: str) -> str:
        parent, _, name = path.rpartition("/")
        if name in ("", ".", ".."):
            return _real(path)
        if parent not in self._real:
            root = "/" if path.startswith("/") else ""
            self._real[parent] = _real(parent or root)
        return posixpath.join(self._real[parent], name)


class LikelyFiles:
    """Files by name, among which other names are looked up."""

    def __init__(self, names: Iterable[str]) -> None:
        self._identities = Identities()
        self._keys = {key for name in names for key in self._identities.likely(name)}

    def first(self, names: Iterable[str]) -> str | None:
        """Return the first of *names* that is likely one of these files; None if none is."""
        matching = (name for name in names if not self._identities.likely(name).isdisjoint(self._keys))
        return next(matching, None)


def _inode_key(inode: Inode) -> str:
    return f"inode {inode[0]} {inode[1]}"  # no path begins so


def _real(path: str) -> str:
    try:
        return os.path.realpath(path)
    except ValueError:  # a name with a null character, which no file has
        return path


def _status(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except (OSError, ValueError):
        return None


@dataclass(frozen=True, slots=True, eq=False)
class Account:
    """The result of looking up names in a listing."""

    matched: NDArray[np.bool_]  # the files that may be meant by one of them
    absent: tuple[str, ...]  # should be in the folder, and are not
    doubtful: tuple[str, ...]  # cannot be resolved from here, while a file of the same last name is listed


class Listing:
    """A folder as it was listed, with which names are compared."""

    def __init__(self, location: str, files: Sequence[Listed]) -> None:
        self.location = location.rstrip("/")
        self.files = tuple(files)
        self._identities = Identities()
        self._folder = self._identities.of(self.location)
        self._by_key: dict[str, list[int]] = {}
        self._by_name: dict[str, list[int]] = {}
        for number, file in enumerate(self.files):
            for key in self._identities.of(file.location, file.inode):
                self._by_key.setdefault(key, []).append(number)
            for name in _last(file.location):
                self._by_name.setdefault(name, []).append(number)
        self._folders = self._below()

    def _below(self) -> dict[str, tuple[frozenset[str], list[int]]]:
        """The folders of the files, this one too: the keys of each, and the files below it."""
        by_folder: dict[str, tuple[frozenset[str], list[int]]] = {}
        for number, file in enumerate(self.files):
            parent = file.location.rpartition("/")[0]
            while len(parent) >= len(self.location):
                if parent not in by_folder:
                    by_folder[parent] = self._identities.of(parent), []
                by_folder[parent][1].append(number)
                parent = parent.rpartition("/")[0]
        return by_folder

    def account(self, locations: Iterable[str]) -> Account:
        """Return which files the names may refer to, and which names refer to no known file."""
        matched = np.zeros(len(self.files), bool)
        absent, doubtful = [], []
        for location in locations:
            keys = self._identities.of(location)
            matches = [number for key in keys for number in self._by_key.get(key, ())]
            if not matches:
                matches = [
                    number for number in self._alike(location) if _in_doubt(location, self.files[number])
                ]
                if not _exists(location):
                    if self._should_hold(location, keys):
                        absent.append(location)
                    elif matches:
                        doubtful.append(location)
            matched[matches] = True
        return Account(matched, tuple(absent), tuple(doubtful))

    def _alike(self, location: str) -> list[int]:
        """The files with the same last name."""
        return [number for name in _last(location) for number in self._by_name.get(name, ())]

    def _should_hold(self, location: str, keys: frozenset[str]) -> bool:
        """Whether a location is below this folder, in the same store."""
        if scheme_of(location) is not None and _store(location) != _store(self.location):
            return False
        return any(key.startswith(f"{folder.rstrip('/')}/") for key in keys for folder in self._folder)

    def inside(self, folders: Iterable[str]) -> NDArray[np.bool_]:
        """Return which files are in one of these folders."""
        keys = {key for folder in folders for key in self._identities.of(folder)}
        is_inside = np.zeros(len(self.files), bool)
        for own, numbers in self._folders.values():
            if not own.isdisjoint(keys):
                is_inside[numbers] = True
        return is_inside

    def is_folder(self, location: str) -> bool:
        """Whether a location may be this folder itself."""
        return not self._identities.of(location).isdisjoint(self._folder)

    def contains(self, folder: str) -> bool:
        """Whether a folder may be this one, or be below it, even if nothing is there."""
        keys = self._identities.of(folder)
        below = any(key.startswith(f"{own.rstrip('/')}/") for key in keys for own in self._folder)
        return (
            below
            or any(not keys.isdisjoint(own) for own, _ in self._folders.values())
            or self.is_folder(folder)
        )

    def may_hold(self, folder: str) -> bool:
        """Whether files named by this folder may be among those listed: it is here, or this is not known."""
        if scheme_of(folder) is not None or scheme_of(self.location) is not None:
            return _family(folder) != _family(self.location) or self.contains(folder)
        status, own = _status(local_path(folder)), _status(local_path(self.location))
        return status is None or own is None or status.st_dev != own.st_dev or self.contains(folder)


def _in_doubt(location: str, file: Listed) -> bool:
    """Whether a location may be a file with the same last name, though they have no key in common.

    Of a local file the inode decides, except across devices, as one disk may be mounted twice; within one
    kind of store the name of the object does. Otherwise it is unknown.
    """
    if scheme_of(location) is not None:
        return _family(location) != _family(file.location)
    for reading in _readings(local_path(location)):
        if (status := _status(reading)) is not None:
            apart = file.inode is None or status.st_dev != file.inode[0]
            return apart and (status.st_size, status.st_mtime) == (file.size, file.modified)
    return True


def _exists(location: str) -> bool:
    if scheme_of(location) is not None:
        return False
    return any(_status(reading) is not None for reading in _readings(local_path(location)))


def _family(location: str) -> str:
    scheme = scheme_of(location) or "file"
    return _FAMILIES.get(scheme, scheme)


def _store(location: str) -> tuple[str, str]:
    match = _SCHEME_AND_AUTHORITY.match(location)
    authority = (match.group(1) or "") if match and scheme_of(location) is not None else ""
    return _family(location), authority.lower()
