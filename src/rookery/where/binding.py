"""Names of columns, bound to the fields of a table as Spark resolves them."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from rookery.model.errors import UsageError
from rookery.model.names import quote_part
from rookery.model.predicate import IsNull, Predicate
from rookery.model.table import Field
from rookery.model.type_names import SKETCHED, base_type

_SHOWN = 8  # columns that a hint lists


class Inexact(Exception):  # noqa: N818 - no failure: the comparison stays with Spark
    """A comparison that predicates cannot represent; its reason is stored in an `Opaque`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def check_type(field: Field) -> None:
    """Leave a column of another type than Rookery knows to Spark, for every kind of comparison."""
    if base_type(field.type) not in SKETCHED:
        raise Inexact(f"columns of type {field.type} are not compared")


def null_test(field: Field, *, negated: bool = False) -> Predicate:
    """Return `field IS NULL`, or IS NOT NULL."""
    check_type(field)  # how nulls of a type that is not known are stored is not known either
    return IsNull(field, negated)


@dataclass(frozen=True, slots=True)
class NestedColumn:
    """A column that contains columns: a struct, a list or a map; or the value of a map's key."""

    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class Names:
    """The columns of a table, to be found by name in any case.

    >>> names = Names.of((Field(1, "Id", "long"), Field(2, "user.name", "string")))
    >>> names.find(("ID",)).name, names.find(("User", "Name")).name, names.find(("user",)).kind
    ('Id', 'user.name', 'struct')
    """

    fields: tuple[Field, ...]
    _leaves: dict[tuple[str, ...], list[Field]] = field(default_factory=dict, compare=False)
    _spellings: dict[tuple[str, ...], set[tuple[str, ...]]] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        for leaf in self.fields:
            parts = leaf.parts
            self._leaves.setdefault(_folded(parts), []).append(leaf)
            for end in range(1, len(parts) + 1):
                self._spellings.setdefault(_folded(parts[:end]), set()).add(parts[:end])

    @classmethod
    def of(cls, fields: Sequence[Field]) -> Names:
        """Return the names of *fields*, made once."""
        return _names(tuple(fields))

    def find(self, parts: Sequence[str], *, at: str = "") -> Field | NestedColumn:
        """Return the column that *parts* name; *at* is their position in the text."""
        given = tuple(parts)
        key = _folded(given)
        if key in self._spellings:
            return self._known(key, given, at)
        for end in range(len(key) - 1, 0, -1):
            if key[:end] in self._spellings:
                self._sole(key[:end], given, at)
                if (column := self._inside(key[:end], given)) is not None:
                    return column
                break
        raise self._unknown(given, at)

    def knows(self, first: str) -> bool:
        """Whether there is a top-level column of that name."""
        return (first.lower(),) in self._spellings

    def _known(self, key: tuple[str, ...], parts: tuple[str, ...], at: str) -> Field | NestedColumn:
        self._sole(key, parts, at)
        leaves = self._leaves.get(key, [])
        if not leaves:
            return NestedColumn(_dotted(parts), self._kind(key))
        if leaves[0].repeated:
            raise _in_container(parts, at)
        return leaves[0]

    def _inside(self, key: tuple[str, ...], parts: tuple[str, ...]) -> NestedColumn | None:
        """A part of a list or map by a name that is not in the schema: Spark looks keys up so."""
        kind = self._kind(key)
        if kind == "map" and key not in self._leaves:
            return NestedColumn(_dotted(parts), "value of a map")
        if kind == "list" and key not in self._leaves:
            return NestedColumn(_dotted(parts), "list")
        return None

    def _kind(self, key: tuple[str, ...]) -> str:
        below = [
            leaf for folded, found in self._leaves.items() if folded[: len(key)] == key for leaf in found
        ]
        steps = {leaf.parts[len(key)] for leaf in below if len(leaf.parts) > len(key)}
        if not below or not all(leaf.repeated for leaf in below):
            return "struct"
        return "list" if steps == {"element"} else "map" if steps == {"key", "value"} else "struct"

    def _sole(self, key: tuple[str, ...], parts: tuple[str, ...], at: str) -> None:
        for end in range(1, len(key) + 1):
            spellings = sorted(self._spellings[key[:end]])
            if len(spellings) > 1 or len(self._leaves.get(key[:end], ())) > 1:
                raise UsageError(
                    f"column '{_dotted(parts)}' is ambiguous{at}",
                    hint=f"it might be {', '.join(map(_dotted, spellings))}: names do not differ by case",
                )

    def _unknown(self, parts: tuple[str, ...], at: str) -> UsageError:
        known = {".".join(key): leaves[0] for key, leaves in self._leaves.items() if not leaves[0].repeated}
        close = difflib.get_close_matches(".".join(_folded(parts)), known, n=3, cutoff=0.6)
        names = [_dotted(known[name].parts) for name in close or list(known)[:_SHOWN]]
        hint = f"did you mean {' or '.join(names)}?" if close else f"columns are {', '.join(names)}"
        if not close and len(known) > _SHOWN:
            hint += ", …"
        return UsageError(f"no column '{_dotted(parts)}'{at}", hint=hint)


@lru_cache(maxsize=64)
def _names(fields: tuple[Field, ...]) -> Names:
    return Names(fields)


def _folded(parts: Sequence[str]) -> tuple[str, ...]:
    return tuple(part.lower() for part in parts)


def _dotted(parts: Sequence[str]) -> str:
    return ".".join(map(quote_part, parts))


def _in_container(parts: Sequence[str], at: str) -> UsageError:
    return UsageError(
        f"column '{_dotted(parts)}' is in a list or map, where a row has any number of values{at}",
        hint="name a column outside of lists and maps, or use exists() or array_contains()",
    )


def not_comparable(group: NestedColumn, at: str = "") -> UsageError:
    """Return the error of a comparison with a struct, list or map."""
    return UsageError(
        f"column '{group.name}' is a {group.kind}, which cannot be compared{at}",
        hint="name a column inside it"
        if group.kind == "struct"
        else "use a function such as exists() or array_contains()",
    )
