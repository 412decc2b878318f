"""The files that the cascade leaves, ready to be read: with their deletes, and the rows that indexes name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rookery.indexes import KINDS
from rookery.model import leaves_of, wanted_values
from rookery.model.cache import nbytes_of
from rookery.model.text import REPLACEMENT, REPLACEMENT_IN_JSON
from rookery.prune.cascade import Pruning
from rookery.prune.parquet_pruning import StoredFile
from rookery.prune.partitions import in_form
from rookery.read.deletes import NOTHING, DeleteReader
from rookery.read.file import FileRead
from rookery.tables import Table, identities
from rookery.tables.partitioning import TransformKind


def survivors(
    pruning: Pruning, io_properties: Mapping[str, str], *, with_deletes: bool = True
) -> list[FileRead]:
    """Return the files that are left, in their order; delete files are read only if needed."""
    numbers = pruning.numbers
    if not len(numbers):
        return []
    left = pruning.files.files.take(numbers)
    reader = DeleteReader(pruning.table.schema(pruning.snapshot), io_properties)
    attached = attached_deletes(pruning, left) if with_deletes else {}
    rows = _rows(pruning, numbers)
    answered = _answered(pruning)
    constants = _Constants(pruning.table)
    return [
        FileRead(
            path=file["path"],
            stored=StoredFile(
                identity=identity,
                size=file["size"],
                rows=file["rows"],
                replaced=constants.replaced(file["spec_id"], file["partition"]),
                mapping=pruning.table.column_mapping(file["path"]),
                stands_alone=bool(pruning.alone[number]),
            ),
            format=file["format"],
            constants=constants.of(file["spec_id"], file["partition"]),
            deleted=reader.deleted(file["path"], attached[place]) if place in attached else NOTHING,
            rows=rows.get(int(number)),
            answered=answered,
        )
        for place, (number, identity, file) in enumerate(
            zip(numbers, identities(left).to_pylist(), left.to_pylist(), strict=True)
        )
    ]


def attached_deletes(pruning: Pruning, left: pa.Table) -> Mapping[int, list[Mapping[str, Any]]]:
    """Return the delete files of the files that are left, by their position among these."""
    lists = pruning.files.live.deletes
    if not lists:
        return {}
    deletes = pruning.files.store.cache.get(
        ("deletes", tuple(each.identity for each in lists)),
        lambda: pruning.table.read_files(lists),
        nbytes_of,
    )
    return pruning.table.deletes_by_file(left, deletes)


def _rows(pruning: Pruning, numbers: NDArray[np.int64]) -> dict[int, NDArray[np.int64]]:
    """The rows that indexes name, by file."""
    rows_by_file = {}
    wanted = set(numbers.tolist())
    for place in pruning.files.places:
        rows = pruning.rows.get(place.segment)
        if rows is not None:
            for number, ordinal in zip(place.numbers.tolist(), place.ordinals.tolist(), strict=True):
                if number in wanted and rows.covered[ordinal]:
                    rows_by_file[number] = rows.of_file(ordinal)
    return rows_by_file


def _answered(pruning: Pruning) -> frozenset[int]:
    """The columns whose values an index has looked up: Bloom filters inside files would add nothing."""
    state = pruning.files.state
    if state is None:
        return frozenset()
    serving = {name for name, kind in KINDS.items() if kind.serves_equality}
    indexed = {index.field_id for index in state.header.indexes if index.kind in serving}
    looked_up = {leaf.field.id for leaf in leaves_of(pruning.predicate) if wanted_values(leaf) is not None}
    return frozenset(indexed & looked_up)


class _Constants:
    """Partition values of columns that a file may lack, such as files imported from Hive."""

    def __init__(self, table: Table) -> None:
        self._specs = {
            spec_id: [
                (place, part.source_id)
                for place, part in enumerate(spec)
                if part.transform.kind is TransformKind.IDENTITY
            ]
            for spec_id, spec in table.specs.items()
        }
        self._types = {field.id: field.type for field in table.fields()}
        self._known: dict[tuple[int, str], Mapping[int, Any]] = {}

    def of(self, spec_id: int, partition: str) -> Mapping[int, Any]:
        """Return the values by field id, as Arrow scalars in their type's form."""
        key = (spec_id, partition)
        if key not in self._known:
            identity = self._specs.get(spec_id, [])
            values = json.loads(partition) if identity else []
            self._known[key] = {
                number: in_form(self._types[number], [values[place]])[0]
                for place, number in identity
                if number in self._types
            }
        return self._known[key]

    def replaced(self, spec_id: int, partition: str) -> frozenset[int]:
        """Return the columns whose text may differ in the file: Iceberg uses the partition's."""
        if REPLACEMENT_IN_JSON not in partition:
            return frozenset()
        known = self.of(spec_id, partition).items()
        texts = [(number, value.as_py() or b"") for number, value in known if self._types[number] == "string"]
        return frozenset(number for number, text in texts if REPLACEMENT.encode() in text)
