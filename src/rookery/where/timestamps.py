"""Days and instants in text, as Spark reads them, and their ways from zone to zone.

Days count from 1970-01-01, instants in microseconds from its midnight in UTC; a local time is counted as if
it were UTC. Python's calendar ends with the year 9999 and Spark's does not: beyond it, `Inexact` is raised.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from rookery.model.errors import UsageError
from rookery.where.binding import Inexact

MICROS_A_DAY = 86_400_000_000
EPOCH_DAY = date(1970, 1, 1).toordinal()
_LOCAL_EPOCH, _EPOCH, _MICRO = (
    datetime(1970, 1, 1),
    datetime(1970, 1, 1, tzinfo=UTC),
    timedelta(microseconds=1),
)
_MOVING = frozenset({"now", "today", "tomorrow", "yesterday", "epoch"})
_BLANKS = "".join(map(chr, range(33))) + "\x7f"  # what Spark trims before it casts

_DAY = re.compile(r"([+-]?\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?", re.DOTALL | re.ASCII)
_MOMENT = re.compile(
    r"([+-]?\d{4,6})(?:-(\d{1,2})(?:-(\d{1,2})"
    r"(?:[ T](\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?([^\d.].*)?)?)?)?)?)?",
    re.DOTALL | re.ASCII,
)
_TIME = re.compile(r"(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{0,6}))?)?", re.ASCII)
_ONLY_TIME = re.compile(r"T?\d{1,2}:\d.*", re.DOTALL | re.ASCII)
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{1,2})(?::?(\d{2}))?)?", re.ASCII)


def trimmed(text: str) -> str:
    """Return *text* as Spark's casts read it."""
    return text.strip(_BLANKS)


@lru_cache(maxsize=256)
def session_zone(name: str) -> tzinfo:
    """Return the session's time zone.

    >>> session_zone("+02:00")
    datetime.timezone(datetime.timedelta(seconds=7200))
    """
    zone = _zone(name)
    if zone is None:
        raise UsageError(
            f"'{name}' is not a time zone", hint="use UTC, an offset such as +02:00, or Europe/Berlin"
        )
    return zone


def is_zone(name: str) -> bool:
    """Whether a name means the same time zone to Java and to Python.

    >>> is_zone("Europe/Berlin"), is_zone("UTC"), is_zone("EST"), is_zone("Mars/Base")
    (True, True, False, False)
    """
    zone = _zone(name)
    return zone is not None and (zone is UTC or len(name) != 3)  # Java has short names of its own


def _zone(name: str) -> tzinfo | None:
    if name in ("Z", "UTC", "GMT", "UT"):
        return UTC
    if (match := _OFFSET.fullmatch(name)) is not None:
        sign, hours, minutes, seconds = match.groups()
        offset = timedelta(hours=int(hours), minutes=int(minutes or 0), seconds=int(seconds or 0))
        if offset > timedelta(hours=18) or int(minutes or 0) > 59 or int(seconds or 0) > 59:
            return None
        return timezone(-offset if sign == "-" else offset)
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None


def day_in(text: str) -> int | None:
    """Return the day that *text* names, or None if it names none.

    >>> day_in("1970-1-2"), day_in("1970-01-02 10:00"), day_in("1970"), day_in("no day")
    (1, 1, 0, None)
    """
    text = _fixed(trimmed(text))
    match = _DAY.fullmatch(text)
    return None if match is None else _days(*match.groups())


def moment_in(text: str) -> tuple[int, str] | None:
    """Return the local time in *text*, and the name of the zone after it ("" for none).

    >>> moment_in("1970-01-01 00:00:01.5 +02:00"), moment_in("1970-01-01T01"), moment_in("1970-01-01 25:00")
    ((1500000, '+02:00'), (3600000000, ''), None)
    """
    text = _fixed(trimmed(text))
    match = _MOMENT.fullmatch(text)
    if match is None:
        if _ONLY_TIME.fullmatch(text):
            raise Inexact("a time without a day is one of today")
        return None
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    days = _days(year, month, day)
    micros = _micros(hour or "0", minute, second, fraction)
    if days is None or micros is None:
        return None
    return days * MICROS_A_DAY + micros, trimmed(zone or "")


def nanos_in(text: str) -> int:
    """Return the nanoseconds of the time in *text* behind its microseconds, which Spark's types do not hold.

    >>> nanos_in("1970-01-01 00:00:01.123456789 +02:00"), nanos_in("1970-01-01 00:00:01.5")
    (789, 0)
    """
    match = _MOMENT.fullmatch(trimmed(text))
    fraction = "" if match is None else match[7] or ""
    return int(fraction[6:9].ljust(3, "0"))


def local_in(text: str) -> int | None:
    """Return the local time in *text*; Spark ignores the zone after it."""
    moment = moment_in(text)
    return None if moment is None else moment[0]


def instant_in(text: str, zone: tzinfo) -> int | None:
    """Return the instant in *text*, whose local times are in *zone* unless it names another."""
    moment = moment_in(text)
    if moment is None:
        return None
    local, name = moment
    if not name:
        return to_instant(local, zone)
    if not is_zone(name):
        raise Inexact(f"the time zone '{name}' is not known")
    return to_instant(local, session_zone(name))


def time_in(text: str) -> int | None:
    """Return the microseconds since midnight.

    >>> time_in("00:01:00.5"), time_in("24:00")
    (60500000, None)
    """
    match = _TIME.fullmatch(trimmed(text))
    return None if match is None else _micros(*match.groups())


def to_instant(local: int, zone: tzinfo) -> int:
    """Return the instant of a local time: the earlier of two, and moved on where clocks skip it."""
    try:
        offset = (_LOCAL_EPOCH + local * _MICRO).replace(tzinfo=zone).utcoffset()
    except OverflowError as error:
        raise Inexact("the time is out of the calendar") from error
    assert offset is not None
    return _known(local - offset // _MICRO, zone)


def to_local(instant: int, zone: tzinfo) -> int:
    """Return the local time in *zone* at an instant."""
    _known(instant, zone)
    try:
        shown = (_EPOCH + instant * _MICRO).astimezone(zone).replace(tzinfo=None)
    except OverflowError as error:
        raise Inexact("the time is out of the calendar") from error
    return (shown - _LOCAL_EPOCH) // _MICRO


def _known(instant: int, zone: tzinfo) -> int:
    """Refuse instants at which a region's local time may differ between Java and Python."""
    if isinstance(zone, ZoneInfo) and instant < 0:
        raise Inexact("the time zone databases of Java and Python differ in regions before 1970")
    return instant


def day_of(instant: int, zone: tzinfo) -> tuple[int, bool]:
    """Return the last day in *zone* whose midnight is not after an instant, and whether it is at it."""
    day = to_local(instant, zone) // MICROS_A_DAY
    while to_instant(day * MICROS_A_DAY, zone) > instant:
        day -= 1
    while to_instant((day + 1) * MICROS_A_DAY, zone) <= instant:
        day += 1
    return day, to_instant(day * MICROS_A_DAY, zone) == instant


def steady_local(instant: int, zone: tzinfo) -> int:
    """Return the local time of an instant, if local times order as instants do around it.

    Spark casts local times to instants; where clocks are put forward, two of them become one.
    """
    local = to_local(instant, zone)
    for hours in (-48, -24, 24, 48):
        near = instant + hours * MICROS_A_DAY // 24
        if to_local(near, zone) - near != local - instant:
            raise Inexact("clocks change near this time, where local times do not order as instants")
    return local


def _fixed(text: str) -> str:
    if text.lower() in _MOVING:
        raise Inexact(f"'{text}' depends on when it is asked")
    return text


def _days(year: str, month: str | None, day: str | None) -> int | None:
    number = int(year)
    if not 1 <= number <= 9999:
        raise Inexact("the date is out of the calendar")
    try:
        return date(number, int(month or 1), int(day or 1)).toordinal() - EPOCH_DAY
    except ValueError:
        return None


def _micros(hour: str, minute: str | None, second: str | None, fraction: str | None) -> int | None:
    hours, minutes, seconds = int(hour), int(minute or 0), int(second or 0)
    if hours > 23 or minutes > 59 or seconds > 59:
        return None
    return ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + int(((fraction or "") + "000000")[:6])
