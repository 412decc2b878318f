"""What else lays claim to files in a table's folder: other tables, forks of this one, commits under way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from rookery.io import Listed, list_folder, shown
from rookery.io.identity import Identities, Listing
from rookery.maintain.steps.reachable_files import metadata_log, named_in
from rookery.model import UsageError
from rookery.sidecar import Store
from rookery.sidecar.store import default_location
from rookery.tables.iceberg import IcebergTable
from rookery.tables.iceberg.metadata_file import METADATA_NAME, MetadataFile, read_metadata_file

METADATA_FOLDER = "metadata"
REMEMBERED = timedelta(days=90)  # how long a fork is believed to live without a commit that is seen


@dataclass(frozen=True, slots=True)
class Claims:
    """What others may need in a folder; `names` and `folders` count whatever else is said."""

    names: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    since_ms: int | None = None  # when a commit was made that may have begun a fork
    refusal: UsageError | None = None  # why nothing may be deleted without --yes
    of_others: bool = False  # whether all names are those of other tables
    shared: str | None = None  # how it shows that others write to this folder, or to one above it


@dataclass(frozen=True, slots=True)
class Strangers:
    """The metadata files in a table's folders that are no past of its current one."""

    own: tuple[MetadataFile, ...]  # of the same table, the lineage of none of them leads to the current one
    foreign: tuple[MetadataFile, ...]  # of other tables
    lineage: frozenset[str]  # exact identities of the current metadata file and of all known before it


def claims(table: IcebergTable, store: Store, listing: Listing, now: float) -> Claims:
    """Return what metadata files in a folder claim that are not of the table's own past."""
    found = strangers(table, store, listing)
    shared = next((each for each in found.foreign if _shares(each, table, listing)), None)
    fork, since = forked(table, found, now)
    refusal = None
    if shared is not None:
        refusal = UsageError(
            f"another table has kept its metadata here: {shown(shared.location)}",
            hint="keep tables in folders of their own; --yes goes on, and keeps what that file names",
        )
    elif fork is not None:
        refusal = fork
    names = [name for each in (*found.own, *found.foreign) for name in named_in(each, table.io)]
    folders = [folder for each in found.foreign for folder in _folders(each)]
    return Claims(tuple(names), tuple(folders), since, refusal, shared=_written_by(found.foreign, listing))


def _written_by(foreign: Sequence[MetadataFile], listing: Listing) -> str | None:
    for each in foreign:
        if any(Listing(folder, ()).contains(listing.location) for folder in _folders(each)):
            return f"another table has kept its metadata here: {shown(each.location)}"
    return None


def strangers(table: IcebergTable, store: Store, listing: Listing) -> Strangers:
    """Read the metadata files of a listing, and of the table's metadata folders, that it does not know."""
    files = _metadata_files(table, store, listing)
    lineage, known = _lineage(table, store, Listing(table.location, files))
    unknown = [file for file, is_known in zip(files, known, strict=True) if not is_known]
    read = [read_metadata_file(file.location, store.io_properties) for file in unknown]
    own_uuid = table.uuid
    inside = {file.location for file in listing.files}
    return Strangers(
        tuple(each for each in read if each is not None and each.table_uuid == own_uuid),
        tuple(
            each
            for each in read
            if each is not None and each.table_uuid != own_uuid and each.location in inside
        ),
        lineage,
    )


def _metadata_files(table: IcebergTable, store: Store, listing: Listing) -> list[Listed]:
    """The metadata files of a listing, and of folders elsewhere in which the table's metadata lies."""
    found = [file for file in listing.files if METADATA_NAME.search(file.name)]
    paths = (table.table.metadata_location, *metadata_log(table))
    folders = dict.fromkeys([table.metadata_folder, *(path.rpartition("/")[0] for path in paths)])
    listed = {file.location.rpartition("/")[0] for file in found}
    for folder in folders:
        if folder not in listed:  # in another bucket, or behind a link, whatever its name looks like
            elsewhere = list_folder(folder, store.io_properties, recursive=False, links=False)
            found += [file for file in elsewhere if METADATA_NAME.search(file.name)]
    return found


def _lineage(table: IcebergTable, store: Store, listing: Listing) -> tuple[frozenset[str], Sequence[bool]]:
    """Return the identities of the current metadata file and of those before it, and which files they are.

    A metadata file names only so many before it; the oldest that is still there names more. A file that is
    taken for the table's own protects nothing, so it must be that very file: what merely may be is not.
    """
    exactly = Identities().surely
    listed = [exactly(file.location) for file in listing.files]
    files = {key: file for file, keys in zip(listing.files, listed, strict=True) for key in keys}
    log: Sequence[str] = metadata_log(table)
    keys = {key for name in (table.table.metadata_location, *log) for key in exactly(name)}
    while not keys.issuperset(files):
        there = (files[key] for name in log for key in exactly(name) if key in files)
        oldest = next(there, None)
        found = None if oldest is None else read_metadata_file(oldest.location, store.io_properties)
        log = found.log if found is not None else ()
        older = {key for name in log for key in exactly(name)}
        if older <= keys:
            break
        keys |= older
    return frozenset(keys), [not keys.isdisjoint(each) for each in listed]


def forked(table: IcebergTable, found: Strangers, now: float) -> tuple[UsageError | None, int | None]:
    """Say whether another catalog has gone its own way with the table, or since when that may be so.

    One commit upon known metadata may be a fork, or may have failed: nobody can tell. A commit upon that is
    none of ours: whoever made it keeps the table too. What is long ago, and older than the log, blocks
    nothing: only what it names is kept.
    """
    log = table.table.metadata.metadata_log
    oldest = min(log[0].timestamp_ms, (now - REMEMBERED.total_seconds()) * 1000) if log else 0
    recent = [each for each in found.own if each.updated_ms >= oldest]
    identities = Identities()
    for each in recent:
        parent = each.log[-1] if each.log else None
        if parent is None or identities.surely(parent).isdisjoint(found.lineage):
            refusal = UsageError(
                f"a metadata file of the table that its catalog does not know: {shown(each.location)}",
                hint="is it registered in another catalog too, or was this one restored from a backup? If "
                "neither, delete that file; --yes goes on, and keeps what it names",
            )
            return refusal, None
    return None, min((each.updated_ms for each in recent), default=None)


def _shares(found: MetadataFile, table: IcebergTable, listing: Listing) -> bool:
    """Whether another table lies in this very folder, and not in one below."""
    identities = Identities()
    parent = found.location.rpartition("/")[0]
    ours = identities.of(table.metadata_folder)
    places = (parent, _home(found), *found.folders)
    return any(map(listing.is_folder, places)) or not identities.of(parent).isdisjoint(ours)


def _home(found: MetadataFile) -> str:
    """The folder of a table by where its metadata lies."""
    parent = found.location.rpartition("/")[0]
    return parent.rpartition("/")[0] if parent.endswith(f"/{METADATA_FOLDER}") else parent


def _folders(found: MetadataFile) -> list[str]:
    return [_home(found), *found.folders, *(default_location(folder, {}) for folder in found.folders[:1])]
