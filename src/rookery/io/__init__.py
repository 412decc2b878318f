"""Files anywhere: sources that read and count ranges, sinks that appear whole or not at all."""

from rookery.io.file import SourceFile
from rookery.io.listing import Listed, list_folder
from rookery.io.location import STORE_HINT, local_path, scheme_of, shown
from rookery.io.open import Readable, Writable, create_sink, list_files, open_source
from rookery.io.renewal import RenewableProperties
from rookery.io.reopening import ReopeningSource
from rookery.io.sink import BytesSink, LocalSink, Sink
from rookery.io.source import BytesSource, InputFile, LocalSource, Source
from rookery.io.tail import TailSource

__all__ = [
    "STORE_HINT",
    "BytesSink",
    "BytesSource",
    "InputFile",
    "Listed",
    "LocalSink",
    "LocalSource",
    "Readable",
    "RenewableProperties",
    "ReopeningSource",
    "Sink",
    "Source",
    "SourceFile",
    "TailSource",
    "Writable",
    "create_sink",
    "list_files",
    "list_folder",
    "local_path",
    "open_source",
    "scheme_of",
    "shown",
]
