"""Which indexes are declared: a matter of the table, not of one snapshot, and of whoever spoke last.

Every state says what it knows, and when each index was last declared or dropped. Put together, the latest
word on each index counts; so neither a rollback nor two writers at once can lose one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rookery.model import Field
from rookery.sidecar.state import Index, State, StateHeader


@dataclass(frozen=True, slots=True)
class Declared:
    """The indexes that are declared, the oldest first, and when each was last declared or dropped."""

    indexes: tuple[Index, ...] = ()
    at: Mapping[str, int] = field(default_factory=dict)

    def adding(self, index: Index, now: int) -> Declared:
        """Return it with an index more, in place of one of that kind on that column."""
        left = self.dropping(index, now)
        return replace(left, indexes=(*left.indexes, index))

    def dropping(self, index: Index, now: int) -> Declared:
        """Return it without the index of that kind on that column."""
        key = _key(index)
        return Declared(tuple(each for each in self.indexes if _key(each) != key), {**self.at, key: now})

    def typed(self, fields: Sequence[Field]) -> Declared:
        """Return it with the types that columns have now; an index of another type is another index."""
        types = {column.id: column.type for column in fields}
        return replace(
            self,
            indexes=tuple(replace(each, type=types.get(each.field_id, each.type)) for each in self.indexes),
        )

    def on(self, state: State) -> State:
        """Return a state that says so."""
        return replace(state, header=replace(state.header, indexes=self.indexes, declared_at=self.at))


def joined(states: Iterable[StateHeader]) -> Declared:
    """Put together what states say; where two say as late, the first of them counts.

    >>> one = Declared().adding(Index("bitmap", 3, "int"), now=5)
    >>> [one.at, one.dropping(one.indexes[0], now=6)]
    [{'bitmap 3': 5}, Declared(indexes=(), at={'bitmap 3': 6})]
    """
    latest: dict[str, tuple[int, Index | None]] = {}
    for state in states:
        mine = {_key(index): index for index in state.indexes}
        for key in dict.fromkeys((*mine, *state.declared_at)):
            at = state.declared_at.get(key, 0)
            if key not in latest or at > latest[key][0]:
                latest[key] = (at, mine.get(key))
    order = sorted(latest, key=lambda key: (latest[key][0], key))
    indexes = (latest[key][1] for key in order)
    return Declared(
        tuple(index for index in indexes if index is not None), {key: latest[key][0] for key in order}
    )


def _key(index: Index) -> str:
    return f"{index.kind} {index.field_id}"
