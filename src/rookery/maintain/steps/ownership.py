"""What else may need files in a table's folder: other tables, forks of this one, commits under way."""

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
REMEMBERED = timedelta(days=90)  # how long a fork is assumed to exist after its last visible commit


@dataclass(frozen=True, slots=True)
class Claims:
    """What others may need in a folder; `names` and `folders` apply in any case."""

    names: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    since_ms: int | None = None  # when a commit was made that may have begun a fork
    refusal: UsageError | None = None  # why nothing may be deleted without --yes
    of_others: bool = False  # whether all names are those of other tables
    shared: str | None = None  # the evidence that others write to this folder, or to one above it


@dataclass(frozen=True, slots=True)
class UnknownMetadata:
    """The metadata files in a table's folders that are not ancestors of its current one."""

    own: tuple[MetadataFile, ...]  # of the same table, but not ancestors of the current one
    foreign: tuple[MetadataFile, ...]  # of other tables
    lineage: frozenset[str]  # exact identities of the current metadata file and of all known before it


def claims(table: IcebergTable, store: Store, listing: Listing, now: float) -> Claims:
    """Return what metadata files in a folder claim, except the table's own current and past ones."""
    unknown = unknown_metadata(table, store, listing)
    shared = next((each for each in unknown.foreign if _shares(each, table, listing)), None)
    fork, since = forked(table, unknown, now)
    refusal = None
    if shared is not None:
        refusal = UsageError(
            f"another table has metadata here: {shown(shared.location)}",
            hint="keep tables in folders of their own; --yes continues, and keeps what that file references",
        )
    elif fork is not None:
        refusal = fork
    names = [name for each in (*unknown.own, *unknown.foreign) for name in named_in(each, table.io)]
    folders = [folder for each in unknown.foreign for folder in _folders(each)]
    return Claims(tuple(names), tuple(folders), since, refusal, shared=_written_by(unknown.foreign, listing))


def _written_by(foreign: Sequence[MetadataFile], listing: Listing) -> str | None:
    for each in foreign:
        if any(Listing(folder, ()).contains(listing.location) for folder in _folders(each)):
            return f"another table has metadata here: {shown(each.location)}"
    return None


def unknown_metadata(table: IcebergTable, store: Store, listing: Listing) -> UnknownMetadata:
    """Read the metadata files of a listing, and of the table's metadata folders, that it does not know."""
    files = _metadata_files(table, store, listing)
    lineage, known = _lineage(table, store, Listing(table.location, files))
    unknown = [file for file, is_known in zip(files, known, strict=True) if not is_known]
    read = [read_metadata_file(file.location, store.io_properties) for file in unknown]
    own_uuid = table.uuid
    inside = {file.location for file in listing.files}
    return UnknownMetadata(
        tuple(each for each in read if each is not None and each.table_uuid == own_uuid),
        tuple(
            each
            for each in read
            if each is not None and each.table_uuid != own_uuid and each.location in inside
        ),
        lineage,
    )


def _metadata_files(table: IcebergTable, store: Store, listing: Listing) -> list[Listed]:
    """The metadata files of a listing, and of folders elsewhere with metadata of the table."""
    files = [file for file in listing.files if METADATA_NAME.search(file.name)]
    paths = (table.table.metadata_location, *metadata_log(table))
    folders = dict.fromkeys([table.metadata_folder, *(path.rpartition("/")[0] for path in paths)])
    listed = {file.location.rpartition("/")[0] for file in files}
    for folder in folders:
        if folder not in listed:  # in another bucket, or reached by a link, even if its name looks inside
            elsewhere = list_folder(folder, store.io_properties, recursive=False, links=False)
            files += [file for file in elsewhere if METADATA_NAME.search(file.name)]
    return files


def _lineage(table: IcebergTable, store: Store, listing: Listing) -> tuple[frozenset[str], Sequence[bool]]:
    """Return the identities of the current metadata file and of those before it, and which files they are.

    A metadata file names only so many before it; the oldest that is still there names more. A file that is
    taken for the table's own protects nothing, so it must be exactly that file, not possibly it.
    """
    exactly = Identities().surely
    listed = [exactly(file.location) for file in listing.files]
    files = {key: file for file, keys in zip(listing.files, listed, strict=True) for key in keys}
    log: Sequence[str] = metadata_log(table)
    keys = {key for name in (table.table.metadata_location, *log) for key in exactly(name)}
    while not keys.issuperset(files):
        there = (files[key] for name in log for key in exactly(name) if key in files)
        oldest = next(there, None)
        metadata = None if oldest is None else read_metadata_file(oldest.location, store.io_properties)
        log = metadata.log if metadata is not None else ()
        older = {key for name in log for key in exactly(name)}
        if older <= keys:
            break
        keys |= older
    return frozenset(keys), [not keys.isdisjoint(each) for each in listed]


def forked(table: IcebergTable, unknown: UnknownMetadata, now: float) -> tuple[UsageError | None, int | None]:
    """Return an error if another catalog has forked the table, or since when that may be so.

    One commit on known metadata may be a fork, or a failed commit; these cannot be distinguished. A second
    one after it is a fork: another catalog uses the table. One long ago, and older than the log, blocks
    nothing: only the files that it names are kept.
    """
    log = table.table.metadata.metadata_log
    oldest = min(log[0].timestamp_ms, (now - REMEMBERED.total_seconds()) * 1000) if log else 0
    recent = [each for each in unknown.own if each.updated_ms >= oldest]
    identities = Identities()
    for each in recent:
        parent = each.log[-1] if each.log else None
        if parent is None or identities.surely(parent).isdisjoint(unknown.lineage):
            refusal = UsageError(
                f"a metadata file of the table that its catalog does not know: {shown(each.location)}",
                hint="is it registered in another catalog too, or was this one restored from a backup? If "
                "neither, delete that file; --yes continues, and keeps what it references",
            )
            return refusal, None
    return None, min((each.updated_ms for each in recent), default=None)


def _shares(metadata: MetadataFile, table: IcebergTable, listing: Listing) -> bool:
    """Whether another table is in this folder itself, and not in one below."""
    identities = Identities()
    parent = metadata.location.rpartition("/")[0]
    own = identities.of(table.metadata_folder)
    places = (parent, _home(metadata), *metadata.folders)
    return any(map(listing.is_folder, places)) or not identities.of(parent).isdisjoint(own)


def _home(metadata: MetadataFile) -> str:
    """The folder of a table, by the location of its metadata."""
    parent = metadata.location.rpartition("/")[0]
    return parent.rpartition("/")[0] if parent.endswith(f"/{METADATA_FOLDER}") else parent


def _folders(metadata: MetadataFile) -> list[str]:
    return [
        _home(metadata),
        *metadata.folders,
        *(default_location(folder, {}) for folder in metadata.folders[:1]),
    ]
