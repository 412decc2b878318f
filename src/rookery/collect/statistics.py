"""The statistics file, for everyone: theta blobs as Iceberg and Trino write them, and nothing of ours."""

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
    """Whether the snapshot's registered statistics say what the state says; of nothing, none need be."""
    for file in table.statistics:
        if file.snapshot_id == snapshot.id:
            said = matches_state(table, snapshot, state, file) and not names_gone(table, file)
            return said and _is_there(table, file.path)
    return not any(registrable(table, snapshot, state).values())


def names_gone(table: Table, file: StatisticsFile) -> bool:
    """Whether a statistics file names columns that have been dropped: Spark's optimizer fails on them."""
    present = table.schema().by_id.keys()
    return not all(present >= set(blob.fields) for blob in file.blobs)


def matches_state(table: Table, snapshot: Snapshot, state: State, file: StatisticsFile) -> bool:
    """Whether a statistics file says what the state says, as far as the table's metadata tells."""
    stated = {
        blob.fields[0]: blob.properties.get(NDV)
        for blob in file.blobs
        if blob.type == THETA_V1 and len(blob.fields) == 1
    }
    ours = registrable(table, snapshot, state)
    return all(stated.get(field_id) == (str(ndv) if ndv else None) for field_id, ndv in ours.items())


def _is_there(table: Table, path: str) -> bool:
    """Whether the file is where the metadata says; one that somebody has deleted is written again."""
    try:
        with open_source(path, table.io_properties) as source:
            return source.size >= 0
    except MissingFileError:
        return False
    except StorageError:
        return True  # who may not look cannot tell


def registrable(table: Table, snapshot: Snapshot, state: State) -> dict[int, int]:
    """Return the numbers of distinct values of the columns that the snapshot's schema still has.

    None is registered that is 0: sketches pass over the empty text, so a column may have values all the same,
    and from 0 engines conclude that no row matches. Nothing can be registered with a table that Java cannot
    load, as it is Java that commits.
    """
    if table.not_loadable:
        return {}
    present = {field.id for field in table.fields(snapshot)}
    return {field_id: state.ndv(field_id) for field_id in sorted(state.thetas) if field_id in present}


def register(
    spark: SparkSession,
    table: Table,
    snapshot: Snapshot,
    state: State,
    io_properties: Mapping[str, str],
) -> None:
    """Write the statistics file of a snapshot and register it; blobs of other writers go along."""
    location = f"{table.statistics_folder}/{snapshot.id}-{uuid.uuid4()}.stats"
    ours, before = registrable(table, snapshot, state), nearest_file(table, snapshot)
    with Writer(location, io_properties=io_properties) as writer:
        for field_id, ndv in ours.items():
            if not ndv:
                continue
            writer.add(
                Blob(
                    THETA_V1,
                    state.thetas[field_id].encode(),
                    (field_id,),
                    snapshot.id,
                    snapshot.sequence_number,
                    properties={NDV: str(ndv)},
                )
            )
        if before is not None:
            is_earlier = before.snapshot_id != snapshot.id
            _carry_forward(writer, before, partial(is_kept, table, ours, is_earlier), io_properties)
    table.register_statistics(spark, snapshot.id, writer.written, named_in_metadata(table, before))


def nearest_file(table: Table, snapshot: Snapshot) -> StatisticsFile | None:
    """Return the statistics file of a snapshot, or else of its nearest ancestor that has one."""
    files = {file.snapshot_id: file for file in table.statistics}
    return next((files[each.id] for each in table.ancestors(snapshot) if each.id in files), None)


def is_kept(table: Table, ours: Collection[int], is_earlier: bool, blob: BlobMetadata) -> bool:
    """Whether a blob goes along into a new statistics file: one of the same snapshot, or of an earlier one.

    Blobs of other types than theta go along as they are: their own snapshot id says what they describe. Those
    of an earlier snapshot do not if their columns are gone, or if they mean nothing elsewhere. Theta blobs
    stay with their snapshot, as Spark plans with every one that the file has, whatever it is of; and they
    are left out where their columns are gone or the numbers are ours.
    """
    is_present = set(blob.fields) <= table.schema().by_id.keys()
    if blob.type == THETA_V1:
        return not is_earlier and is_present and not set(blob.fields).issubset(ours)
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
    """Take along what others have written."""
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
        return  # what cannot be read cannot be carried; the file is replaced by a good one
