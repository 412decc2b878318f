"""`spark.read.format("puffin")`: one row a blob, of a file or of all Puffin files below a folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from rookery.io import list_files, scheme_of, shown
from rookery.model import UsageError
from rookery.puffin import open_puffin
from rookery.tables.config import resolve
from rookery.tables.formats import open_table

_COLUMNS = """
    file string, blob int, type string, fields array<int>, snapshot_id bigint, sequence_number bigint,
    offset bigint, length bigint, codec string, properties map<string, string>
"""
_ARROW = pa.schema(
    [
        ("file", pa.string()),
        ("blob", pa.int32()),
        ("type", pa.string()),
        ("fields", pa.list_(pa.int32())),
        ("snapshot_id", pa.int64()),
        ("sequence_number", pa.int64()),
        ("offset", pa.int64()),
        ("length", pa.int64()),
        ("codec", pa.string()),
        ("properties", pa.map_(pa.string(), pa.string())),
    ]
)
PAYLOAD = "payload"
SUFFIXES = (".puffin", ".stats")
_BATCH_BYTES = 32 << 20
_BATCH_ROWS = 4096


@dataclass
class FilePartition(InputPartition):
    """One file, read by one task."""

    location: str

    def __init__(self, location: str) -> None:
        super().__init__(location)
        self.location = location


class PuffinDataSource(DataSource):
    """Reads Puffin files. With the option `payload`, with their payloads, decompressed.

    The store is reached with the properties of the catalog that the option `catalog` names, or of the default
    one; with the option `table`, with the catalog's settings for that table. Other options are properties
    for the file system, as a PyIceberg catalog has them (`s3.endpoint` …), and have precedence.
    """

    @classmethod
    def name(cls) -> str:
        """The name for `format`."""
        return "puffin"

    def schema(self) -> str:
        """The columns, of which `payload` is there on demand."""
        return _COLUMNS + (f", {PAYLOAD} binary" if self._with_payload() else "")

    def reader(self, schema: StructType) -> DataSourceReader:
        """Make the reader."""
        options = dict(self.options)
        path = options.get("path")
        if not path:
            raise UsageError("no path was given", hint='use spark.read.format("puffin").load(path)')
        return PuffinSourceReader(path, _properties(path, options), self._with_payload())

    def _with_payload(self) -> bool:
        return str(self.options.get(PAYLOAD, "false")).lower() == "true"


def _properties(path: str, options: Mapping[str, str]) -> Mapping[str, str]:
    """The properties to access the store; a local path needs none, and no catalog."""
    if scheme_of(path) is None:
        return options
    if "table" not in options:
        return {**resolve(options.get("catalog")).properties, **options}
    handed_out = open_table(options["table"], options.get("catalog")).io_properties
    given = {key: value for key, value in options.items() if "." in key}
    return {**handed_out, **given} if given else handed_out


class PuffinSourceReader(DataSourceReader):
    """Lists the files on the driver, reads each on an executor."""

    def __init__(self, path: str, properties: Mapping[str, str], with_payload: bool) -> None:
        self._path = path
        self._properties = properties
        self._with_payload = with_payload

    def partitions(self) -> list[InputPartition]:
        """One partition a file."""
        return [FilePartition(file) for file in list_files(self._path, SUFFIXES, self._properties)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one file's blobs, in batches bounded by rows and by bytes of payload."""
        if not isinstance(partition, FilePartition):  # Spark's own, where there are no partitions
            return
        schema = _ARROW.append(pa.field(PAYLOAD, pa.binary())) if self._with_payload else _ARROW
        rows: list[dict[str, object]] = []
        held = 0
        with open_puffin(partition.location, properties=self._properties) as reader:
            for index, blob in enumerate(reader.metadata.blobs):
                row: dict[str, object] = {
                    "file": shown(partition.location),
                    "blob": index,
                    "type": blob.type,
                    "fields": blob.fields,
                    "snapshot_id": blob.snapshot_id,
                    "sequence_number": blob.sequence_number,
                    "offset": blob.offset,
                    "length": blob.length,
                    "codec": blob.codec,
                    "properties": list(blob.properties.items()),
                }
                if self._with_payload:
                    payload = reader.read(blob)
                    row[PAYLOAD] = payload
                    held += len(payload)
                rows.append(row)
                if held >= _BATCH_BYTES or len(rows) >= _BATCH_ROWS:
                    yield pa.RecordBatch.from_pylist(rows, schema)
                    rows, held = [], 0
        if rows:
            yield pa.RecordBatch.from_pylist(rows, schema)
