"""Durations as people write them: 90s, 15m, 6h."""

from __future__ import annotations

from rookery.maintain.policies.times import parse_duration

__all__ = ["parse_duration"]
