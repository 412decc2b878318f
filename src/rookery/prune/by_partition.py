"""Partition values, over all specs that the table has had."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rookery.model import leaves_of
from rookery.prune.partitions import PartitionColumn, might_match_partitions, partition_columns

if TYPE_CHECKING:
    from rookery.prune.cascade import Pruning


def stage(pruning: Pruning) -> tuple[NDArray[np.bool_], str]:
    """Skip the files of partitions in which nothing can match."""
    columns = useful_columns(pruning)
    keep = np.ones(len(pruning.files), bool)
    if not columns:
        partitioned = any(pruning.table.specs.values())
        return keep, "not partitioned by these columns" if partitioned else "the table has no partitions"
    files = pruning.files.files
    specs = files["spec_id"].to_numpy()
    for spec_id, known in columns.items():
        of_spec = np.flatnonzero(specs == spec_id)
        if len(of_spec):
            encoded = files["partition"].take(of_spec).combine_chunks().dictionary_encode()
            may_match = might_match_partitions(pruning.predicate, known, encoded.dictionary.to_pylist())
            keep[of_spec] = may_match[np.asarray(encoded.indices)]
    return keep, ""


def useful_columns(pruning: Pruning) -> dict[int, list[PartitionColumn]]:
    """The partition fields, by spec, that are made from columns of the predicate."""
    wanted = {leaf.field.id for leaf in leaves_of(pruning.predicate)}
    schema = pruning.table.schema(pruning.snapshot)
    types = {number: str(column.type) for number, column in schema.by_id.items()}
    by_spec = {
        spec_id: [column for column in partition_columns(spec, types) if column.source_id in wanted]
        for spec_id, spec in pruning.table.specs.items()
    }
    return {spec_id: columns for spec_id, columns in by_spec.items() if columns}
