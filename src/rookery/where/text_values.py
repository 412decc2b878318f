"""Numbers and truth values in text, as Spark's casts read them."""

from __future__ import annotations

import math
import re

from rookery.where.timestamps import trimmed

NAN = math.nan  # one object, so that predicates with it equal each other
_INTEGER = re.compile(r"[+-]?\d{1,80}", re.ASCII)
_DOUBLE = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[dDfF]?", re.ASCII)
_SPECIAL = {"nan": NAN, "inf": math.inf, "infinity": math.inf}
_TRUE, _FALSE = frozenset({"t", "true", "y", "yes", "1"}), frozenset({"f", "false", "n", "no", "0"})


def integer_in(text: str) -> int | None:
    """Return the whole number in *text*, as Spark casts it to BIGINT."""
    number = int(trimmed(text)) if _INTEGER.fullmatch(trimmed(text)) else None
    return number if number is not None and -(2**63) <= number < 2**63 else None


def double_in(text: str) -> float | None:
    """Return the double in *text*.

    >>> double_in(" 1e3 "), double_in("-Infinity"), double_in("1,5")
    (1000.0, -inf, None)
    """
    text = trimmed(text)
    if (match := _DOUBLE.fullmatch(text)) is not None:
        return float(match.group(1))
    sign, word = (text[:1], text[1:].lower()) if text[:1] in ("+", "-") else ("", text.lower())
    if word not in _SPECIAL or (sign and word == "nan"):
        return None
    return -_SPECIAL[word] if sign == "-" else _SPECIAL[word]


def boolean_in(text: str) -> bool | None:
    """Return the truth value in *text*."""
    word = trimmed(text).lower()
    return True if word in _TRUE else False if word in _FALSE else None
