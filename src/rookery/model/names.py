"""How tables are named: `catalog.namespace.table`, or `namespace.table` in the default catalog."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from dataclasses import dataclass

from rookery.model.errors import UsageError

_PART = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")
_PLAIN = re.compile(r"[A-Za-z_]\w*", re.ASCII)


@dataclass(frozen=True, slots=True)
class TableName:
    """A table's full name; the namespace may have several levels."""

    catalog: str
    namespace: tuple[str, ...]
    table: str

    @classmethod
    def parse(cls, text: str, *, default_catalog: str, catalogs: Collection[str] = ()) -> TableName:
        """Read a dotted name; its first part is a catalog only if one of that name is known.

        >>> TableName.parse("db.orders", default_catalog="lake")
        TableName(catalog='lake', namespace=('db',), table='orders')
        >>> TableName.parse("prod.db.orders", default_catalog="lake", catalogs=["prod"])
        TableName(catalog='prod', namespace=('db',), table='orders')
        >>> TableName.parse("a.b.`odd.name`", default_catalog="lake")
        TableName(catalog='lake', namespace=('a', 'b'), table='odd.name')
        """
        parts = split_name(text)
        if len(parts) >= 3 and (parts[0] == default_catalog or parts[0] in catalogs):
            return cls(parts[0], parts[1:-1], parts[-1])
        if len(parts) >= 2:
            return cls(default_catalog, parts[:-1], parts[-1])
        raise UsageError(
            f"'{text}' does not name a table",
            hint="use namespace.table, or catalog.namespace.table",
        )

    @property
    def identifier(self) -> tuple[str, ...]:
        """The name inside its catalog, as PyIceberg accepts it."""
        return (*self.namespace, self.table)

    def __str__(self) -> str:
        """Return the name as it is written in SQL."""
        return ".".join(map(quote_part, (self.catalog, *self.namespace, self.table)))


@dataclass(frozen=True, slots=True)
class MetadataFile(TableName):
    """A table by the location of its metadata file alone, which no catalog is asked for."""

    location: str

    @classmethod
    def at(cls, location: str) -> MetadataFile:
        """Return the table of a metadata file."""
        return cls("", (), location.rpartition("/")[2], location)

    def __str__(self) -> str:
        return self.location


def is_metadata_file(text: str) -> bool:
    """Whether a text is the location of a metadata file, and not the name of a table.

    >>> is_metadata_file("/lake/db/t/metadata/v3.metadata.json"), is_metadata_file("db.t")
    (True, False)
    """
    return text.endswith((".metadata.json", ".metadata.json.gz")) and ("/" in text or os.path.exists(text))


def split_name(text: str) -> tuple[str, ...]:
    """Split a dotted name; a part in backquotes may contain dots.

    >>> split_name("db.`a.b`")
    ('db', 'a.b')
    """
    parts: list[str] = []
    position = 0
    while (match := _PART.match(text, position)) is not None:
        quoted, plain = match.groups()
        parts.append(quoted.replace("``", "`") if quoted is not None else plain)
        position = match.end()
        if position == len(text):
            return tuple(parts)
        if text[position] != ".":
            break
        position += 1
    raise UsageError(
        f"'{text}' is not a dotted name",
        hint="write name.name, and put a name that holds dots in `backquotes`",
    )


def quote_part(part: str) -> str:
    """Quote one part of a name for Spark SQL where it needs it.

    >>> quote_part("orders"), quote_part("a.b")
    ('orders', '`a.b`')
    """
    return part if _PLAIN.fullmatch(part) else "`" + part.replace("`", "``") + "`"
