"""Durations, schedules and quiet hours, as people write them."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

from rookery.model import UsageError

LONGEST = timedelta(days=36_500)  # in either direction; anything longer is taken for a mistake
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
_DURATION = re.compile(r"(-?[0-9]{1,12})([smhdw])")
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_QUIET = re.compile(
    r"(?:([A-Za-z]+)(?:-([A-Za-z]+))?\s+)?([0-9]{2}):([0-9]{2})-([0-9]{2}):([0-9]{2})(?:\s+(\S+))?"
)
_QUIET_HINT = "write 22:00-06:00, or with days and a time zone: Mon-Fri 08:00-18:00 Europe/Berlin"


@dataclass(frozen=True, slots=True)
class Cron:
    """A schedule in cron's five fields, in UTC."""

    text: str


Schedule = timedelta | Cron


@dataclass(frozen=True, slots=True)
class QuietHours:
    """A span of the day, on some days of the week, in a time zone; it may reach over midnight."""

    days: frozenset[int]  # 0 is Monday: of the day on which it begins
    start: time
    end: time
    zone: str = "UTC"

    def covers(self, now: float) -> bool:
        """Whether the local time there is within the span; its end is excluded.

        By local time, an hour that summer time repeats is quiet twice, and one that it skips never occurs.
        """
        local = datetime.fromtimestamp(now, ZoneInfo(self.zone))
        clock, today = local.time(), local.weekday() in self.days
        if self.start < self.end:
            return today and self.start <= clock < self.end
        yesterday = (local.weekday() - 1) % 7 in self.days
        return (today and clock >= self.start) or (yesterday and clock < self.end)


def parse_duration(text: str) -> timedelta:
    """Read a whole number and its unit: seconds, minutes, hours, days or weeks.

    >>> parse_duration("15m"), parse_duration("-2w")
    (datetime.timedelta(seconds=900), datetime.timedelta(days=-14))
    """
    hint = "write a whole number and a unit: 90s, 15m, 6h, 7d or 2w"
    match = _DURATION.fullmatch(text)
    if match is None:
        raise UsageError(f"'{text}' is not a duration", hint=hint)
    seconds = int(match[1]) * _UNITS[match[2]]
    if abs(seconds) > LONGEST.total_seconds():
        raise UsageError(f"'{text}' is longer than a hundred years", hint=hint)
    return timedelta(seconds=seconds)


def show_duration(value: timedelta) -> str:
    """Format a duration in the largest unit up to days that divides it.

    >>> show_duration(timedelta(days=14)), show_duration(timedelta(hours=36)), show_duration(timedelta(0))
    ('14d', '36h', '0d')
    """
    seconds = value.total_seconds()
    unit = next((unit for unit in "dhm" if seconds % _UNITS[unit] == 0), "s")
    return f"{seconds / _UNITS[unit]:.15g}{unit}"


def parse_schedule(text: str) -> Schedule:
    """Read a duration, or cron's five fields.

    >>> parse_schedule("6h"), parse_schedule("30 4 * * Mon")
    (datetime.timedelta(seconds=21600), Cron(text='30 4 * * Mon'))
    """
    if len(text.split()) > 1:
        return _cron(text)
    duration = parse_duration(text)
    if duration <= timedelta(0):
        raise UsageError(f"'{text}' is not a schedule: it must be longer than zero", hint="write 6h, or 7d")
    return duration


def _cron(text: str) -> Cron:
    fields = " ".join(text.split())
    hint = (
        "the five fields are minute, hour, day of the month, month and day of the week, in UTC: 30 4 * * 1-5"
    )
    if fields.count(" ") != 4:
        raise UsageError(f"'{text}' is not a schedule: cron has five fields", hint=hint)
    try:
        next(CronSim(fields, datetime(2024, 1, 1, tzinfo=UTC)))
    except StopIteration:
        raise UsageError(f"the schedule '{text}' never occurs", hint=hint) from None
    except CronSimError as error:
        what = str(error)
        raise UsageError(f"'{text}' is not a schedule: {what[:1].lower()}{what[1:]}", hint=hint) from None
    except (AssertionError, TypeError, ValueError):  # raised by cronsim for odd steps, such as 1L/2
        raise UsageError(f"'{text}' is not a schedule", hint=hint) from None
    return Cron(fields)


def show_schedule(value: Schedule) -> str:
    """Format a schedule as it is written."""
    return value.text if isinstance(value, Cron) else show_duration(value)


def is_due(schedule: Schedule, last: float | None, now: float) -> bool:
    """Whether it is time again, *last* being when it was done; times are seconds since 1970.

    >>> is_due(timedelta(hours=6), 0.0, 21_600.0), is_due(Cron("0 * * * *"), 3600.0, 7199.0)
    (True, False)
    """
    if last is None:
        return True
    if isinstance(schedule, timedelta):
        return now - last >= schedule.total_seconds()
    # Firing times are whole minutes, so that the fraction of a second which cronsim drops changes nothing.
    following = next(CronSim(schedule.text, datetime.fromtimestamp(last, UTC)), None)
    return following is not None and following.timestamp() <= now


def parse_quiet_hours(text: str) -> QuietHours:
    """Read a span of the day, optionally with days of the week before it and a time zone after it.

    >>> parse_quiet_hours("22:00-06:00").end
    datetime.time(6, 0)
    >>> sorted(parse_quiet_hours("Sat-Mon 08:00-18:00 Europe/Berlin").days)
    [0, 5, 6]
    """
    match = _QUIET.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"'{text}' is not a range of quiet hours", hint=_QUIET_HINT)
    first, last, *clock, zone = match.groups()
    start_hour, start_minute, end_hour, end_minute = map(int, clock)
    if (end_hour, end_minute) == (24, 0):
        end_hour = 0
    elif (start_hour, start_minute) == (end_hour, end_minute):
        raise UsageError(f"'{text}' ends at its start", hint="for the whole day, write 00:00-24:00")
    try:
        start, end = time(start_hour, start_minute), time(end_hour, end_minute)
    except ValueError:
        raise UsageError(f"'{text}' has a time that does not exist", hint=_QUIET_HINT) from None
    return QuietHours(_days(first, last), start, end, _zone(zone or "UTC"))


def show_quiet_hours(value: QuietHours) -> str:
    """Format quiet hours as they are written; days that are not consecutive by their first and last.

    >>> show_quiet_hours(parse_quiet_hours("Sat-Mon 00:00-24:00 Europe/Berlin"))
    'Sat-Mon 00:00-24:00 Europe/Berlin'
    """
    end = "24:00" if value.end == time(0) else f"{value.end:%H:%M}"
    zone = "" if value.zone == "UTC" else f" {value.zone}"
    return f"{_show_days(value.days)}{value.start:%H:%M}-{end}{zone}"


def _show_days(days: frozenset[int]) -> str:
    if len(days) == 7:
        return ""
    first = next((day for day in sorted(days) if (day - 1) % 7 not in days), 0)
    last = (first + len(days) - 1) % 7
    return f"{_DAYS[first]} " if first == last else f"{_DAYS[first]}-{_DAYS[last]} "


def _days(first: str | None, last: str | None) -> frozenset[int]:
    if first is None:
        return frozenset(range(7))
    start = _day(first)
    count = (_day(last) - start) % 7 if last is not None else 0
    return frozenset((start + step) % 7 for step in range(count + 1))


def _day(text: str) -> int:
    if (name := text.capitalize()) not in _DAYS:
        raise UsageError(f"there is no day of the week '{text}'", hint=f"the days are {', '.join(_DAYS)}")
    return _DAYS.index(name)


def _zone(text: str) -> str:
    try:
        ZoneInfo(text)
    except (KeyError, ValueError, OSError):
        known = {name.lower(): name for name in available_timezones()}
        close = difflib.get_close_matches(text.lower(), known, n=1)
        hint = f"did you mean {known[close[0]]}?" if close else "name one as in Europe/Berlin, or UTC"
        raise UsageError(f"there is no time zone '{text}'", hint=hint) from None
    return text
