"""How sure a finding is, by the size of the sample that shows it. Whole sketches prove, samples do not.

A sketch keeps each hash below θ. If θ is whole, all values are known, and a statement about them is true or
false: its confidence is 1 or 0. Otherwise the statement is a weaker one, that few values differ, and its
confidence is the probability that a sample of this size would have shown more differences if it were false.
"""

from __future__ import annotations

import math

from rookery.discover.column import ColumnFacts

TOLERATED_MISSING = 0.005  # of the values of a column, that may be missing elsewhere
TOLERATED_REPEATS = 0.1  # of the rows, that may have a value of another row
TOLERATED_MORE = 1.1  # values on average that a determined column may have for one of the determining
MOST_IF_SAMPLED = 0.9999  # a sample proves nothing
MOST_IF_UNCERTAIN = 0.95  # where rows are not exactly known, or chance explains the sample
REJECTED_AT = 3.0  # standard deviations
UNLIKELY_REPEATS = 0.01  # expected of values drawn at random


def contained_confidence(values: float, share: float) -> float:
    """Return how sure it is that no value is missing elsewhere, if none of the sampled ones is.

    Each missing value would have been seen with the probability *share*. At least one is missing, and of
    many values `TOLERATED_MISSING`, if the statement is false.

    >>> contained_confidence(1_500_000, 0.003), contained_confidence(7, 0.003) < 0.01
    (0.9999, True)
    >>> contained_confidence(7, 1.0)
    1.0
    """
    if share >= 1.0:
        return 1.0
    missing = max(1, math.ceil(TOLERATED_MISSING * values))
    return min(1.0 - (1.0 - share) ** missing, MOST_IF_SAMPLED)


def unique_confidence(column: ColumnFacts) -> float:
    """Return how sure it is that no two rows have the same value."""
    if column.repeated or not column.equals_by_bits or not column.rows_high or column.in_two_files:
        return 0.0
    if column.distinct >= column.rows_high and not column.is_sampled:
        return 1.0
    distinct_share, deviation = column.distinct / column.rows_high, _deviation(column)
    if not column.is_sampled:  # fewer values than rows, unless some of those are deleted or null
        uncertain = not column.rows_exact and distinct_share >= 1 - TOLERATED_REPEATS
        return MOST_IF_UNCERTAIN if uncertain else 0.0
    most = MOST_IF_SAMPLED if column.rows_exact and not _is_so_by_chance(column) else MOST_IF_UNCERTAIN
    if column.rows_exact and distinct_share * (1 + REJECTED_AT * deviation) < 1:
        return 0.0
    return min(_normal((distinct_share - 1 + TOLERATED_REPEATS) / (deviation * distinct_share)), most)


def _is_so_by_chance(column: ColumnFacts) -> bool:
    """Whether values drawn at random might look unique in this sample, and yet have some repeats.

    Prices, times and texts often do. Whole numbers that were drawn from between the least and the greatest
    would either show repeats, or be too few to have any. A declared column set was chosen by a user.
    """
    if len(column.columns) > 1 or column.types == ("uuid",):
        return False
    if column.low is None or column.high is None:
        return True
    drawn_from, rows = column.high - column.low + 1, column.rows_high
    if rows * rows / (2 * drawn_from) < UNLIKELY_REPEATS:
        return False
    distinct_share = drawn_from / rows * -math.expm1(-rows / drawn_from)
    return distinct_share * (1 + REJECTED_AT * _deviation(column)) >= 1


def may_be_unique(column: ColumnFacts) -> bool:
    """Whether it is worth looking for repeated values."""
    return unique_confidence(column) > 0.5


def dependency_confidence(determining: ColumnFacts, column_set: ColumnFacts) -> float:
    """Return how sure it is that a value of some columns determines those of the others in a column set.

    The others must not have nulls.
    """
    if not determining.equals_by_bits or not determining.distinct:
        return 0.0
    ratio = column_set.distinct / determining.distinct
    if not determining.is_sampled and not column_set.is_sampled:
        return float(ratio <= 1)
    deviation = math.hypot(_deviation(determining), _deviation(column_set))
    if ratio * (1 - REJECTED_AT * deviation) > 1:
        return 0.0
    return min(_normal((TOLERATED_MORE - ratio) / (deviation * ratio)), MOST_IF_SAMPLED)


def share_confidence(found: int, sampled: int, least: float, values: float, share: float) -> float:
    """Return how sure it is that at least the share *least* of values is as *found* of *sampled* ones are."""
    if not sampled:
        return 0.0
    observed = found / sampled
    if share >= 1.0:
        return float(observed >= least)
    if found == sampled:
        differing = max(1, math.ceil((1 - least) * values))
        return min(1.0 - (1.0 - share) ** differing, MOST_IF_SAMPLED)
    deviation = math.sqrt(observed * (1 - observed) * (1 - share) / sampled)
    return min(_normal((observed - least) / deviation) if deviation else 0.0, MOST_IF_SAMPLED)


def both(first: float, second: float) -> float:
    """Return how sure two statements together are at least, whether they are independent or not.

    >>> both(1.0, 1.0), both(0.5, 0.4)
    (1.0, 0.0)
    """
    return max(0.0, first + second - 1.0)


def _deviation(column: ColumnFacts) -> float:
    """The relative standard deviation of a number of distinct values."""
    return math.sqrt((1 - column.sketch.share) / max(len(column.sketch.hashes), 1))


def _normal(deviations: float) -> float:
    return 0.5 * (1 + math.erf(deviations / math.sqrt(2)))
