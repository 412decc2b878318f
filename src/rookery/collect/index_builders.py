"""Indexes under construction, as the files of a task are read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rookery.collect.plan import FileTask, IndexColumn, Task
from rookery.collect.read import IndexConsumers


class IndexBuilders:
    """The indexes of a task, each built as its kind does."""

    def __init__(self, task: Task) -> None:
        self._builders = [
            (wanted, wanted.kind.builder(wanted.index, task.group_rows)) for wanted in task.indexes
        ]

    def consumers(self, file: FileTask) -> IndexConsumers:
        """Return the consumers of a file's values."""
        consumers = IndexConsumers()
        for wanted, builder in self._builders:
            consumers.add(wanted.field, builder.begin(file.ordinal, file.rows))
        return consumers

    def end(self, file: FileTask) -> None:
        """Keep the result of a file."""
        for _, builder in self._builders:
            builder.end(file.ordinal, whole=file.parts == 1)

    def results(self) -> Mapping[IndexColumn, Any]:
        """Return the results of all files so far, in the order of the task's indexes."""
        return {wanted: builder.result() for wanted, builder in self._builders}
