"""Spark SQL's text to sqlglot's expressions, with positions in errors."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TypeVar

from sqlglot import exp
from sqlglot.dialects import Spark
from sqlglot.errors import ErrorLevel, ParseError, SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from rookery.model.errors import UsageError
from rookery.where.spark_syntax import check_chains, check_syntax

_DEEP = 10_000  # frames; sqlglot uses some twenty for a pair of parentheses
_DEEPER = threading.Lock()
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([01][0-7]{2})|(.))", re.DOTALL)
_LETTERS = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
# Comments that for Spark continue after the line, or end at a carriage return.
_ODD_COMMENT = re.compile(r"--[^\n]*?(?:\\\r?(?:\n|$)|\r(?!\n))")
_FORMAT = re.compile("\x1b\\[[0-9;]*m")
_T = TypeVar("_T")


def parse_expression(text: str) -> exp.Expression:
    """Parse one boolean expression."""
    if not text.strip():
        raise UsageError("the predicate is empty", hint="write, for instance, id = 5 AND day >= '2024-01-31'")
    try:
        parsed = with_depth(lambda: _parse(text))
    except SqlglotError as error:
        raise _unparsable(text, error) from None
    statements = [statement for statement in parsed if statement is not None]
    if len(statements) != 1:
        raise UsageError(
            "the predicate holds several statements", hint="join conditions by AND, without semicolons"
        )
    statement = statements[0]
    if isinstance(statement, exp.Query) or not isinstance(statement, exp.Condition):
        raise UsageError(f"'{text[:60]}' is not a predicate", hint="give only the condition, as after WHERE")
    with_depth(lambda: check_chains(statement))
    return statement


def spark_tokens(text: str) -> list[Token]:
    """Split SQL into tokens, with strings as Spark 4 reads them: escapes, and '' for a quote."""
    if _ODD_COMMENT.search(text):
        raise UsageError(
            "a comment ends here where it does not end for Spark, or the other way round",
            hint="remove comments that contain a carriage return, or end with a backslash",
        )
    dialect = Spark()
    tokens: list[Token] = []
    for token in dialect.tokenize(text):
        last = tokens[-1] if tokens else None
        if token.token_type is TokenType.STRING:
            value = _unescaped(text[token.start + 1 : token.end])
            quote = text[token.start]
            if last is not None and last.token_type is TokenType.STRING and last.end + 1 == token.start:
                if text[last.end] == quote:
                    tokens.pop()
                    value = last.text + quote + value
                    token = _string(token, value, last.start)
            elif value != token.text:
                token = _string(token, value, token.start)
        tokens.append(token)
    return tokens


def called_names(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the names before a parenthesis, and whether each is a plain name, not a keyword."""
    try:
        tokens = spark_tokens(text)
    except SqlglotError:
        return  # the parser raises the error
    for token, after in pairwise(tokens):
        if after.token_type is TokenType.L_PAREN and (token.text[:1].isalpha() or token.text[:1] == "_"):
            yield token.text, token.token_type in (TokenType.VAR, TokenType.IDENTIFIER)


def _string(token: Token, value: str, start: int) -> Token:
    return Token(TokenType.STRING, value, token.line, token.col, start, token.end, token.comments)


def _unescaped(raw: str) -> str:
    r"""Return the text of a string literal.

    >>> _unescaped(r"it\'s \u0041\101 50\%")
    "it's AA 50\\%"
    """
    if "\\" not in raw:
        return raw
    text = _ESCAPE.sub(_letter, raw)
    # Escapes may encode a character as two surrogates; one alone is invalid: Spark writes a question mark.
    text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return text.encode("utf-8", "replace").decode()


def _letter(match: re.Match[str]) -> str:
    short, long, octal, letter = match.groups()
    if letter is not None:
        return _LETTERS.get(letter, letter)
    code = int(octal, 8) if octal else int(short or long, 16)
    return chr(code) if code <= sys.maxunicode else "?"


def _parse(text: str) -> list[exp.Expression | None]:
    tokens = spark_tokens(text)
    statements = list(Spark().parser(error_level=ErrorLevel.IMMEDIATE).parse(tokens, text))
    check_syntax(tokens, text)
    return statements


def with_depth(run: Callable[[], _T]) -> _T:
    """Call a function that walks an expression; again with a higher recursion limit, if it was too deep."""
    try:
        return run()
    except RecursionError:
        pass
    with _DEEPER:  # the limit is one for all threads
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(max(limit, _DEEP))
        try:
            return run()
        except RecursionError:
            raise UsageError(
                "the predicate is nested too deeply", hint="remove parentheses, or use IN for long lists"
            ) from None
        finally:
            sys.setrecursionlimit(limit)


def _unparsable(text: str, error: SqlglotError) -> UsageError:
    what, line, column = "not understood", 1, 1
    if isinstance(error, ParseError) and error.errors:
        first = error.errors[0]
        line, end = int(first.get("line") or 1), int(first.get("col") or 1)
        token = _FORMAT.sub("", str(first.get("highlight") or ""))
        column = max(end - len(token) + 1, 1)
        description = str(first.get("description"))
        what = f"unexpected '{token}'" if token else "unexpected end"
        if "Required keyword" in description:
            what = f"something is missing at '{token}'"
        elif description.startswith("Expecting"):
            what = f"expected '{description[10:].strip('. ')}' at '{token}'"
    elif (quote := _open_quote(text)) is not None:
        line, column, what = *line_column(text, quote), f"{text[quote]} is not closed"
    return UsageError(
        f"the predicate cannot be read at line {line}, column {column}: {what}",
        hint="write a condition in Spark SQL, as after WHERE; strings are in 'quotes'",
    )


def _open_quote(text: str) -> int | None:
    opened, position = None, 0
    while position < len(text):
        letter = text[position]
        if opened is not None and letter == "\\" and text[opened] != "`":
            position += 1
        elif opened is None and letter in "'\"`":
            opened = position
        elif opened is not None and letter == text[opened]:
            opened = None
        position += 1
    return opened


def line_column(text: str, offset: int) -> tuple[int, int]:
    """Return line and column of an offset, counted from one."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)
