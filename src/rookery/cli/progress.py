"""A bar on a terminal's standard error for files that are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from rookery.cli.console import talk

Advance = Callable[[int, int, int, int], None]


@contextmanager
def progress_bar(name: str) -> Iterator[Advance | None]:
    """Yield what moves the bar of a table; nothing where there is no terminal.

    The bar appears when the number of files to read is known.
    """
    console = talk()
    if not console.is_terminal:
        yield None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[files]} files"),
        DownloadColumn(),
        TransferSpeedColumn(),
    )
    bar = Progress(*columns, console=console, transient=True)
    task = bar.add_task(name, files="")

    def advance(files: int, all_files: int, size: int, all_bytes: int) -> None:
        bar.update(task, completed=size, total=all_bytes, files=f"{files:,} of {all_files:,}")
        if not bar.live.is_started:
            bar.start()

    try:
        yield advance
    finally:
        bar.stop()
