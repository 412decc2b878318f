"""Files anywhere: sources that read and count ranges, sinks that appear whole or not at all."""

from rookery.storage.file import SourceFile
from rookery.storage.listing import Listed, list_folder
from rookery.storage.location import STORE_HINT, local_path, scheme_of, shown, without_secrets
from rookery.storage.open import Readable, Writable, create_sink, list_files, open_source
from rookery.storage.passing import PassingSource
from rookery.storage.renewal import RenewableProperties
from rookery.storage.sink import BytesSink, LocalSink, Sink
from rookery.storage.source import BytesSource, InputFile, LocalSource, Source
from rookery.storage.tail import TailSource

__all__ = [
    "STORE_HINT",
    "BytesSink",
    "BytesSource",
    "InputFile",
    "Listed",
    "LocalSink",
    "LocalSource",
    "PassingSource",
    "Readable",
    "RenewableProperties",
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
    "without_secrets",
]
