"""Which settings apply to a table, and where each comes from: the more specific over the more general."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any

from rookery.maintain.policies.policy import DEFAULT, Policy, Strategy
from rookery.maintain.policies.settings import (
    BY_KEY,
    SETTINGS,
    contradictions,
    hint_for,
    policy_from,
    shown,
)
from rookery.maintain.policies.times import show_duration
from rookery.model import TableName, UsageError, quote_part
from rookery.sidecar.store import LOCATION_PROPERTY

PREFIX = "rookery."
Rank = tuple[int, ...]
_WILD = re.compile(r"\[!?\]?[^]]*\]|\*|\?")


@dataclass(frozen=True, slots=True)
class SettingSource:
    """Where a setting comes from; without values, it is the default."""

    what: str = "default"
    file: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        return self.what if self.file is None else f"{self.file}:{self.line} ({self.what})"


@dataclass(frozen=True, slots=True)
class Given:
    """A setting that was made: its value, its text, and where it was written."""

    value: Any
    text: str
    source: SettingSource


class SelectorKind(StrEnum):
    """The selector of a rule."""

    CATALOG = "catalog"
    NAMESPACE = "namespace"
    TABLES = "tables"
    TABLE = "table"


_DEFAULT: Rank = (-1,)
_DEFAULTS: Rank = (0,)
_PROPERTY: Rank = (5,)
_ORDER = {SelectorKind.CATALOG: 1, SelectorKind.NAMESPACE: 2, SelectorKind.TABLES: 3, SelectorKind.TABLE: 4}


@dataclass(frozen=True, slots=True)
class Selector:
    """The tables that a rule is for: a dotted name part by part, or a pattern as its only part."""

    kind: SelectorKind
    parts: tuple[str, ...]

    def __str__(self) -> str:
        text = self.parts[0] if self.kind is SelectorKind.TABLES else ".".join(map(quote_part, self.parts))
        return f'{self.kind} "{text}"'

    def rank(self, name: TableName) -> Rank | None:
        """How specific it is for a table, the greater the more; None if it does not match."""
        within = self._within(name)
        return None if within is None else (_ORDER[self.kind], *within)

    def _within(self, name: TableName) -> Rank | None:
        parts = self.parts
        match self.kind:
            case SelectorKind.CATALOG:
                return () if parts == (name.catalog,) else None
            case SelectorKind.NAMESPACE:
                plain = name.namespace[: len(parts)] == parts
                levels = len(parts) - 1
                named = levels > 0 and (name.catalog, *name.namespace[:levels]) == parts
                return (len(parts), 0) if plain else (levels, 1) if named else None
            case SelectorKind.TABLE:
                plain, named = parts == name.identifier, parts == (name.catalog, *name.identifier)
                return (0,) if plain else (1,) if named else None
            case SelectorKind.TABLES:
                texts = ".".join(name.identifier), ".".join((name.catalog, *name.identifier))
                literal = len(_WILD.sub("", parts[0]))
                return (literal,) if any(fnmatchcase(text, parts[0]) for text in texts) else None


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """The settings of a policy file for some tables; without a selector, for all."""

    selector: Selector | None
    line: int
    settings: Mapping[str, Given]

    def rank(self, name: TableName) -> Rank | None:
        """How specific the rule is for a table; None if it does not match."""
        return _DEFAULTS if self.selector is None else self.selector.rank(name)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The policy of a table; by key, where each setting comes from and how it is written."""

    policy: Policy
    sources: Mapping[str, SettingSource]
    texts: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PolicySet:
    """All rules of a policy file; none where there is no file."""

    rules: tuple[PolicyRule, ...] = ()
    file: str | None = None

    def policy_of(self, name: TableName, properties: Mapping[str, str]) -> Chosen:
        """Return the policy of a table with these properties.

        >>> name = TableName("lake", ("db",), "orders")
        >>> str(PolicySet().policy_of(name, {"rookery.verify": "rows"}).sources["verify"])
        'table property rookery.verify'
        """
        ranked = {key: (_PROPERTY, given) for key, given in given_by(name, properties).items()}
        for rank, rule in self._matching(name):
            for key, given in rule.settings.items():
                if key not in ranked:
                    ranked[key] = rank, given
                elif ranked[key][0] == rank:
                    _check_same(name, key, ranked[key][1], given)
        if not ranked:
            return _ALL_DEFAULT
        ranked = {**_BY_DEFAULT, **ranked}
        _check(name, ranked)
        return _chosen(ranked)

    def _matching(self, name: TableName) -> list[tuple[Rank, PolicyRule]]:
        """Return the rules for a table, the most specific first."""
        ranked = [(rank, rule) for rule in self.rules if (rank := rule.rank(name)) is not None]
        return sorted(ranked, key=lambda pair: pair[0], reverse=True)


_BY_DEFAULT: Mapping[str, tuple[Rank, Given]] = {
    setting.key: (_DEFAULT, Given(setting.of(DEFAULT), setting.text(setting.of(DEFAULT)), SettingSource()))
    for setting in SETTINGS
}


def _chosen(ranked: Mapping[str, tuple[Rank, Given]]) -> Chosen:
    return Chosen(
        policy_from({key: given.value for key, (_, given) in ranked.items()}),
        {setting.key: ranked[setting.key][1].source for setting in SETTINGS},
        {setting.key: ranked[setting.key][1].text for setting in SETTINGS},
    )


_ALL_DEFAULT = _chosen(_BY_DEFAULT)  # of most tables, if nobody has written a policy


def given_by(name: TableName, properties: Mapping[str, str]) -> dict[str, Given]:
    """Return the settings among the properties of a table."""
    given: dict[str, Given] = {}
    for property_, text in properties.items():
        if not property_.startswith(PREFIX) or property_ == LOCATION_PROPERTY:
            continue
        key = property_.removeprefix(PREFIX)
        if key not in BY_KEY:
            hint = hint_for(key, BY_KEY).replace("did you mean ", f"did you mean {PREFIX}")
            hint = hint.replace("this file", "table properties")
            raise UsageError(f"{name}: there is no table property '{shown(property_)}'", hint=hint)
        try:
            value = BY_KEY[key].parse(text.strip())
        except UsageError as error:
            raise UsageError(
                f"{name}: table property {property_}: {shown(error.message, 300)}", hint=error.hint
            ) from None
        given[key] = Given(value, shown(text), SettingSource(f"table property {property_}"))
    return given


def risky(policy: Policy) -> list[str]:
    """Return which of a policy's retentions and ages are zero or negative, so that too much is removed.

    >>> from rookery.maintain.policies.policy import Snapshots
    >>> risky(Policy(snapshots=Snapshots(keep_last=0)))
    ['snapshots.keep-last is 0: no snapshot is kept for its number']
    """
    risks: list[str] = []
    snapshots, cleanup = policy.snapshots, policy.statistics_files
    if snapshots.keep_for is not None and snapshots.keep_for <= timedelta(0):
        risks.append(
            f"snapshots.keep-for is {show_duration(snapshots.keep_for)}: no snapshot is kept for its age"
        )
    if snapshots.keep_last <= 0:
        risks.append(f"snapshots.keep-last is {snapshots.keep_last}: no snapshot is kept for its number")
    for key, age, what in (
        ("orphans", policy.orphans.older_than, "files that a writer is about to commit would be removed"),
        ("statistics-files", cleanup.older_than, "files that are being written would be removed"),
    ):
        if age is not None and age <= timedelta(0):
            risks.append(f"{key}.older-than is {show_duration(age)}: {what}")
    return risks


def _check_same(name: TableName, key: str, one: Given, other: Given) -> None:
    if one.value != other.value:
        raise UsageError(
            f"{name}: {key} is {one.text} by {one.source}, and {other.text} by {other.source}, "
            "which is as specific",
            hint="make one of the patterns longer, or write a rule for the table",
        )


def _check(name: TableName, ranked: Mapping[str, tuple[Rank, Given]]) -> None:
    values = {key: given.value for key, (_, given) in ranked.items()}
    more_specific = ranked["compaction.strategy"][0] > ranked["compaction.columns"][0]
    if more_specific and values["compaction.strategy"] is not Strategy.Z_ORDER:
        # A rule that packs instead of sorting overrides the columns of other rules.
        del values["compaction.columns"]
    for contradiction in contradictions(values):
        message = contradiction.message(lambda key: f"{key} {ranked[key][1].text} ({ranked[key][1].source})")
        raise UsageError(f"{name}: {message}", hint=contradiction.hint)
