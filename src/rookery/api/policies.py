"""Policies: the settings of a table and their sources, and whether a policy file is valid."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from rookery.api.lake import Lake, connect
from rookery.maintain.policies.choosing import risky
from rookery.maintain.policies.policy_file import find_policies
from rookery.maintain.policies.settings import SETTINGS
from rookery.maintain.policies.unmatched import PolicyWarning, unmatched
from rookery.model import Report, RookeryError, Sheet, counted

__all__ = ["PolicyCheck", "PolicyReport", "SettingView", "check_policies", "show_policy"]


@dataclass(frozen=True, slots=True)
class SettingView:
    """A setting of a table's policy: its value, and where it is set."""

    setting: str
    value: str
    source: str


@dataclass(frozen=True, slots=True)
class PolicyReport(Report):
    """The policy of a table."""

    table: str
    settings: tuple[SettingView, ...]
    risks: tuple[str, ...] = ()  # what `maintain` refuses to do without --yes

    def sheets(self) -> Sequence[Sheet]:
        """One line per setting."""
        rows = tuple((each.setting, each.value, each.source) for each in self.settings)
        notes = tuple(f"{risk}; `rookery maintain` requires --yes" for risk in self.risks)
        return [Sheet(self.table, ("setting", "value", "source"), rows, notes)]


@dataclass(frozen=True, slots=True)
class PolicyCheck(Report):
    """The result of checking a policy file; `file` is None if there is none."""

    file: str | None
    rules: int
    settings: int
    warnings: tuple[PolicyWarning, ...] = ()
    not_compared: str | None = None  # why rules were not compared with the tables of the catalog

    def sheets(self) -> Sequence[Sheet]:
        """One line, and one for each warning."""
        if self.file is None:
            return [Sheet("there is no policy file; table properties and defaults apply")]
        title = f"{self.file} is valid: {counted(self.rules, 'rule')}, {counted(self.settings, 'setting')}"
        notes = [f"warning: {warning}" for warning in self.warnings]
        notes += [f"not compared with tables: {self.not_compared}"] if self.not_compared else []
        return [Sheet(title, notes=tuple(notes))]


def show_policy(
    table: str, lake: Lake | None = None, *, policy: str | os.PathLike[str] | None = None
) -> PolicyReport:
    """Return the policy of a table: each setting, and where it comes from. No Spark is needed."""
    lake = lake or connect()
    policies = find_policies(policy)
    name = lake.table_name(table)
    chosen = policies.policy_of(name, lake.open(name)[0].properties)
    views = tuple(
        SettingView(each.key, chosen.texts[each.key], str(chosen.sources[each.key])) for each in SETTINGS
    )
    return PolicyReport(str(name), views, tuple(risky(chosen.policy)))


def check_policies(policy: str | os.PathLike[str] | None = None, lake: Lake | None = None) -> PolicyCheck:
    """Load a policy file, the default one if none is named; its errors are raised, all of them together.

    Its rules are compared with the tables of *lake*, or of the default catalog. That only gives warnings: for
    rules that match no table, and for columns that a table does not have.
    """
    policies = find_policies(policy)
    rules = [rule for rule in policies.rules if rule.selector is not None]
    warnings: tuple[PolicyWarning, ...] = ()
    not_compared = None
    if policies.rules:
        try:
            lake = lake or connect()
            names = sorted(lake.tables(), key=str)
            if names:
                warnings = tuple(unmatched(policies, lake.name, names, lambda name: lake.open(name)[0]))
            else:
                not_compared = f"{lake.name} has no tables"
        except RookeryError as error:
            not_compared = error.message
    settings = sum(len(rule.settings) for rule in policies.rules)
    return PolicyCheck(
        file=policies.file, rules=len(rules), settings=settings, warnings=warnings, not_compared=not_compared
    )
