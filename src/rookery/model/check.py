"""A check and its outcome: the line of every report that verifies something."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from rookery.model.report import Sheet


class CheckOutcome(StrEnum):
    """How a check went. Only a finding makes a command exit with 1."""

    OK = "ok"
    NOTE = "note"
    FINDING = "finding"


@dataclass(frozen=True, slots=True)
class Check:
    """One rule, checked on one subject."""

    subject: str
    rule: str
    outcome: CheckOutcome
    detail: str = ""
    hint: str | None = None

    @classmethod
    def of(cls, subject: str, rule: str, kept: bool, detail: str = "", hint: str | None = None) -> Check:
        """Return the check of a rule that is either met or not."""
        return cls(
            subject, rule, CheckOutcome.OK if kept else CheckOutcome.FINDING, detail, None if kept else hint
        )


MARKS = {CheckOutcome.OK: "✓", CheckOutcome.NOTE: "·", CheckOutcome.FINDING: "✗"}


def check_sheet(title: str, checks: tuple[Check, ...], *notes: str) -> Sheet:
    """A line a check, and the hints below."""
    rows = tuple((MARKS[check.outcome], check.subject, check.rule, check.detail) for check in checks)
    hints = tuple(f"hint: {check.subject}: {check.hint}" for check in checks if check.hint)
    return Sheet(title, (), rows, (*hints, *notes))


def findings(checks: tuple[Check, ...]) -> tuple[Check, ...]:
    """Return the checks that failed."""
    return tuple(check for check in checks if check.outcome is CheckOutcome.FINDING)
