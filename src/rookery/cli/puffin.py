"""`rookery puffin`: look into Puffin files, check and copy them."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from rookery.cli.help import HelpfulCommand, group
from rookery.cli.options import options_of
from rookery.cli.render import show
from rookery.model import UsageError

CODECS = ("keep", "none", "zstd", "lz4")  # of `rookery.api.puffin_files`, which brings numpy

app = group(help="Inspect, verify and copy Puffin files.")

File = Annotated[str, typer.Argument(metavar="FILE", help="A path or a URL.")]
Table = Annotated[
    str | None,
    typer.Option(
        "--table", help="Read a URL with the storage settings that the catalog provides for this table."
    ),
]


@app.command(cls=HelpfulCommand)
def inspect(context: typer.Context, file: File, table: Table = None) -> None:
    """Show a file: its footer, its blobs, and the content of blobs of known types.

    For a theta or HLL sketch: the number of distinct values, with bounds at two standard deviations. For a
    deletion vector: how many rows of which data file it deletes. The exit code is 1 if a blob cannot be
    decoded.
    """
    from rookery.api import puffin_files  # brings numpy

    options = options_of(context)
    show(puffin_files.inspect(file, options.properties_for(table, file)), options)


@app.command(cls=HelpfulCommand)
def cat(
    context: typer.Context,
    file: File,
    blob: Annotated[int, typer.Option(help="Number of the blob, from 0.")],
    stored: Annotated[
        bool, typer.Option("--stored", help="Write it as stored, without decompression.")
    ] = False,
    table: Table = None,
) -> None:
    """Write the payload of one blob to standard output, byte for byte."""
    from rookery.api import puffin_files  # brings numpy

    options = options_of(context)
    data = puffin_files.payload(file, blob, options.properties_for(table, file), stored=stored)
    rest = memoryview(data)
    while rest:  # an unbuffered stream may accept only a part, as before a full disk or a closed pipe
        rest = rest[sys.stdout.buffer.write(rest) :]
    sys.stdout.buffer.flush()


@app.command(cls=HelpfulCommand)
def verify(context: typer.Context, file: File, table: Table = None) -> None:
    """Check a file against the rules of the specification, one line each; exit with 1 on a finding."""
    from rookery.api import puffin_files  # brings numpy

    options = options_of(context)
    show(puffin_files.verify(file, options.properties_for(table, file)), options)


@app.command(cls=HelpfulCommand)
def copy(
    context: typer.Context,
    source: Annotated[str, typer.Argument(metavar="IN", help="A path or a URL.")],
    target: Annotated[str, typer.Argument(metavar="OUT", help="A path or a URL.")],
    blob: Annotated[
        list[int] | None, typer.Option(help="Copy only the blob with this number; may be repeated.")
    ] = None,
    type_: Annotated[
        list[str] | None, typer.Option("--type", help="Copy only blobs of this type; may be repeated.")
    ] = None,
    drop: Annotated[list[str] | None, typer.Option(help="Drop blobs of this type; may be repeated.")] = None,
    codec: Annotated[str, typer.Option(help=f"Codec of the blobs: {', '.join(CODECS)}.")] = CODECS[0],
    compress_footer: Annotated[
        bool, typer.Option("--compress-footer", help="Compress the footer with LZ4.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUT if it exists.")] = False,
    table: Table = None,
) -> None:
    """Copy a file, selecting, dropping or recompressing blobs.

    Blobs that need no change are copied byte for byte, of any type; deletion vectors are never
    compressed. OUT is written completely or not at all.
    """
    from rookery.api import puffin_files  # brings numpy

    options = options_of(context)
    if codec not in CODECS:
        raise UsageError(f"unknown codec '{codec}'", hint=f"choose one of {', '.join(CODECS)}")
    report = puffin_files.copy(
        source,
        target,
        numbers=blob or (),
        types=type_ or (),
        dropped_types=drop or (),
        codec=codec,
        compress_footer=compress_footer,
        overwrite=overwrite,
        properties=options.properties_for(table, source, target),
    )
    show(report, options)
