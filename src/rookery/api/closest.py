"""The tables whose names are most like one that does not exist."""

from __future__ import annotations

import os
import re
import shlex
import time
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path

from rookery.model import TableName
from rookery.model.names import quote_part
from rookery.tables.formats import Catalog

__all__: list[str] = []

MAKE_ONE = "`rookery load FILE… db.t` makes one, of Parquet, CSV or JSON files"
_SECONDS = 1.0  # an error is not to wait for a long list
_MOST = 10_000
_LIKE = 0.6  # as difflib measures it
_SHOWN = 3


def missing_hint(catalog: Catalog, name: TableName, *, qualified: bool = False) -> str:
    """Return what to do about a table that does not exist; never an error of its own.

    Names begin with their catalog if they are to be *qualified*.
    """
    if hint := file_hint(".".join(name.identifier)):
        return hint
    default = "check the name, or use --catalog"
    try:
        names = list(_listed(catalog))
    except Exception:  # noqa: BLE001  # the error is that of the missing table
        return default
    if not names:
        return empty_hint(catalog)
    if close := _closest(name, names):
        prefix = f"{quote_part(name.catalog)}." if qualified else ""
        return f"did you mean {' or '.join(prefix + each for each in close)}?"
    first, *others = name.identifier
    if len(others) > 1 and all(each.namespace[:1] != (first,) for each in names):
        return (
            f"no catalog '{first}' is configured: add it to .pyiceberg.yaml, "
            "or pass spark= of a session that has it"
        )
    return f"{default}; `rookery tables` lists them"


def file_hint(text: str) -> str | None:
    """Return how a table is made of a file, if a text is the path of one.

    >>> file_hint("db.orders") is None
    True
    """
    if not os.path.isfile(text):
        return None
    name = re.sub(r"\W+", "_", Path(text).name.partition(".")[0]).strip("_") or "t"
    return f"{text} is a file: `rookery load {shlex.quote(text)} db.{name}` makes a table of it"


def empty_hint(catalog: Catalog) -> str:
    """Return what to do about a catalog without tables; never an error of its own."""
    try:
        others = catalog.other_names()
    except Exception:  # noqa: BLE001  # it is only a hint
        others = ()
    if others:
        names = " and ".join(others)
        return f"its database has tables of the catalog {names}: use --catalog {others[0]} --uri …"
    return MAKE_ONE


def _listed(catalog: Catalog) -> Iterator[TableName]:
    ends = time.monotonic() + _SECONDS
    for number, name in enumerate(catalog.tables()):
        yield name
        if number >= _MOST or time.monotonic() > ends:
            return


def _closest(name: TableName, names: list[TableName]) -> list[str]:
    """Tables of the same name in other namespaces, or else those of similar names."""
    like_table = set(get_close_matches(name.table, {each.table for each in names}, n=_SHOWN, cutoff=_LIKE))
    names = [each for each in names if each.table in like_table]  # a namespace alone is no likeness
    shown = {".".join(each.identifier): ".".join(map(quote_part, each.identifier)) for each in names}
    same = sorted(shown[".".join(each.identifier)] for each in names if each.table == name.table)
    wanted = ".".join(name.identifier)
    like = get_close_matches(wanted, shown, n=_SHOWN, cutoff=_LIKE)
    return same[:_SHOWN] or [shown[each] for each in like]
