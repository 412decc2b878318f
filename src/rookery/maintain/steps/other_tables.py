"""The other tables of a catalog, and which of their files and folders are in a table's folder."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pydantic import BaseModel

from rookery.io import local_path, scheme_of
from rookery.io.identity import Identities, LikelyFiles, Listing
from rookery.maintain.steps.ownership import Claims
from rookery.maintain.steps.reachable_files import named_in
from rookery.model import RookeryError, TableName, UsageError
from rookery.sidecar.store import default_location
from rookery.tables import Table
from rookery.tables.iceberg import IcebergTable, iceberg
from rookery.tables.iceberg.metadata_file import MetadataFile, parse_metadata

_THREADS = 8
_SECONDS = 300.0  # for which loaded tables are reused
DELETION_SECONDS = 5.0  # the same when files are deleted


@dataclass(frozen=True, slots=True)
class Shared:
    """A table that needs a file, or that cannot be read to find out."""

    table: TableName
    file: str | None
    error: RookeryError | None = None


class OtherTables:
    """The tables of a catalog, loaded at first use.

    The folders of a table's files are cached by its metadata file, so that its manifests are read
    once, and not for each table beside it.
    """

    def __init__(
        self,
        find: Callable[[], Iterable[TableName]],
        load: Callable[[TableName], Table | None],
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        self._find = find
        self._load = load
        self._timer = timer
        self._tables: list[IcebergTable] = []
        self._given: dict[TableName, Table] = {}  # not loaded again the first time
        self._failure: RookeryError | None = None  # of one that could not be loaded
        self._asked: float | None = None
        self._folders: dict[str, frozenset[str]] = {}
        self._links: dict[str, tuple[str, ...]] = {}  # names that are links, and may lead anywhere

    def give(self, tables: Iterable[Table]) -> None:
        """Take tables as the caller has loaded them; only for plans, as what is deleted needs newer ones."""
        self._given = {table.name: table for table in tables}

    def reloaded(self) -> OtherTables:
        """Return the same, to be loaded again, with the cache for metadata files that do not change."""
        again = OtherTables(self._find, self._load, self._timer)
        again._folders, again._links = self._folders, self._links
        return again

    def tables(self) -> Sequence[IcebergTable]:
        """Return every table of the catalog that can be loaded; after some minutes they are loaded again."""
        if self._asked is None or self._timer() - self._asked > _SECONDS:
            with ThreadPoolExecutor(_THREADS) as pool:
                loaded = list(pool.map(self._loaded, self._find()))
            self._given = {}
            self._tables = [each for each in loaded if isinstance(each, IcebergTable)]
            self._failure = next((each for each in loaded if isinstance(each, RookeryError)), None)
            self._asked = self._timer()
        return self._tables

    def refresh(self, seconds: float) -> None:
        """Load the tables again when they are next asked for, if that was done so long ago."""
        if self._asked is not None and self._timer() - self._asked > seconds:
            self._asked = None

    @property
    def failure(self) -> RookeryError | None:
        """Why a table of the catalog could not be loaded when they were last; None if all were."""
        return self._failure

    def _loaded(self, name: TableName) -> IcebergTable | RookeryError | None:
        try:
            table = self._given.get(name) or self._load(name)
            return table if table is None else iceberg(table)
        except RookeryError as error:
            return error

    def claims(self, table: IcebergTable, listing: Listing) -> Claims:
        """Return what the others claim in a folder; one that cannot be read does not affect the rest."""
        names: list[str] = []
        folders: list[str] = []
        refusals: list[UsageError] = []
        for other in self.tables():
            if other.name == table.name:
                continue
            metadata = metadata_of(other)
            written = (*metadata.folders, default_location(other.location, other.table.properties))
            if any(map(listing.is_folder, written)):
                hint = (
                    "keep tables in folders of their own; --yes continues, and keeps the files that "
                    "the other table references"
                )
                message = f"{other.name} has the same folder as {table.name}"
                refusals.append(UsageError(message, hint=hint))
            folders += written
            try:
                names += self._names_in(other, metadata, listing.may_hold)
            except RookeryError as error:
                refusals.append(unreadable_table(error))
        if self._failure is not None:
            refusals.append(unreadable_table(self._failure))
        return Claims(tuple(names), tuple(folders), refusal=next(iter(refusals), None), of_others=True)

    def shared(self, table: IcebergTable, files: Sequence[str]) -> Shared | None:
        """Return another table that names one of these files, or that cannot be read to find out.

        If a table has a damaged manifest, the rest still counts. One that cannot be loaded is skipped.
        """
        identities = Identities()
        folders = {key for name in {_folder(file) for file in files} for key in identities.of(name)}
        going = LikelyFiles(files)
        unreadable: Shared | None = None
        for other in self.tables() if files else ():
            if other.name == table.name:
                continue
            metadata, damaged = metadata_of(other), list[RookeryError]()
            try:
                names: Iterable[str] = self._names_in(
                    other, metadata, lambda folder: not identities.of(folder).isdisjoint(folders)
                )
            except RookeryError:
                names = named_in(metadata, other.io, damaged)
            name = going.first(names)
            if name is not None:
                return Shared(other.name, name)
            if damaged and unreadable is None:
                unreadable = Shared(other.name, None, damaged[0])
        return unreadable

    def _names_in(
        self, other: IcebergTable, metadata: MetadataFile, is_wanted: Callable[[str], bool]
    ) -> list[str]:
        """The files of another table in certain folders, or that are links."""
        named: list[str] | None = None
        if metadata.location not in self._folders:
            named = list(named_in(metadata, other.io))
            self._links[metadata.location] = tuple(path for path in named if _is_link(path))
            self._folders[metadata.location] = frozenset(map(_folder, named))
        here = set(filter(is_wanted, self._folders[metadata.location]))
        links = list(self._links[metadata.location])
        if not here:
            return links
        paths = named_in(metadata, other.io) if named is None else named
        return [*links, *(path for path in paths if _folder(path) in here)]


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _is_link(path: str) -> bool:
    return scheme_of(path) is None and os.path.islink(local_path(path))


def unreadable_table(error: RookeryError) -> UsageError:
    """Return why nothing may be deleted without --yes, where the files that a table needs cannot be read."""
    return UsageError(
        f"another table of the catalog cannot be read: {error.message}",
        hint="repair it and run again; --yes deletes what no readable table references",
    )


def metadata_of(table: IcebergTable) -> MetadataFile:
    """Return a loaded table's metadata as its file states it."""
    # PyIceberg refuses to write metadata of the third version, which is not done here.
    text = BaseModel.model_dump_json(table.table.metadata, by_alias=True, exclude_none=True)
    return parse_metadata(table.table.metadata_location, text)
