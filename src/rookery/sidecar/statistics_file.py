"""The statistics file for all engines: theta blobs as Iceberg and Trino write them, nothing else."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING

from rookery.blobs import NDV, is_carried
from rookery.io import open_source
from rookery.model import UNUSABLE_FILE, MissingFileError, Snapshot, StorageError
from rookery.puffin import THETA_V1, Blob, BlobMetadata, Writer, open_puffin
from rookery.sidecar import State
from rookery.tables import StatisticsFile, Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def is_registered(table: Table, snapshot: Snapshot, state: State) -> bool:
    """Whether the registered statistics of the snapshot match the state; none are needed for no columns."""
    for file in table.statistics:
        if file.snapshot_id == snapshot.id:
            matches = matches_state(table, snapshot, state, file) and not names_gone(table, file)
            return matches and _is_there(table, file.path)
    return not any(registrable(table, snapshot, state).values())


def names_gone(table: Table, file: StatisticsFile) -> bool:
    """Whether a statistics file names columns that have been dropped: Spark's optimizer fails on them."""
    present = table.schema().by_id.keys()
    return not all(present >= set(blob.fields) for blob in file.blobs)


def matches_state(table: Table, snapshot: Snapshot, state: State, file: StatisticsFile) -> bool:
    """Whether a statistics file matches the state, by the table's metadata."""
    stated = {
        blob.fields[0]: blob.properties.get(NDV)
        for blob in file.blobs
        if blob.type == THETA_V1 and len(blob.fields) == 1
    }
    own = registrable(table, snapshot, state)
    return all(stated.get(field_id) == (str(ndv) if ndv else None) for field_id, ndv in own.items())


def _is_there(table: Table, path: str) -> bool:
    """Whether the file exists where the metadata states; one that was deleted is written again."""
    try:
        with open_source(path, table.io_properties) as source:
            return source.size >= 0
    except MissingFileError:
        return False
    except StorageError:
        return True  # without the right to list, assume that it exists


def registrable(table: Table, snapshot: Snapshot, state: State) -> dict[int, int]:
    """Return the numbers of distinct values of the columns that the snapshot's schema still has.

    0 is not registered: sketches skip the empty text, so a column may have values anyway,
    and from 0 engines conclude that no row matches. Nothing is registered with a table that Java cannot
    load: no engine would find it.
    """
    if table.not_loadable:
        return {}
    present = {field.id for field in table.fields(snapshot)}
    return {field_id: state.ndv(field_id) for field_id in sorted(state.thetas) if field_id in present}


def register(
    spark: SparkSession | None,
    table: Table,
    snapshot: Snapshot,
    state: State,
    io_properties: Mapping[str, str],
) -> None:
    """Write the statistics file of a snapshot and register it; blobs of other writers are carried forward."""
    location = f"{table.statistics_folder}/{snapshot.id}-{uuid.uuid4()}.stats"
    own, before = registrable(table, snapshot, state), nearest_file(table, snapshot)
    with Writer(location, io_properties=io_properties) as writer:
        for field_id, ndv in own.items():
            if not ndv:
                continue
            writer.add(
                Blob(
                    type=THETA_V1,
                    payload=state.thetas[field_id].encode(),
                    fields=(field_id,),
                    snapshot_id=snapshot.id,
                    sequence_number=snapshot.sequence_number,
                    properties={NDV: str(ndv)},
                )
            )
        if before is not None:
            is_earlier = before.snapshot_id != snapshot.id
            _carry_forward(writer, before, partial(is_kept, table, own, is_earlier), io_properties)
    table.register_statistics(spark, snapshot.id, writer.written, named_in_metadata(table, before))


def nearest_file(table: Table, snapshot: Snapshot) -> StatisticsFile | None:
    """Return the statistics file of a snapshot, or else of its nearest ancestor that has one."""
    files = {file.snapshot_id: file for file in table.statistics}
    return next((files[each.id] for each in table.ancestors(snapshot) if each.id in files), None)


def is_kept(table: Table, own: Collection[int], is_earlier: bool, blob: BlobMetadata) -> bool:
    """Whether a new statistics file carries a blob forward: one of the same snapshot, or of an earlier one.

    Blobs of other types than theta are carried unchanged: their snapshot id states what they describe. Those
    of an earlier snapshot are not, if their columns were dropped or they are valid only there. Theta blobs
    stay with their snapshot, as Spark plans with all that the file has, of any snapshot; and they
    are not copied if their columns were dropped or Rookery has the numbers.
    """
    is_present = set(blob.fields) <= table.schema().by_id.keys()
    if blob.type == THETA_V1:
        return not is_earlier and is_present and not set(blob.fields).issubset(own)
    return not is_earlier or (is_carried(blob.type) and is_present)


def named_in_metadata(table: Table, before: StatisticsFile | None) -> Callable[[BlobMetadata], bool]:
    """Return which blobs the table's metadata is to name: of theta, and of types that it names already.

    Not those without a column that is there: Spark's optimizer fails on them.
    """
    types = {THETA_V1, *(blob.type for blob in (before.blobs if before is not None else ()))}
    present = table.schema().by_id.keys()
    return lambda blob: blob.type in types and bool(blob.fields) and present >= set(blob.fields)


def _carry_forward(
    writer: Writer,
    file: StatisticsFile,
    is_kept: Callable[[BlobMetadata], bool],
    io_properties: Mapping[str, str],
) -> None:
    """Carry forward the blobs of other writers."""
    try:
        with open_puffin(
            file.path,
            file_size=file.size,
            footer_size=file.footer_size,
            properties=io_properties,
        ) as reader:
            for blob in filter(is_kept, reader.metadata.blobs):
                writer.add_stored(blob, reader.read_stored(blob))
    except UNUSABLE_FILE:
        return  # unreadable blobs cannot be carried; the file is replaced
