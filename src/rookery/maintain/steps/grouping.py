"""Iceberg's groups of rewrites: which files it may write together, by their partitions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rookery.maintain.survey import partitions
from rookery.tables.partitioning import PartitionField


def rewrite_groups(files: pa.Table, current_spec: int) -> NDArray[np.int64]:
    """Number the groups by which Iceberg rewrites data files.

    It groups files of the current spec by their partition. A file of another spec counts as one whose
    partition values are all null, so it is in one group with files of the current spec that have only nulls,
    or, where the current spec has no fields, with all of them.
    """
    codes, specs, texts = partitions(files)
    nulls = np.array([all(value is None for value in json.loads(text)) for text in texts], bool)
    return np.where((specs == current_spec) & ~nulls[codes], codes, -1)


def delete_groups(files: pa.Table, specs: Mapping[int, Sequence[PartitionField]]) -> NDArray[np.int64]:
    """Number the groups by which Iceberg rewrites position deletes.

    It takes each partition as one of all fields that any spec has had; those that its own lacks are null.
    """
    codes, spec_ids, texts = partitions(files)
    pairs, inverse = np.unique(np.stack([spec_ids, codes]), axis=1, return_inverse=True)
    numbers: dict[str, int] = {}
    groups = []
    for spec_id, code in pairs.T.tolist():
        fields = (field.id for field in specs[spec_id])
        values = dict(zip(fields, json.loads(texts[code]), strict=True))
        stated = json.dumps(
            {key: value for key, value in values.items() if value is not None}, sort_keys=True
        )
        groups.append(numbers.setdefault(stated, len(numbers)))
    return np.array(groups, np.int64)[inverse.reshape(-1)]
