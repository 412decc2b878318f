"""A table with skew and correlation: words by Zipf's law, cities in countries, models of brands."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

ROWS = 2_000_000
FILES = 32
WORDS, COUNTRIES, CITIES, BRANDS, MODELS = 20_000, 40, 2_000, 50, 1_000
COLUMN_SETS = (("country", "city"), ("brand", "model"))
TOP_K = ("word", "amount", "country", "city", "brand", "model", "status")
HISTOGRAM = ("amount", "price", "day")
FIRST_DAY = datetime.date(2020, 1, 1)
DAYS = 1_000


def parts(rows: int) -> Iterator[pa.Table]:
    """The rows, a part for each file; days and ids grow with the files, the rest does not."""
    rng = np.random.default_rng(20)
    country_of = rng.permutation(np.arange(CITIES) % COUNTRIES)
    brands_of = rng.integers(0, BRANDS, (MODELS, 3))  # under which a model is sold
    for number, ids in enumerate(np.array_split(np.arange(rows), FILES)):
        count = len(ids)
        city, model = _zipf(rng, 1.1, CITIES, count), _zipf(rng, 1.05, MODELS, count)
        brand = brands_of[model, rng.integers(0, 3, count)]
        days = FIRST_DAY.toordinal() + (number * DAYS + rng.integers(0, DAYS, count)) // FILES
        status = rng.choice(np.array(["new", "paid", "sent", "back"]), count, p=[0.05, 0.15, 0.7, 0.1])
        yield pa.table(
            {
                "id": ids,
                "day": pa.array(days - datetime.date(1970, 1, 1).toordinal(), pa.int32()).cast(pa.date32()),
                "word": _named("w", _zipf(rng, 1.2, WORDS, count)),
                "amount": _zipf(rng, 1.3, 100_000, count) + 1,
                "price": np.round(rng.lognormal(3, 1.5, count), 2),
                "country": _named("country ", country_of[city]),
                "city": _named("city ", city),
                "brand": _named("b", brand),
                "model": _named("m", model),
                "status": pa.array(status, mask=rng.random(count) < 0.1),
            }
        )


def _named(prefix: str, numbers: np.ndarray) -> pa.Array:
    names = pa.array([f"{prefix}{number:05d}" for number in range(int(numbers.max()) + 1)])
    return names.take(pa.array(numbers))


def _zipf(rng: np.random.Generator, exponent: float, values: int, count: int) -> np.ndarray:
    weights = np.arange(1, values + 1) ** -exponent
    return np.searchsorted(np.cumsum(weights) / weights.sum(), rng.random(count))
