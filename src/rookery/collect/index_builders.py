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
        """Return where a file's values go."""
        found = IndexConsumers()
        for wanted, builder in self._builders:
            found.add(wanted.field, builder.begin(file.ordinal, file.rows))
        return found

    def end(self, file: FileTask) -> None:
        """Keep what a file has given."""
        for _, builder in self._builders:
            builder.end(file.ordinal, whole=file.parts == 1)

    def results(self) -> Mapping[IndexColumn, Any]:
        """Return what is known of all files so far, in the order of the task's indexes."""
        return {wanted: builder.result() for wanted, builder in self._builders}
