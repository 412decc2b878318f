"""An analysis that counts the rows that are left of each file, as an engine does where rows are deleted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from rookery.collect.choose import Choice, choose
from rookery.collect.distributions import DistributionSketches
from rookery.collect.keep import keep
from rookery.collect.plan import Group
from rookery.collect.prepare import AnalyzePlan, prepare
from rookery.collect.segments import Written
from rookery.collect.task import Costs
from rookery.model import Field
from rookery.puffin import DeletionVector
from rookery.sidecar import Contents, SegmentEntry, State, Store, ZoneMap, write_segment
from rookery.sidecar.checksums import footer_checksum
from rookery.sketch import InvertedTheta, ThetaSketch
from rookery.sketch.kmv import ThetaBuilder
from rookery.sketch.values import add_arrow
from rookery.tables import FileList
from tests.tables.memory_format import MemoryTable, MemoryWriter

NO_ROWS = (None, DistributionSketches())


def prepared(table: MemoryTable, store: Store, *columns: str, full: bool = False) -> AnalyzePlan:
    snapshot = table.snapshot()
    assert snapshot is not None
    fields, _ = choose(table.fields(snapshot), Choice(columns=columns))
    return prepare(table, store, snapshot, fields, full)


def analyse_by_rows(writer: MemoryWriter, store: Store, *columns: str, full: bool = False) -> State:
    """Collect what is missing, and keep it."""
    table = writer.open()
    work = prepared(table, store, *columns, full=full)
    written = [_written(writer, table, store, work, group) for group in work.groups]
    return keep(table, store, work, written, NO_ROWS)


def _written(
    writer: MemoryWriter, table: MemoryTable, store: Store, work: AnalyzePlan, group: Group
) -> Written:
    vectors = vectors_of(table, work.live.deletes)
    paths, count = group.files["path"].to_pylist(), group.files.num_rows
    thetas = {}
    for field in group.fields:
        sketches = [sketch_of(writer, path, field, vectors.get(path)) for path in paths]
        parts = [InvertedTheta.of(sketch, place, count) for place, sketch in enumerate(sketches)]
        thetas[field.id] = InvertedTheta.merge(parts)
    placed = write_segment(
        store.segment_path(),
        Contents(ZoneMap.of(group.files), thetas),
        (),
        snapshot_id=work.snapshot.id,
        sequence_number=work.snapshot.sequence_number,
        io_properties={},
    )
    entry = SegmentEntry(
        placed.location.rpartition("/")[2],
        count,
        tuple(sorted(thetas)),
        table.last_column_id,
        (),
        placed.size,
        placed.footer_size,
        footer_checksum(placed.metadata),
    )
    return Written(entry, {number: theta.sketch() for number, theta in thetas.items()}, Costs(count))


def sketch_of(
    writer: MemoryWriter, path: str, field: Field, deleted: DeletionVector | None = None
) -> ThetaSketch:
    """The sketch of a column over the rows of a file that are left."""
    names = {number: name for name, number in writer.metadata.names[path].items()}
    builder = ThetaBuilder()
    if field.id in names:
        values = pq.read_table(path)[names[field.id]].combine_chunks()
        gone = set() if deleted is None else set(deleted)
        left = [place for place in range(len(values)) if place not in gone]
        add_arrow(builder, field.type, values.take(pa.array(left, pa.int64())))
    return builder.result()


def vectors_of(table: MemoryTable, deletes: Sequence[FileList]) -> dict[str, DeletionVector]:
    """The rows that are deleted, by the path of their file."""
    found = {}
    for row in table.read_files(deletes).to_pylist():
        start = row["content_offset"]
        payload = Path(row["path"]).read_bytes()[start : start + row["content_size"]]
        found[row["referenced_data_file"]] = DeletionVector.decode(payload)
    return found
