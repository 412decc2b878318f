"""Durations, schedules and quiet hours, against references that count minute by minute."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim
from hypothesis import given
from hypothesis import strategies as st

from rookery.maintain.policies.times import (
    Cron,
    QuietHours,
    is_due,
    parse_duration,
    parse_quiet_hours,
    parse_schedule,
    show_duration,
    show_quiet_hours,
)
from rookery.model import UsageError

MINUTE = 60
DAY = 86_400
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
ZONES = ("UTC", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Asia/Kathmandu")


class TestDurations:
    @given(st.integers(-5000, 5000), st.sampled_from("smhdw"))
    def test_means_that_many_units(self, count: int, unit: str) -> None:
        words = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
        assert parse_duration(f"{count}{unit}") == timedelta(**{words[unit]: count})

    @given(st.integers(-(10**9), 10**9))
    def test_shown_ones_read_the_same(self, seconds: int) -> None:
        assert parse_duration(show_duration(timedelta(seconds=seconds))) == timedelta(seconds=seconds)

    @given(st.text(max_size=8))
    def test_other_text_is_refused_in_one_way(self, text: str) -> None:
        number, unit = text[:-1].removeprefix("-"), text[-1:]
        if number.isascii() and number.isdigit() and unit in tuple("smhdw"):
            return
        with pytest.raises(UsageError, match="is not a duration") as caught:
            parse_duration(text)
        assert "7d" in (caught.value.hint or "")

    @pytest.mark.parametrize(
        "text", ["", "d", "7", "7 d", "7days", "1.5h", "+1d", "--1d", "٣d", "1d12h", "7D"]
    )
    def test_nonsense(self, text: str) -> None:
        with pytest.raises(UsageError):
            parse_duration(text)

    @pytest.mark.parametrize("text", ["99999w", "-99999w", "999999999999d"])
    def test_too_long(self, text: str) -> None:
        with pytest.raises(UsageError, match="a hundred years"):
            parse_duration(text)

    def test_shown(self) -> None:
        shown = [show_duration(timedelta(seconds=each)) for each in (0, -DAY, 7 * DAY, 5400, 3600, 90, 0.5)]
        assert shown == ["0d", "-1d", "7d", "90m", "1h", "90s", "0.5s"]


CRONS = (
    "* * * * *",
    "*/15 * * * *",
    "30 4 * * *",
    "0 0 * * Mon",
    "0 12 1 * *",
    "5 0 29 2 *",
    "0 9-17 * * 1-5",
)


class TestSchedules:
    @given(
        st.sampled_from(CRONS),
        st.integers(1_500_000_000, 1_800_000_000),
        st.floats(0, 3 * DAY),
        st.floats(0, 1),
    )
    def test_cron_is_due_when_it_has_fired_since(
        self, text: str, start: int, later: float, fraction: float
    ) -> None:
        last, now = start + fraction, start + fraction + later
        matcher = CronSim(text, datetime.fromtimestamp(start, UTC))
        first = int(last // MINUTE + 1) * MINUTE
        fired = any(_fires(matcher, minute) for minute in range(first, int(now) + 1, MINUTE))
        assert is_due(Cron(text), last, now) is fired

    @given(st.sampled_from(CRONS), st.integers(1_500_000_000, 1_800_000_000))
    def test_cron_at_the_very_time(self, text: str, start: int) -> None:
        firings = CronSim(text, datetime.fromtimestamp(start, UTC))
        first, second = next(firings).timestamp(), next(firings).timestamp()
        assert is_due(Cron(text), first - 1, first)
        assert not is_due(Cron(text), first, second - 0.001)
        assert is_due(Cron(text), first, second)

    @given(st.integers(1, 10**6), st.floats(0, 2e9), st.floats(0, 2e6))
    def test_durations(self, seconds: int, last: float, later: float) -> None:
        assert is_due(timedelta(seconds=seconds), last, last + later) == (last + later - last >= seconds)

    def test_duration_at_the_very_time(self) -> None:
        assert is_due(timedelta(hours=6), 100.0, 100.0 + 6 * 3600)
        assert not is_due(timedelta(hours=6), 100.0, 100.0 + 6 * 3600 - 0.001)

    @pytest.mark.parametrize("text", ["6h", "0 * * * *"])
    def test_what_was_never_done_is_due(self, text: str) -> None:
        assert is_due(parse_schedule(text), None, 0.0)

    @pytest.mark.parametrize("text", ["6h", "* * * * *"])
    def test_a_clock_set_back_makes_nothing_due(self, text: str) -> None:
        assert not is_due(parse_schedule(text), 1_700_000_000.0, 1_600_000_000.0)

    @pytest.mark.parametrize(
        ("text", "what"),
        [
            ("0h", "longer than zero"),
            ("-6h", "longer than zero"),
            ("daily", "not a duration"),
            ("* * * *", "five fields"),
            ("* * * * * *", "five fields"),
            ("61 * * * *", "bad minute"),
            ("* * 30 2 *", "bad day-of-month"),
            ("0 0 29 2 1L/2", "not a schedule"),
            ("a b c d e", "bad minute"),
        ],
    )
    def test_refused(self, text: str, what: str) -> None:
        with pytest.raises(UsageError, match=what) as caught:
            parse_schedule(text)
        assert caught.value.hint


def _fires(matcher: CronSim, minute: int) -> bool:
    """Whether a minute is one of the schedule's, by its sets of numbers."""
    moment = datetime.fromtimestamp(minute, UTC)
    return (
        moment.minute in matcher.minutes
        and moment.hour in matcher.hours
        and moment.month in matcher.months
        and matcher.match_day(moment.date())
    )


def minutes_of_week(first: int, count: int, start: int, end: int) -> set[int]:
    """Walk from each beginning to its end; minutes are counted from the beginning of Monday."""
    found = set()
    for day in range(first, first + count):
        minute = day * 1440 + start
        while True:
            found.add(minute % (7 * 1440))
            minute += 1
            if minute % 1440 == end % 1440:
                break
    return found


clock = st.integers(0, 1439)


class TestQuietHours:
    @given(
        st.integers(0, 6),
        st.integers(1, 7),
        clock,
        st.integers(1, 1440),
        st.sampled_from(ZONES),
        st.integers(1_600_000_000 // MINUTE, 1_800_000_000 // MINUTE),
        st.floats(0, 59.99),
    )
    def test_against_walking_the_week(
        self, first: int, count: int, start: int, end: int, zone: str, minute: int, seconds: float
    ) -> None:
        if start == end % 1440 and start:
            end = (end + 1) % 1440 or 1440
        days = DAYS[first] if count == 1 else f"{DAYS[first]}-{DAYS[(first + count - 1) % 7]}"
        text = f"{days} {start // 60:02}:{start % 60:02}-{end // 60:02}:{end % 60:02} {zone}"
        hours = parse_quiet_hours(text)
        now = minute * MINUTE
        local = datetime.fromtimestamp(now, UTC).astimezone(ZoneInfo(zone))
        of_week = local.weekday() * 1440 + local.hour * 60 + local.minute
        assert hours.covers(now + seconds) is (of_week in minutes_of_week(first, count, start, end))
        assert parse_quiet_hours(show_quiet_hours(hours)) == hours

    def test_over_midnight(self) -> None:
        hours = parse_quiet_hours("Fri 22:00-06:00")
        friday = datetime(2024, 3, 1, 22, tzinfo=UTC).timestamp()
        assert [hours.covers(friday + each * 3600) for each in (-0.01, 0, 2, 7.99, 8, 24)] == [
            *(False, True, True, True, False, False)
        ]

    def test_end_of_winter_time(self) -> None:
        """On 31 March 2024 clocks in Berlin went from 02:00 to 03:00, at 01:00 UTC."""
        hours = parse_quiet_hours("01:30-03:30 Europe/Berlin")
        change = datetime(2024, 3, 31, 1, tzinfo=UTC).timestamp()
        quiet = [m for m in range(-120, 120) if hours.covers(change + m * MINUTE)]
        assert quiet == list(range(-30, 30))

    def test_end_of_summer_time(self) -> None:
        """On 27 October 2024 clocks in Berlin showed 02:00 to 03:00 twice, from 00:00 UTC on."""
        hours = parse_quiet_hours("01:30-03:30 Europe/Berlin")
        change = datetime(2024, 10, 27, 0, tzinfo=UTC).timestamp()
        quiet = [m for m in range(-120, 240) if hours.covers(change + m * MINUTE)]
        assert quiet == list(range(-30, 150))

    def test_read(self) -> None:
        assert parse_quiet_hours("sat-mon 08:00-24:00") == QuietHours(
            frozenset({5, 6, 0}), time(8), time(0), "UTC"
        )

    @pytest.mark.parametrize(
        ("text", "message", "hint"),
        [
            ("8-18", "is not a range of quiet hours", "22:00-06:00"),
            ("25:00-26:00", "does not exist", "22:00-06:00"),
            ("08:00-08:00", "ends at its start", "00:00-24:00"),
            ("Mon-Foo 08:00-18:00", "no day of the week 'Foo'", "Mon, Tue"),
            ("08:00-18:00 Europe/Berln", "no time zone 'Europe/Berln'", "did you mean Europe/Berlin?"),
            ("08:00-18:00 europe/berlin", "no time zone", "did you mean Europe/Berlin?"),
            ("08:00-18:00 Europe", "no time zone", ""),
            ("08:00-18:00 ../UTC", "no time zone", ""),
        ],
    )
    def test_refused(self, text: str, message: str, hint: str) -> None:
        with pytest.raises(UsageError, match=message) as caught:
            parse_quiet_hours(text)
        assert hint in (caught.value.hint or "")
