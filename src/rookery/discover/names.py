"""Whether the name of a column suggests that it refers to another: `customer_id` to `customers.id`."""

from __future__ import annotations

import re
from functools import lru_cache

from rookery.discover.column import ColumnFacts

SAME, ENDS_SO, RELATED, NOTHING = 1.0, 0.9, 0.7, 0.0

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_]+")
_GENERIC = frozenset(
    {"id", "key", "sk", "pk", "fk", "code", "no", "nr", "num", "number", "uuid", "guid", "ref"}
)
_ES = ("ses", "xes", "zes", "ches", "shes")


def name_evidence(child: ColumnFacts, parent: ColumnFacts) -> float:
    """Return from 0 to 1 how much the names suggest a reference; of column sets, the least of its columns."""
    table = words(parent.table.rpartition(".")[2])
    return min(
        _evidence(_stripped(child, own), _stripped(parent, other), table)
        for own, other in zip(child.columns, parent.columns, strict=True)
    )


def _evidence(child: tuple[str, ...], parent: tuple[str, ...], table: tuple[str, ...]) -> float:
    specific = [word for word in parent if word not in _GENERIC]
    if specific and child == parent:
        return SAME
    if _ends_with(child, (*table, *parent)):
        return SAME
    if specific and _ends_with(child, parent):
        return ENDS_SO
    own_words = {word for word in child if word not in _GENERIC}
    return RELATED if own_words & ({*specific} | {*table}) else NOTHING


def _ends_with(words_of: tuple[str, ...], end: tuple[str, ...]) -> bool:
    joined, ending = "".join(words_of), "".join(end)
    return words_of[-len(end) :] == end or joined == ending


def _stripped(column: ColumnFacts, name: str) -> tuple[str, ...]:
    """The words of a column's own name, without the prefix that all columns of its table have."""
    own = name.rpartition(".")[2] if "." in name else name.removeprefix(column.column_prefix)
    return words(own)


@lru_cache(maxsize=1 << 16)
def words(name: str) -> tuple[str, ...]:
    """Split a name into words, each in lower case and in the singular.

    >>> words("billingCustomer_ids"), words("ORDERS"), words("addresses"), words("categories2")
    (('billing', 'customer', 'id'), ('order',), ('address',), ('category', '2'))
    """
    return tuple(_singular(word.lower()) for word in _WORD.findall(name))


def _singular(word: str) -> str:
    if len(word) > 3 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(_ES):
        return word[:-2]
    return word[:-1] if len(word) > 2 and word.endswith("s") and not word.endswith("ss") else word
