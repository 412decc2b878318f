"""Progress of a run: files and bytes as they are done."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

from rookery.collect.plan import Task

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Progress = Callable[[int, int, int, int], None]
"""Receives how many files are read so far, and of how many; and the same of bytes."""

_EVERY = 0.2


def silent(files: int, all_files: int, size: int, all_bytes: int) -> None:
    """Report nothing."""


@contextmanager
def watched(spark: SparkSession, tasks: Sequence[Task], progress: Progress) -> Iterator[None]:
    """Report how many tasks of the Spark jobs that run inside are done, in files and bytes.

    Spark states how many tasks are done, not which; they are of about equal size.
    """
    if progress is silent:
        yield
        return
    context = spark.sparkContext
    group = f"rookery-{uuid4().hex}"
    context.setJobGroup(group, "rookery analyze")
    files = sum(len(task.files) for task in tasks)
    size = sum(file.size for task in tasks for file in task.files)
    done = threading.Event()
    progress(0, files, 0, size)

    def poll() -> None:
        tracker = context.statusTracker()
        while not done.wait(_EVERY):
            stages = [
                tracker.getStageInfo(stage)
                for job in tracker.getJobIdsForGroup(group)
                for stage in getattr(tracker.getJobInfo(job), "stageIds", ())
            ]
            share = min(sum(stage.numCompletedTasks for stage in stages if stage) / len(tasks), 1.0)
            progress(int(files * share), files, int(size * share), size)

    watcher = threading.Thread(target=poll, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
    progress(files, files, size, size)
