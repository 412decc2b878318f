"""The tables whose names are most like one that does not exist."""

from __future__ import annotations

import time
from collections.abc import Iterator
from difflib import get_close_matches

from rookery.model import TableName
from rookery.model.names import quote_part
from rookery.tables.formats import Catalog

__all__: list[str] = []

MAKE_ONE = "`rookery load FILE… db.t` makes one, of Parquet, CSV or JSON files"
_SECONDS = 1.0  # an error is not to wait for a long list
_MOST = 10_000
_LIKE = 0.6  # as difflib measures it
_SHOWN = 3


def missing_hint(catalog: Catalog, name: TableName) -> str:
    """Return what to do about a table that does not exist; never an error of its own."""
    default = "check the name, or use --catalog"
    try:
        names = list(_listed(catalog))
    except Exception:  # noqa: BLE001  # the error is that of the missing table
        return default
    if not names:
        return empty_hint(catalog)
    close = _closest(name, names)
    return f"did you mean {' or '.join(close)}?" if close else f"{default}; `rookery tables` lists them"


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
    shown = {".".join(each.identifier): ".".join(map(quote_part, each.identifier)) for each in names}
    same = sorted(shown[".".join(each.identifier)] for each in names if each.table == name.table)
    wanted = ".".join(name.identifier)
    like = get_close_matches(wanted, shown, n=_SHOWN, cutoff=_LIKE)
    return same[:_SHOWN] or [shown[each] for each in like]
