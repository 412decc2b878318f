"""Estimates and checks."""

from __future__ import annotations

import dataclasses

import pytest

from rookery.model import Certainty, Check, CheckOutcome, Estimate, findings


def test_exact_estimate() -> None:
    estimate = Estimate.exact(7)
    assert (estimate.value, estimate.low, estimate.high, estimate.kind) == (7, 7, 7, Certainty.EXACT)


def test_estimates_are_values() -> None:
    estimate = Estimate(10.5, 8, 13, Certainty.SKETCHED)
    assert estimate == Estimate(10.5, 8, 13, Certainty.SKETCHED)
    assert estimate != Estimate(10.5, 8, 13, Certainty.STALE)
    assert len({estimate, Estimate(10.5, 8, 13, Certainty.SKETCHED)}) == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        estimate.value = 1  # type: ignore[misc]


def test_only_findings_are_found() -> None:
    kept = Check.of("file", "rule", True, hint="nothing to do")
    broken = Check.of("file", "rule", False, "detail", hint="mend it")
    noted = Check("file", "rule", CheckOutcome.NOTE)
    assert (kept.outcome, kept.hint) == (CheckOutcome.OK, None)
    assert (broken.outcome, broken.hint) == (CheckOutcome.FINDING, "mend it")
    assert findings((kept, broken, noted)) == (broken,)
