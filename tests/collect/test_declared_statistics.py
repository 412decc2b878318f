"""Histograms, frequent values and column sets: what names declare and drop, and what is read for them."""

from __future__ import annotations

import pytest

from rookery.collect.choose import Choice
from rookery.collect.declared_statistics import NO_CHANGE, change_by, distributions
from rookery.model import Field, UsageError
from rookery.sidecar import Declared, Statistic
from rookery.sidecar.declared import COLUMN_SET, HISTOGRAM, TOP_K

FIELDS = (
    Field(1, "id", "long"),
    Field(2, "word", "string"),
    Field(3, "flag", "boolean"),
    Field(4, "data", "binary"),
    Field(6, "s.x", "int"),
    Field(8, "l.element", "int", repeated=True),
    Field(9, "shape", "geometry"),
)


def after(*choices: Choice) -> Declared:
    declared = Declared()
    for now, choice in enumerate(choices, 1):
        declared = change_by(FIELDS, choice).on(declared, now)
    return declared


def test_what_is_declared_stays_declared() -> None:
    declared = after(
        Choice(histogram=("id",), sample=3),
        Choice(top_k=("word", "id")),
        Choice(column_sets=(("word", "id"),)),
    )
    assert declared.columns(HISTOGRAM) == {1}
    assert declared.columns(TOP_K) == {1, 2}
    assert (declared.column_sets, declared.sample) == (((1, 2),), 3)
    assert change_by(FIELDS, Choice()) == NO_CHANGE
    assert NO_CHANGE.on(declared, 99) == declared


def test_dropping_one_leaves_the_others() -> None:
    everything = Choice(
        histogram=("id", "word"), top_k=("id",), column_sets=(("id", "word"), ("id", "flag")), sample=2
    )
    declared = after(everything, Choice(drop_histogram=("id",), drop_column_sets=(("word", "id"),)))
    assert declared.columns(HISTOGRAM) == {2}
    assert declared.columns(TOP_K) == {1}
    assert (declared.column_sets, declared.sample) == (((1, 3),), 2)
    assert declared.statistics_at["histogram 1"] == 2


def test_dropped_and_declared_in_one_call_is_declared() -> None:
    declared = after(Choice(histogram=("id",)), Choice(histogram=("id",), drop_histogram=("id",)))
    assert declared.columns(HISTOGRAM) == {1}


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        (Choice(drop_histogram=("id",)), "no histogram of 'id' to drop"),
        (Choice(drop_top_k=("word",)), "no list of frequent values of 'word' to drop"),
        (Choice(drop_column_sets=(("word", "id"),)), "no column set 'id \\+ word' to drop"),
        (Choice(histogram=("data",)), "a histogram of 'data', a binary, is not supported"),
        (Choice(histogram=("s",)), "a histogram of 's.x', a int, is not supported"),
        (Choice(top_k=("l",)), "frequent values of 'l.element', a int, is not supported"),
        (Choice(top_k=("shape",)), "frequent values of 'shape', a geometry, is not supported"),
        (Choice(top_k=("nothing",)), "there is no column 'nothing'"),
        (Choice(drop_top_k=("nothing",)), "there is no column 'nothing'"),
    ],
)
def test_refused(choice: Choice, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        after(choice)


@pytest.mark.parametrize(
    ("before", "now", "sample"), [(5, None, 5), (5, 0, 0), (None, 4, 4), (None, None, 0)]
)
def test_a_sample_is_kept_until_another_is_given(before: int | None, now: int | None, sample: int) -> None:
    declared = after(Choice(histogram=("id",), sample=before), Choice(top_k=("word",), sample=now))
    assert distributions(declared, FIELDS).sample == sample


def test_only_columns_that_exist_are_read() -> None:
    declared = after(Choice(histogram=("word", "id"), top_k=("flag",)))
    declared = declared.adding_statistic(Statistic(HISTOGRAM, (77,)), 5)
    declared = declared.adding_statistic(Statistic(COLUMN_SET, (1, 77)), 6)
    wants = distributions(declared, FIELDS)
    assert [field.name for field in wants.histogram] == ["id", "word"]  # in the order of the table
    assert [field.name for field in wants.top_k] == ["flag"]
    assert [field.name for field in wants.fields] == ["id", "word", "flag"]
    assert not distributions(declared, FIELDS[3:]).fields
