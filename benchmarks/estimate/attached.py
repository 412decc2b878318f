"""Estimates of filters by Spark's optimizer: attached, and with the statistics of Iceberg."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import partial
from statistics import median

from benchmarks.attach.sessions import Sessions
from benchmarks.estimate import made
from benchmarks.estimate.errors import (
    Asked,
    Estimator,
    empty_estimates,
    percentiles,
    q_errors,
    quantile,
    worse_percentiles,
)
from benchmarks.estimate.filters import pairs
from benchmarks.estimate.peers import PEER, estimated_rows
from benchmarks.harness import Measure

MEDIAN, NEARLY_ALL, CORRELATED = 1.3, 3.0, 2.0
SHARE = 0.95
UNIT = "×"
ATTACHED, ESTIMATE = "Spark attached", "table.estimate"
PAIRS = 100  # of each column set


def rows(sessions: Sessions, asked: Sequence[Asked], estimators: Sequence[Estimator]) -> Iterator[Measure]:
    """Measure the filters of each table, then those of all; *estimators* are those of `table.estimate`."""
    whole: dict[str, list[float]] = {ATTACHED: [], PEER: [], ESTIMATE: []}
    for each, estimator in zip(asked, estimators, strict=True):
        data = f"{each.table.name}, {len(each.wheres)} filters"
        by = _estimates(sessions, each, estimator)
        errors = {name: sorted(q_errors(about, each.truth)) for name, about in by.items()}
        yield from _summary(data, errors)
        yield Measure(
            "filters estimated at 0 rows that match some, Spark attached",
            data,
            empty_estimates(by[ATTACHED], each.truth),
            "filters",
            0,
            PEER,
            empty_estimates(by[PEER], each.truth),
        )
        for name, values in errors.items():
            whole[name].extend(values)
    errors = {name: sorted(values) for name, values in whole.items()}
    data = f"all tables, {len(errors[ATTACHED])} filters"
    yield from _summary(data, errors)
    yield from _percentiles(data, errors)


def correlated(sessions: Sessions, asked: Asked) -> Iterator[Measure]:
    """Measure equalities on the columns of a set."""
    for columns in made.COLUMN_SETS:
        wheres = pairs(asked.table.filtered, random.Random(2), columns, PAIRS)
        both = Asked.of(asked.table, wheres)
        ours, theirs = (both.errors(_estimator(sessions, both, attached=each)) for each in (True, False))
        data = f"{asked.table.name}, {len(wheres)} pairs of {' and '.join(columns)}"
        yield Measure(
            "q-error of equal pairs, 95th percentile, Spark attached",
            data,
            round(quantile(ours, SHARE), 4),
            UNIT,
            CORRELATED,
            PEER,
            round(quantile(theirs, SHARE), 4),
        )


def _estimator(sessions: Sessions, asked: Asked, *, attached: bool) -> Estimator:
    return partial(estimated_rows, sessions, asked.table.name, attached=attached)


def _estimates(sessions: Sessions, asked: Asked, estimator: Estimator) -> dict[str, list[float]]:
    """The estimates of each, in whole rows as Spark has them: half a row would decide among small results."""
    return {
        ATTACHED: asked.estimates(_estimator(sessions, asked, attached=True)),
        PEER: asked.estimates(_estimator(sessions, asked, attached=False)),
        ESTIMATE: [float(round(about)) for about in asked.estimates(estimator)],
    }


def _summary(data: str, errors: dict[str, list[float]]) -> Iterator[Measure]:
    ours, theirs = errors[ATTACHED], errors[PEER]
    for what, limit, share in (("median", MEDIAN, 0.5), ("95th percentile", NEARLY_ALL, SHARE)):
        values = [median(each) if share == 0.5 else quantile(each, share) for each in (ours, theirs)]
        our, their = (round(each, 4) for each in values)
        yield Measure(f"q-error, {what}, Spark attached", data, our, UNIT, limit, PEER, their)
    worse = worse_percentiles(ours, theirs)
    yield Measure(f"percentiles at which {PEER} is better", data, worse, "percentiles", 0, PEER)


def _percentiles(data: str, errors: dict[str, list[float]]) -> Iterator[Measure]:
    """The percentiles of each estimator, for the figure, and whether `table.estimate` is the best one."""
    worse = worse_percentiles(errors[ESTIMATE], errors[ATTACHED])
    what = f"percentiles at which {ATTACHED} is better than {ESTIMATE}"
    yield Measure(what, data, worse, "percentiles", 0, ATTACHED)
    for name, values in errors.items():
        found = percentiles(values)
        yield Measure(
            f"q-error by percentile, {name}: the greatest shown", data, found[-1], UNIT, series=tuple(found)
        )
