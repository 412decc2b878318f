"""LIKE patterns and their form in predicates."""

from __future__ import annotations

import re
from itertools import takewhile

from rookery.model.errors import UsageError
from rookery.model.predicate import NEVER, Compare, IsNull, Like, Op, Predicate
from rookery.model.table import Field
from rookery.model.text import REPLACEMENT

_ANY, _ONE = ".*", "."
_SPECIAL = frozenset(r"\.+*?()|[]{}^$")
_SIMPLE = re.compile(r"%*[^_%]+%*|[^_%]+%+[^_%]+|%*")
_PIECE = re.compile(r"(\.\*)|(\.)|\\(.)|([^\\.])", re.DOTALL)


def like(field: Field, pattern: str, *, escape: str = "\\", negated: bool = False) -> Predicate:
    r"""Return `field LIKE pattern`: as an equality, a prefix, or a prefix and a regular expression.

    >>> name = Field(1, "name", "string")
    >>> like(name, "Ann_%").regex
    '(?s:Ann..*)'
    >>> like(name, "50\\%%").prefix, like(name, "Ann").value
    ('50%', 'Ann')
    """
    pieces = _pieces(pattern, escape)
    prefix = "".join(text for text, _ in takewhile(lambda piece: piece[1], pieces))
    # Spark compares the bytes of the simplest patterns, and matches others on text as Java decodes it, in
    # which U+FFFD replaces what is not UTF-8.
    by_bytes = escape not in pattern and _SIMPLE.fullmatch(pattern) is not None
    if by_bytes or REPLACEMENT not in pattern:
        if all(literal for _, literal in pieces):
            return Compare(field, Op.NE if negated else Op.EQ, prefix)
        if pieces[-1] == (_ANY, False) and all(literal for _, literal in pieces[:-1]):
            return begins_with(field, prefix, negated=negated)
    regex = "".join(_quoted(text) if literal else text for text, literal in pieces)
    begins = prefix if by_bytes else prefix.partition(REPLACEMENT)[0]
    return Like(field=field, prefix=begins, regex=f"(?s:{regex})", negated=negated, by_bytes=by_bytes)


def begins_with(field: Field, prefix: str, *, negated: bool = False) -> Predicate:
    """Return `startswith(field, prefix)`, which is true of every text if the prefix is empty."""
    if not prefix:
        return NEVER if negated else IsNull(field, negated=True)
    return Like(field, prefix, None, negated)


def ends_with(field: Field, text: str, *, negated: bool = False) -> Predicate:
    """Return `endswith(field, text)`, by bytes as Spark compares them."""
    return Like(field, "", f"(?s:.*{''.join(map(_quoted, text))})", negated, by_bytes=True)


def contains(field: Field, text: str, *, negated: bool = False) -> Predicate:
    """Return `contains(field, text)`, by bytes as Spark compares them."""
    return Like(field, "", f"(?s:.*{''.join(map(_quoted, text))}.*)", negated, by_bytes=True)


def like_pattern(leaf: Like) -> str | None:
    r"""Return the LIKE pattern, with backslashes for escapes, or None if the regex is not of this form.

    >>> like_pattern(like(Field(1, "name", "string"), "a\\__%b"))
    'a\\__%b'
    """
    if leaf.regex is None:
        return _escaped(leaf.prefix) + "%"
    if not (leaf.regex.startswith("(?s:") and leaf.regex.endswith(")")):
        return None
    body, pattern, position = leaf.regex[4:-1], "", 0
    while position < len(body):
        match = _PIECE.match(body, position)
        if match is None or (match.group(4) in _SPECIAL):
            return None
        any_, one, quoted, plain = match.groups()
        pattern += "%" if any_ else "_" if one else _escaped(quoted or plain)
        position = match.end()
    return pattern


def _pieces(pattern: str, escape: str) -> list[tuple[str, bool]]:
    """Split a pattern; a piece is a literal letter, or a wildcard's expression."""
    pieces: list[tuple[str, bool]] = []
    letters = iter(pattern)
    for letter in letters:
        if letter == escape:
            escaped = next(letters, "")
            if escaped not in ("%", "_", escape):
                after = f"'{escaped}'" if escaped else "nothing"
                raise UsageError(
                    f"LIKE pattern '{pattern}': the escape character is before {after}",
                    hint=f"it may be before %, _ and itself; write {escape * 2} for a {escape}",
                )
            pieces.append((escaped, True))
        elif letter == "%":
            if pieces[-1:] != [(_ANY, False)]:
                pieces.append((_ANY, False))
        else:
            pieces.append((_ONE, False) if letter == "_" else (letter, True))
    return pieces


def _quoted(letter: str) -> str:
    return "\\" + letter if letter in _SPECIAL else letter


def _escaped(text: str) -> str:
    return re.sub(r"([\\%_])", r"\\\1", text)
