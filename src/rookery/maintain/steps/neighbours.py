"""The other tables of a catalog, and which of their files and folders lie in a table's folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from rookery.maintain.steps.ownership import Claims
from rookery.maintain.steps.referenced import named_in
from rookery.model import TableName, UsageError
from rookery.storage.identity import Listing
from rookery.store.store import default_location
from rookery.tables.iceberg import IcebergTable
from rookery.tables.iceberg.metadata_file import MetadataFile, parse_metadata

_THREADS = 8


class Neighbours:
    """The tables of a catalog, loaded when first asked for.

    Which folders a table's files lie in is remembered by its metadata file, so that its manifests are read
    once, and not for each table beside it.
    """

    def __init__(
        self, find: Callable[[], Iterable[TableName]], load: Callable[[TableName], IcebergTable | None]
    ) -> None:
        self._find = find
        self._load = load
        self._tables: list[IcebergTable] | None = None
        self._folders: dict[str, frozenset[str]] = {}

    def anew(self) -> Neighbours:
        """Return the same, asked again, with what is remembered of metadata files that do not change."""
        found = Neighbours(self._find, self._load)
        found._folders = self._folders
        return found

    def tables(self) -> Sequence[IcebergTable]:
        """Return every table of the catalog; raise where one cannot be loaded."""
        if self._tables is None:
            with ThreadPoolExecutor(_THREADS) as pool:
                self._tables = [each for each in pool.map(self._load, self._find()) if each is not None]
        return self._tables

    def claims(self, table: IcebergTable, listing: Listing) -> Claims:
        """Return what the others claim in a folder."""
        names: list[str] = []
        folders: list[str] = []
        refusal = None
        for other in self.tables():
            if other.name == table.name:
                continue
            found = metadata_of(other)
            written = (*found.folders, default_location(other.location, other.table.properties))
            if any(map(listing.is_folder, written)):
                refusal = refusal or UsageError(
                    f"{other.name} has the same folder as {table.name}",
                    hint="keep tables in folders of their own; --yes goes on, and keeps what that one names",
                )
            folders += written
            names += self._names_here(other, found, listing)
        return Claims(tuple(names), tuple(folders), refusal=refusal)

    def _names_here(self, other: IcebergTable, found: MetadataFile, listing: Listing) -> list[str]:
        """The files of another table that may be listed."""
        if found.location not in self._folders:
            paths = named_in(found, other.io)
            self._folders[found.location] = frozenset(path.rpartition("/")[0] for path in paths)
        here = {folder for folder in self._folders[found.location] if listing.may_hold(folder)}
        paths = named_in(found, other.io) if here else iter(())
        return [path for path in paths if path.rpartition("/")[0] in here]


def metadata_of(table: IcebergTable) -> MetadataFile:
    """Return a loaded table's metadata as its file says it."""
    return parse_metadata(table.table.metadata_location, table.table.metadata.model_dump_json())
