"""What one process does: read its files, and merge their results on the way. Runs on executors or here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rookery.collect.index_builders import IndexBuilders
from rookery.collect.lengths import FileLengths
from rookery.collect.physical import NeedsEngineError
from rookery.collect.plan import IndexColumn, Task
from rookery.collect.read import read_parquet
from rookery.sketch import InvertedTheta, InvertedThetaBuilder


@dataclass(slots=True)
class Costs:
    """What reading cost."""

    files: int = 0
    chunks: Counter[str] = field(default_factory=Counter)
    values: int = 0
    bytes_read: int = 0
    reads: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Return the costs as values for JSON."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def of(cls, stated: Mapping[str, Any]) -> Costs:
        """Parse the result of `as_dict`."""
        return cls(**{**stated, "chunks": Counter(stated["chunks"])})

    def __add__(self, other: Costs) -> Costs:
        return Costs(
            files=self.files + other.files,
            chunks=self.chunks + other.chunks,
            values=self.values + other.values,
            bytes_read=self.bytes_read + other.bytes_read,
            reads=self.reads + other.reads,
        )


@dataclass(frozen=True, slots=True)
class Partial:
    """The results of a task: the inverted theta of each column over the task's files."""

    group: int
    thetas: Mapping[int, InvertedTheta]
    costs: Costs
    needs_engine: tuple[int, ...] = ()  # the ordinals of files that only Iceberg's own reader understands
    indexes: Mapping[IndexColumn, Any] = field(default_factory=dict)  # parts, as their kinds have them
    highest_id: int = 0  # of the fields in the files that were understood here
    lengths: FileLengths = field(default_factory=FileLengths)


def run_task(task: Task, io_properties: Mapping[str, str]) -> Partial:
    """Read a task's files. θ falls as they are read, so later files keep less and less."""
    thetas = {column.id: InvertedThetaBuilder(task.group_size) for column in task.fields}
    indexes = IndexBuilders(task)
    costs = Costs()
    needs_engine: list[int] = []
    highest_id = 0
    lengths = FileLengths()
    for file in task.files:
        limits = {column.id: thetas[column.id].theta for column in task.fields}
        fields = () if file.only_indexes else task.fields
        consumers = indexes.consumers(file)
        try:
            reading = read_parquet(
                file.path,
                file.size,
                fields,
                limits,
                io_properties,
                file.part,
                file.parts,
                consumers,
                file.rows,
                file.mapping,
            )
        except NeedsEngineError:
            if not file.only_indexes:
                needs_engine.append(file.ordinal)
            continue
        for field_id, sketch in reading.sketches.items():
            thetas[field_id].add(sketch, file.ordinal)
        for field_id, seen in reading.lengths.items():
            lengths.add(field_id, file.ordinal, seen)
        highest_id = max(highest_id, reading.highest_id)
        indexes.end(file)
        counted = int(file.part == 0 and not file.only_indexes)
        costs += Costs(
            files=counted,
            chunks=reading.chunks,
            values=reading.values,
            bytes_read=reading.bytes_read,
            reads=reading.reads,
        )
    sketches = {field_id: theta.result() for field_id, theta in thetas.items()}
    return Partial(
        group=task.group,
        thetas=sketches,
        costs=costs,
        needs_engine=tuple(needs_engine),
        indexes=indexes.results(),
        highest_id=highest_id,
        lengths=lengths,
    )
