"""Histograms, frequent values and column sets: declared and dropped by name, read by column."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rookery.collect.choose import Choice, columns_named
from rookery.collect.column_sets import column_set_field, is_column_set
from rookery.collect.distribution_request import DistributionRequest
from rookery.model import Field, UsageError
from rookery.model.type_names import SKETCHED, base_type, member_ids
from rookery.sidecar import Declared, Statistic
from rookery.sidecar.declared import COLUMN_SET, HISTOGRAM, TOP_K, sample_of
from rookery.sketch import quantiles


@dataclass(frozen=True, slots=True)
class DeclarationChange:
    """The statistics that a call declares, and those that it drops, with the message if there is none."""

    added: tuple[Statistic, ...] = ()
    dropped: tuple[tuple[Statistic, str], ...] = ()

    def on(self, declared: Declared, now: int) -> Declared:
        """Return what is declared from now on."""
        for statistic, what in self.dropped:
            if all(statistic.key != each.key for each in declared.statistics):
                raise UsageError(
                    f"there is no {what} to drop", hint="`rookery stats` shows what is collected"
                )
            declared = declared.dropping_statistic(statistic, now)
        for statistic in self.added:
            declared = declared.adding_statistic(statistic, now)
        return declared


NO_CHANGE = DeclarationChange()


def change_by(fields: Sequence[Field], choice: Choice) -> DeclarationChange:
    """Return what the names that a user gives declare and drop."""
    histogram = _able(
        columns_named(fields, choice.histogram), quantiles.SUPPORTED.__contains__, "a histogram"
    )
    top_k = _able(columns_named(fields, choice.top_k), SKETCHED.__contains__, "frequent values")
    if choice.sample is not None and choice.sample < 0:
        raise UsageError(f"a sample of {choice.sample} row groups cannot be read", hint="use 0 to read all")
    added = [Statistic(HISTOGRAM, (field.id,)) for field in histogram]
    added += [Statistic(TOP_K, (field.id,)) for field in top_k]
    added += [_column_set(fields, names)[0] for names in choice.column_sets]
    added += [sample_of(choice.sample)] if choice.sample is not None else []
    return DeclarationChange(tuple(added), tuple(_dropped(fields, choice)))


def _dropped(fields: Sequence[Field], choice: Choice) -> Iterator[tuple[Statistic, str]]:
    for field in columns_named(fields, choice.drop_histogram):
        yield Statistic(HISTOGRAM, (field.id,)), f"histogram of '{field.name}'"
    for field in columns_named(fields, choice.drop_top_k):
        yield Statistic(TOP_K, (field.id,)), f"list of frequent values of '{field.name}'"
    for names in choice.drop_column_sets:
        statistic, name = _column_set(fields, names)
        yield statistic, f"column set '{name}'"


def _column_set(fields: Sequence[Field], names: Sequence[str]) -> tuple[Statistic, str]:
    field = column_set_field(names, fields)
    return Statistic(COLUMN_SET, member_ids(field.type)), field.name


def distributions(declared: Declared, fields: Sequence[Field]) -> DistributionRequest:
    """Return the histograms and frequent values that are declared, as far as their columns exist."""
    return DistributionRequest(
        tuple(field for field in fields if field.id in declared.columns(HISTOGRAM)),
        tuple(field for field in fields if field.id in declared.columns(TOP_K)),
        declared.sample,
    )


def _able(fields: Sequence[Field], supported: Callable[[str], bool], what: str) -> list[Field]:
    for field in fields:
        if not supported(base_type(field.type)) or is_column_set(field) or len(field.parts) > 1:
            raise UsageError(
                f"{what} of '{field.name}', a {field.type}, is not supported",
                hint="name columns of numbers, dates, times or text at the top of the table",
            )
    return list(fields)
