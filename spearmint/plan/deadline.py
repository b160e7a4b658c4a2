"""Parse when a search must have ended."""

from __future__ import annotations

import re
from datetime import datetime, time, timedelta

from spearmint.fields import parse_duration
from spearmint.plan.durations import LONGEST_S

_CLOCK = re.compile(r"\d{1,2}:\d{2}")


def parse_deadline(text: str, now: datetime) -> datetime:
    """Return the time that ``text`` names, in the time zone of this machine.

    Args:
        text: A clock time, which is tomorrow if it has passed today; a date with a time, such as
            ``2026-11-26 09:30``; or a duration from now, such as ``6h``.
        now: The time now, with a time zone.

    Raises:
        ValueError: ``text`` is something else, or not later than ``now``.
    """
    found = _clock(text, now) if _CLOCK.fullmatch(text) else _date(text)
    if found is None:
        found = now + timedelta(seconds=_duration(text))
    if found <= now:
        raise ValueError(f"{text!r} has passed: it is {now:%Y-%m-%d %H:%M}")
    return found


def _clock(text: str, now: datetime) -> datetime:
    hour, minute = map(int, text.split(":"))
    if hour > 23 or minute > 59:
        raise ValueError(f"invalid clock time {text!r}: expected 00:00 to 23:59")
    today = now.astimezone().date()
    found = _local(datetime.combine(today, time(hour, minute)))
    if found > now:
        return found
    # Not 24 hours later: the clock can change in between.
    return _local(datetime.combine(today + timedelta(days=1), time(hour, minute)))


def _local(wall: datetime) -> datetime:
    """Return the time when the clock shows ``wall``; in a skipped hour, as if it did not change."""
    found = wall.astimezone()
    if found.replace(tzinfo=None) == wall:
        return found
    return max(found, wall.replace(fold=1).astimezone())


def _date(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
        return _local(found) if found.tzinfo is None else found.astimezone()
    except (ValueError, OverflowError):  # the latter near the years 1 and 9999
        return None


def _duration(text: str) -> float:
    try:
        seconds = parse_duration(text)
    except ValueError:
        raise ValueError(
            f"invalid time {text!r}: expected a clock time such as 18:00, a date such as "
            "'2026-11-26 09:30', or a duration such as 6h"
        ) from None
    if seconds > LONGEST_S:
        raise ValueError(f"invalid time {text!r}: more than 100 years")
    return seconds
