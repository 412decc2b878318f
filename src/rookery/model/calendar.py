"""Days and times as text, in all years that Iceberg has: Python's calendar ends with the years 1 and 9999."""

from __future__ import annotations

from datetime import date

NANOS_A_MICRO = 1000
_NANOS_A_SECOND = 1_000_000_000
_NANOS_A_DAY = 86_400 * _NANOS_A_SECOND
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_LAST_DAY = date.max.toordinal()
_CYCLE_DAYS, _CYCLE_YEARS = 146_097, 400  # after which the calendar repeats


def day_text(days: int) -> str:
    """Return a day, counted from 1970, as Spark prints it: years from 10000 on have a sign.

    >>> day_text(19_844), day_text(2_932_897), day_text(-719_529)
    ('2024-05-01', '+10000-01-01', '-0001-12-31')
    """
    ordinal = days + _EPOCH_DAY
    cycles = 0 if 1 <= ordinal <= _LAST_DAY else (ordinal - 1) // _CYCLE_DAYS
    day = date.fromordinal(ordinal - cycles * _CYCLE_DAYS)  # a day some cycles away
    year = day.year + cycles * _CYCLE_YEARS
    sign = "-" if year < 0 else "+" if year > date.max.year else ""
    return f"{sign}{abs(year):04d}-{day.month:02d}-{day.day:02d}"


def time_text(micros: int) -> str:
    """Return a time of day, in microseconds.

    >>> time_text(0), time_text(3_723_000_004)
    ('00:00:00', '01:02:03.000004')
    """
    return _clock(micros * NANOS_A_MICRO)


def timestamp_text(nanos: int, separator: str = " ") -> str:
    """Return a day and its time, in nanoseconds from 1970; what is no whole microsecond has nine digits.

    >>> timestamp_text(-1), timestamp_text(253_402_300_800_000_000_000, "T")
    ('1969-12-31 23:59:59.999999999', '+10000-01-01T00:00:00')
    """
    days, rest = divmod(nanos, _NANOS_A_DAY)
    return f"{day_text(days)}{separator}{_clock(rest)}"


def _clock(nanos: int) -> str:
    seconds, fraction = divmod(nanos, _NANOS_A_SECOND)
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    if not fraction:
        return clock
    micros, rest = divmod(fraction, NANOS_A_MICRO)
    return f"{clock}.{fraction:09d}" if rest else f"{clock}.{micros:06d}"
