"""The last two stages, inside the files: row groups and pages, without reading rows."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rookery.io import TailSource, open_source
from rookery.model import ALWAYS, Predicate
from rookery.parquet import FIRST_READ
from rookery.prune.cascade import Pruning, StageReport
from rookery.prune.parquet_pruning import Inside, pages, row_groups
from rookery.read.file import FileRead

ROW_GROUPS, PAGES = "row group pruning", "page pruning"


@dataclass(slots=True)
class _Left:
    files: int = 0
    size: int = 0
    rows: int = 0

    def add(self, size: float, rows: int) -> None:
        self.files += rows > 0
        self.size += int(size)
        self.rows += rows


def look_inside(
    pruning: Pruning,
    files: Sequence[FileRead] | None,
    predicate: Predicate,
    io_properties: Mapping[str, str],
    most: int,
) -> tuple[list[StageReport], dict[str, int]]:
    """Return the stages for row groups and pages, and how many rows may match in each file by its path."""
    before = _Left(*pruning.measure())
    if files is None or predicate == ALWAYS:
        why = "no predicate" if predicate == ALWAYS else f"more than {most:,} files are left: not examined"
        return [_report(name, before, before, 0, 0.0, [why]) for name in (ROW_GROUPS, PAGES)], {}
    groups, paged = _Left(), _Left()
    ms = [0.0, 0.0]
    read = [0, 0]
    notes: list[list[str]] = [[], []]
    rows_left: dict[str, int] = {}
    for file in files:
        if file.format != "parquet":
            notes[0].append(f"{file.format} files are not looked into")
            groups.add(file.size, 1)
            paged.add(file.size, 1)
            continue
        with open_source(file.path, io_properties) as opened:
            source = TailSource(opened, file.size, FIRST_READ)
            started = time.perf_counter()
            try:
                inside = row_groups(source, file.stored, predicate, pruning.files.store.cache, file.answered)
                ms[0] += time.perf_counter() - started
                read[0] += opened.bytes_read
                groups.add(*_measure(inside))
                first, started = opened.bytes_read, time.perf_counter()
                pages(source, inside, predicate)
                ms[1] += time.perf_counter() - started
                read[1] += opened.bytes_read - first
                paged.add(*_measure(inside))
                rows_left[file.path] = _measure(inside)[1]
                notes[0] += inside.notes
            except Exception as error:  # noqa: BLE001  # a file that cannot be examined is kept whole
                notes[0].append(f"could not be used: {error}")
                groups.add(file.size, 1)
                paged.add(file.size, 1)
    return [
        _report(ROW_GROUPS, before, groups, read[0], ms[0], notes[0]),
        _report(PAGES, groups, paged, read[1], ms[1], notes[1]),
    ], rows_left


def _measure(inside: Inside) -> tuple[float, int]:
    """The bytes and rows that are left; for a row group with some rows left, bytes in proportion."""
    size, rows = 0.0, 0
    for group in inside.groups:
        stored = inside.footer.row_groups[group.number]
        left = stored.rows if group.rows is None else int(group.rows.sum())
        size += sum(chunk.size for chunk in stored.chunks) * (left / stored.rows if stored.rows else 0)
        rows += left
    return size, rows


def _report(
    name: str, before: _Left, after: _Left, read: int, seconds: float, notes: Sequence[str]
) -> StageReport:
    return StageReport(
        name=name,
        files_in=before.files,
        files_out=after.files,
        bytes_in=before.size,
        bytes_out=after.size,
        rows_in=before.rows,
        rows_out=after.rows,
        index_bytes=read,
        ms=round(seconds * 1000, 3),
        note="; ".join(dict.fromkeys(notes)),
    )
