"""The text views of reports."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.filesize import decimal
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from rookery.api.puffin_files import BlobView, CopyReport, PuffinView, VerifyReport
from rookery.cli.render import as_text, plain, visible
from rookery.model import Check, Estimate, Outcome, describe, findings

_MARKS = {Outcome.OK: ("✓", "green"), Outcome.NOTE: ("·", "yellow"), Outcome.FINDING: ("✗", "bold red")}


@as_text.register
def puffin_text(view: PuffinView) -> RenderableType:
    """A tree of the file, its footer and its blobs."""
    tree = Tree(f"[bold]{plain(view.file)}[/]  {size(view.size)}", guide_style="dim")
    kind = "LZ4" if view.footer_compressed else "plain"
    footer = tree.add(f"footer  {size(view.footer_size)}, {kind}")
    for key, value in (*view.properties.items(), *view.extra.items()):
        footer.add(f"[dim]{plain(key)}[/] {plain(str(value))}")
    for blob in view.blobs:
        _blob(tree, blob)
    return tree


def _blob(tree: Tree, view: BlobView) -> None:
    blob = view.metadata
    fields = ", ".join(map(str, blob.fields))
    branch = tree.add(
        f"[bold cyan]{view.number}[/]  {plain(blob.type)}"
        + (f"  [dim]field[/] {fields}" if fields else "")
        + f"  [dim]{size(blob.length)} at {blob.offset:,}, {plain(blob.codec or 'not compressed')}[/]"
    )
    if view.problem:
        branch.add(f"[bold red]✗ {plain(view.problem)}[/]")
    said = [
        f"{plain(key.replace('_', ' '))} {plain(_value(value))}"
        for key, value in (view.summary or {}).items()
    ]
    if said:
        branch.add(f"[bold]{said[0]}[/]")
        branch.add(f"[dim]{' · '.join(said[1:])}[/]")
    if blob.snapshot_id != -1:
        branch.add(f"[dim]snapshot {blob.snapshot_id} · sequence number {blob.sequence_number}[/]")
    if view.summary is None:
        for key, value in (*blob.properties.items(), *blob.extra.items()):
            branch.add(f"[dim]{plain(key)}[/] {plain(str(value))}")


def _value(value: object) -> str:
    if isinstance(value, Estimate):
        return describe(value)
    if isinstance(value, float):
        return f"{value:.6g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def size(count: int) -> str:
    """Say a number of bytes as people do.

    >>> size(12), size(123_456)
    ('12 bytes', '123.5 kB')
    """
    return decimal(count)


@as_text.register
def verify_text(report: VerifyReport) -> RenderableType:
    """A line a check, and a last line that sums up."""
    found = len(findings(report.checks))
    return Group(
        Text(visible(report.file), "bold"),
        check_lines(report.checks),
        Text(f"{len(report.checks)} checks, {found} findings", "bold red" if found else "bold green"),
    )


def check_lines(checks: tuple[Check, ...]) -> RenderableType:
    """A line a check, and the hints below."""
    table = Table.grid(padding=(0, 2))
    for check in checks:
        mark, style = _MARKS[check.outcome]
        table.add_row(
            Text(mark, style),
            Text(check.subject),
            Text(visible(check.rule)),
            Text(visible(check.detail), "dim", overflow="fold"),
        )
    return Group(table, *_hints(checks))


def _hints(checks: tuple[Check, ...]) -> Iterator[Text]:
    for check in checks:
        if check.hint:
            yield Text.assemble(("hint: ", "bold"), visible(f"{check.subject}: {check.hint}"))


@as_text.register
def copy_text(report: CopyReport) -> RenderableType:
    """One line: what became of what."""
    return (
        f"[bold]{plain(report.target)}[/]  {report.blobs_out} of {report.blobs_in} blobs, "
        f"{size(report.bytes_out)} from {size(report.bytes_in)}"
    )
