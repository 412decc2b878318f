"""What sqlglot reads and Spark's own parser refuses: found among the tokens, and refused here too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from sqlglot import exp
from sqlglot.dialects import Spark
from sqlglot.tokenizer_core import Token, TokenType

from rookery.model.errors import UsageError

_T = TokenType
_OPENING = (_T.L_PAREN, _T.L_BRACKET)
_CLOSING = (_T.R_PAREN, _T.R_BRACKET)
_CASTS = ("CAST", "TRY_CAST")
_MISSING_FUNCTIONS = {
    "STARTS_WITH": "startswith",
    "IS_NAN": "isnan",
    "SAFE_CAST": "try_cast",
    "CONVERT": "cast",
    "TRY_CONVERT": "try_cast",
    "TS_OR_DS_TO_DATE": "to_date",
}
_WHOLE_NUMBERS = ("TINYINT", "BYTE", "SMALLINT", "SHORT", "INT", "INTEGER", "BIGINT", "LONG")
_TIMES = ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ")
_PLAIN_TYPES = frozenset(
    (*_WHOLE_NUMBERS, *_TIMES, "BOOLEAN", "FLOAT", "REAL", "DOUBLE", "STRING", "BINARY", "VOID", "VARIANT")
)
_SIZED_TYPES = {"DECIMAL": (0, 1, 2), "DEC": (0, 1, 2), "NUMERIC": (0, 1, 2), "TIME": (0, 1)} | dict.fromkeys(
    ("CHAR", "CHARACTER", "VARCHAR"), (1,)
)
_OTHER_TYPES = frozenset(("ARRAY", "MAP", "STRUCT", "INTERVAL", "GEOMETRY", "GEOGRAPHY"))
_LITERAL_TYPES = frozenset(
    ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ", "TIME", "INTERVAL", "X", "R")
)


_TESTS = (exp.In, exp.Between, exp.Is, exp.Like, exp.ILike, exp.RegexpLike)


class Refusal(NamedTuple):
    """Syntax that Spark refuses, its position, and what to write."""

    what: str
    start: int
    hint: str


_Check: TypeAlias = Callable[[Sequence[Token], int, str], Refusal | None]


def check_syntax(tokens: Sequence[Token], text: str) -> None:
    """Refuse the first thing that Spark's parser would refuse.

    >>> from rookery.where.parsing import spark_tokens
    >>> check_syntax(spark_tokens("id IN (5, 6)"), "id IN (5, 6)")
    """
    for place in range(len(tokens)):
        for check in CHECKS:
            refusal = check(tokens, place, text)
            if refusal is not None:
                line = text.count("\n", 0, refusal.start) + 1
                column = refusal.start - text.rfind("\n", 0, refusal.start)
                raise UsageError(
                    f"the predicate cannot be read at line {line}, column {column}: {refusal.what}",
                    hint=refusal.hint,
                )


def check_chains(expression: exp.Expression) -> None:
    """Refuse tests of tests, as in `a IN (1) IS TRUE`, which Spark accepts only in parentheses."""
    for node in expression.find_all(*_TESTS):
        tested = node.this
        while isinstance(tested, exp.Not):
            tested = tested.this
        if isinstance(tested, _TESTS):
            raise UsageError(
                f"two tests follow each other in '{node.sql(dialect='spark', comments=False)}'",
                hint="put the first one into parentheses",
            )


def _comma(tokens: Sequence[Token], place: int, text: str) -> Refusal | None:
    """A comma has a value on both sides."""
    if tokens[place].token_type is not _T.COMMA:
        return None
    before = tokens[place - 1].token_type if place else _T.COMMA
    after = tokens[place + 1].token_type if place + 1 < len(tokens) else _T.COMMA
    if before in (*_OPENING, _T.COMMA) or after in (*_CLOSING, _T.COMMA):
        return Refusal(
            "a comma without a value beside it", tokens[place].start, "remove the comma, or add a value"
        )
    return None


def _null_test(tokens: Sequence[Token], place: int, text: str) -> Refusal | None:
    """`a ISNULL`, `a NOTNULL` and `a NOT NULL`."""
    token = tokens[place]
    if not place or not _ends_value(tokens[place - 1]):
        return None
    if token.token_type is _T.ISNULL:
        return Refusal("Spark has no operator ISNULL", token.start, "use IS NULL")
    negated = token.token_type is _T.NOT and _type_at(tokens, place + 1) is _T.NULL
    if negated or token.token_type is _T.NOTNULL:
        return Refusal("Spark has no operator NOT NULL", token.start, "use IS NOT NULL")
    return None


def _operator(tokens: Sequence[Token], place: int, text: str) -> Refusal | None:
    """Other operators of other dialects."""
    token, before = tokens[place], tokens[place - 1].token_type if place else None
    written = text[token.start : token.end + 1]
    if token.token_type is _T.LIKE and written == "~~":
        return Refusal("Spark has no operator ~~", token.start, "use LIKE")
    if token.token_type is _T.L_BRACKET and before is _T.IN:
        return Refusal("IN takes its list in parentheses", token.start, "write IN (…)")
    is_word = written.upper() == "ASYMMETRIC" and _type_at(tokens, place + 1) is not _T.AND  # else a column
    if is_word and before is _T.BETWEEN:
        return Refusal("Spark has no BETWEEN ASYMMETRIC", token.start, "write BETWEEN … AND …")
    return None


def _ends_value(token: Token) -> bool:
    values = (_T.IDENTIFIER, _T.NUMBER, _T.STRING, _T.NULL, _T.TRUE, _T.FALSE, *_CLOSING)
    is_name = token.token_type in Spark.Parser.ID_VAR_TOKENS and token.token_type is not _T.IS
    return token.token_type in values or is_name


def _literal(tokens: Sequence[Token], place: int, text: str) -> Refusal | None:
    """Literals of other dialects."""
    token = tokens[place]
    if token.token_type is _T.HEX_STRING and text[token.start] == "0":
        written = text[token.start : token.end + 1]
        return Refusal(f"{written} is no literal of Spark's", token.start, f"write X'{written[2:]}'")
    kind = tokens[place - 1] if place else token
    written = text[kind.start : kind.end + 1]
    is_typed = token.token_type is _T.STRING and kind.token_type in Spark.Parser.TYPE_TOKENS
    if is_typed and kind.token_type is not _T.NULL and written.upper() not in _LITERAL_TYPES:
        hint = "write DATE, TIME, TIMESTAMP, TIMESTAMP_NTZ or TIMESTAMP_LTZ before it, or use CAST"
        return Refusal(f"{written} is no type of a literal in Spark", kind.start, hint)
    return None


def _function(tokens: Sequence[Token], place: int, text: str) -> Refusal | None:
    """Functions that are read as one of Spark's under a name that Spark does not know."""
    name = tokens[place].text.upper()
    if name in _MISSING_FUNCTIONS and _type_at(tokens, place + 1) is _T.L_PAREN:
        hint = f"use {_MISSING_FUNCTIONS[name]}"
        return Refusal(f"Spark has no function {tokens[place].text}", tokens[place].start, hint)
    return None


def _type_at(tokens: Sequence[Token], place: int) -> TokenType | None:
    return tokens[place].token_type if place < len(tokens) else None


def _cast_type(tokens: Sequence[Token], place: int, text: str) -> Refusal | None:
    """Types that Spark has, in the forms that it accepts."""
    kind: Sequence[Token] | None = None
    if tokens[place].token_type is _T.DCOLON and text[tokens[place].start] == ":":  # not made of 5L
        kind = _after_colons(tokens, place + 1)
    elif tokens[place].text.upper() in _CASTS and _type_at(tokens, place + 1) is _T.L_PAREN:
        kind = _in_parentheses(tokens, place + 1)
    if not kind or _is_type(kind):
        return None
    written = text[kind[0].start : kind[-1].end + 1]
    if kind[-1].text.upper() == "ZONE":
        return Refusal(
            f"'{written}' is not understood", kind[0].start, "write TIMESTAMP_NTZ or TIMESTAMP_LTZ"
        )
    return Refusal(
        f"'{written}' is no type of Spark's", kind[0].start, "use one of Spark SQL's, for instance BIGINT"
    )


def _after_colons(tokens: Sequence[Token], place: int) -> Sequence[Token]:
    """The name after `::`, and its sizes."""
    end = place + 1
    if _type_at(tokens, end) is _T.L_PAREN:
        while end < len(tokens) and tokens[end].token_type is not _T.R_PAREN:
            end += 1
        end += 1
    return tokens[place:end]


def _in_parentheses(tokens: Sequence[Token], place: int) -> Sequence[Token] | None:
    """The text between the AS of a cast and its closing parenthesis."""
    depth, begin = 0, None
    for at in range(place, len(tokens)):
        token = tokens[at].token_type
        depth += (token in _OPENING) - (token in _CLOSING)
        if depth == 1 and token is _T.ALIAS:
            begin = at + 1
        elif depth == 0:
            return None if begin is None else tokens[begin:at]
    return None


def _is_type(kind: Sequence[Token]) -> bool:
    name, rest = kind[0].text.upper(), kind[1:]
    if kind[0].token_type is _T.IDENTIFIER:  # in backticks
        return False
    if name == "STRING" and rest and rest[0].token_type is _T.COLLATE:
        return True
    if name in _SIZED_TYPES:
        sizes = sum(token.token_type is _T.NUMBER for token in rest)
        return sizes in _SIZED_TYPES[name] and len(rest) == (2 * sizes + 1 if sizes else 0)
    return name in _OTHER_TYPES or (name in _PLAIN_TYPES and not rest)


def _hint(tokens: Sequence[Token], place: int, text: str) -> Refusal | None:
    """A comment that begins as a hint does: sqlglot drops it anywhere."""
    end = tokens[place + 1].start if place + 1 < len(tokens) else len(text)
    between = text[tokens[place].end + 1 : end]
    if "/*+" not in between:
        return None
    start = tokens[place].end + 1 + between.index("/*+")
    return Refusal("a hint is not allowed in a predicate", start, "remove it, or write a comment as /* … */")


CHECKS: tuple[_Check, ...] = (_comma, _null_test, _operator, _literal, _function, _cast_type, _hint)
