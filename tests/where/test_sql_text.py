"""Predicates in SQL's text: what they are bound to, what is refused, and that NOT is pushed down rightly."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rookery.model import (
    Always,
    And,
    Compare,
    Field,
    In,
    IsNaN,
    IsNull,
    Like,
    Never,
    Op,
    Opaque,
    Or,
    Predicate,
    UsageError,
)
from rookery.model.predicate import ALWAYS, NEVER, all_of, any_of
from rookery.where.literals import single
from rookery.where.patterns import begins_with, like
from rookery.where.sql_text import parse_predicate
from rookery.where.text_values import NAN
from rookery.where.to_sql import spell
from tests.where.naive import matches, ordered

N = Field(1, "n", "int")
X = Field(2, "x", "double")
S = Field(3, "s", "string")
FLAG = Field(4, "flag", "boolean")
NAME = Field(5, "user.Name", "string")
DAY = Field(6, "day", "date")
ODD = Field(7, "odd.name", "int", path=("odd.name",))
L = Field(8, "l", "long")
PRICE = Field(9, "price", "decimal(12, 2)")
INSIDE = (
    Field(10, "tags.element", "string", repeated=True),
    Field(11, "map.key", "string", repeated=True),
    Field(12, "map.value", "int", repeated=True),
)
TICK = Field(13, "a`b", "int", path=("a`b",))
FIELDS = (N, X, S, FLAG, NAME, DAY, ODD, L, PRICE, *INSIDE, TICK)

CASES: list[tuple[str, Predicate]] = [
    ("n = 5", Compare(N, Op.EQ, 5)),
    ("N == 5", Compare(N, Op.EQ, 5)),
    ("5 < n", Compare(N, Op.GT, 5)),
    ("n <> -5", Compare(N, Op.NE, -5)),
    ("(n) >= (+5)", Compare(N, Op.GE, 5)),
    ("n = 5L or n = 6S or n = 7Y", any_of(*(Compare(N, Op.EQ, v) for v in (5, 6, 7)))),
    ("n <= 5 * 60", Compare(N, Op.LE, 300)),
    ("l = -9223372036854775808", Compare(L, Op.EQ, -(2**63))),
    ("n = CAST('5' AS INT) AND l = CAST(5 AS BIGINT)", And((Compare(N, Op.EQ, 5), Compare(L, Op.EQ, 5)))),
    ("n = TRY_CAST('five' AS INT)", NEVER),
    ("n = CAST(1.7 AS INT)", Compare(N, Op.EQ, 1)),
    ("x = 1e3", Compare(X, Op.EQ, 1000.0)),
    (
        "l = 1e18",
        Opaque("l = 1e18", "Spark compares the column as a double, which has too few digits for it"),
    ),
    ("x = 1.5D OR x = 2.5F", Or((Compare(X, Op.EQ, 1.5), Compare(X, Op.EQ, 2.5)))),
    ("x = 0.1F", Compare(X, Op.EQ, single(0.1))),
    ("x = CAST(1.5 AS DOUBLE)", Compare(X, Op.EQ, 1.5)),
    ("x = CAST('NaN' AS DOUBLE)", Compare(X, Op.EQ, NAN)),
    ("x < float('inf')", Compare(X, Op.LT, float("inf"))),
    ("price = 1.5BD", Compare(PRICE, Op.EQ, 150)),
    ("price BETWEEN 0.06 - 0.01 AND 0.06 + 0.01", And((Compare(PRICE, Op.GE, 5), Compare(PRICE, Op.LE, 7)))),
    ("price = CAST('1.005' AS DECIMAL(10, 2))", Compare(PRICE, Op.EQ, 101)),
    ("day = DATE '1970-01-02'", Compare(DAY, Op.EQ, 1)),
    (
        "day = date('1970-01-02') OR day = to_date('1970-01-03')",
        Or((Compare(DAY, Op.EQ, 1), Compare(DAY, Op.EQ, 2))),
    ),
    ("day = CAST('1970-01-02' AS DATE)", Compare(DAY, Op.EQ, 1)),
    ("day < TIMESTAMP '1970-01-02 12:00'", Compare(DAY, Op.LE, 1)),
    ("day <= DATE '1970-05-01' - INTERVAL '90' DAY", Compare(DAY, Op.LE, 30)),
    ("day = DATE '1970-01-31' + INTERVAL 1 MONTH", Compare(DAY, Op.EQ, 58)),
    ("n IN (1, 2, NULL, 1)", In(N, (1, 2))),
    ("n IN (1)", Compare(N, Op.EQ, 1)),
    ("n NOT IN (1, 2)", In(N, (1, 2), negated=True)),
    ("NOT n IN (1, NULL)", NEVER),
    ("n BETWEEN 1 AND 5", And((Compare(N, Op.GE, 1), Compare(N, Op.LE, 5)))),
    ("n NOT BETWEEN 1 AND 5", Or((Compare(N, Op.LT, 1), Compare(N, Op.GT, 5)))),
    ("n NOT BETWEEN 1 AND NULL", Compare(N, Op.LT, 1)),
    ("n IS NULL", IsNull(N)),
    ("n IS NOT NULL", IsNull(N, negated=True)),
    ("isnull(n) OR isnotnull(x)", Or((IsNull(N), IsNull(X, negated=True)))),
    ("n = NULL", NEVER),
    ("NOT n = NULL", NEVER),
    ("n <=> 5", Compare(N, Op.EQ, 5)),
    ("n <=> NULL", IsNull(N)),
    ("NOT n <=> NULL", IsNull(N, negated=True)),
    ("NOT (n <=> 5)", Or((Compare(N, Op.NE, 5), IsNull(N)))),
    ("n IS DISTINCT FROM 1.5", ALWAYS),
    ("flag", Compare(FLAG, Op.EQ, True)),
    ("NOT flag", Compare(FLAG, Op.EQ, False)),
    ("!flag", Compare(FLAG, Op.EQ, False)),
    ("flag = 'true'", Compare(FLAG, Op.EQ, True)),
    ("flag IS FALSE", Compare(FLAG, Op.EQ, False)),
    ("flag IS NOT TRUE", Or((Compare(FLAG, Op.EQ, False), IsNull(FLAG)))),
    ("(n > 5) IS TRUE", Compare(N, Op.GT, 5)),
    ("isnan(x)", IsNaN(X)),
    ("NOT isnan(x)", IsNaN(X, negated=True)),
    ("s LIKE 'abc'", Compare(S, Op.EQ, "abc")),
    ("s NOT LIKE 'abc'", Compare(S, Op.NE, "abc")),
    ("s LIKE 'abc%'", Like(S, "abc")),
    ("s LIKE 'a.c%%'", Like(S, "a.c")),
    ("s NOT LIKE 'abc%'", Like(S, "abc", negated=True)),
    ("s LIKE '%'", IsNull(S, negated=True)),
    ("s LIKE 'a_b%c'", Like(S, "a", "(?s:a.b.*c)")),
    ("s LIKE '%.x'", Like(S, "", r"(?s:.*\.x)", by_bytes=True)),
    (r"s LIKE '50\%%'", Like(S, "50%")),
    ("s LIKE '50/%/_%' ESCAPE '/'", Like(S, "50%_")),
    ("s NOT LIKE '/_x' ESCAPE '/'", Compare(S, Op.NE, "_x")),
    ("s LIKE NULL", NEVER),
    ("startswith(s, 'a%')", Like(S, "a%")),
    ("NOT startswith(s, '')", NEVER),
    ("s = 'it''s' OR s = 'x' 'y'", Or((Compare(S, Op.EQ, "it's"), Compare(S, Op.EQ, "xy")))),
    (
        r"s = 'tab\t \u0041\\ \q \U0001F600' AND s != r'\n'",
        And((Compare(S, Op.EQ, "tab\t A\\ q 😀"), Compare(S, Op.NE, r"\n"))),
    ),
    ('s = "double"', Compare(S, Op.EQ, "double")),
    ("user.name = 'Ann'", Compare(NAME, Op.EQ, "Ann")),
    ("`User`.`NAME` = 'Ann'", Compare(NAME, Op.EQ, "Ann")),
    ("`odd.name` = 5 AND `a``b` = 6", And((Compare(ODD, Op.EQ, 5), Compare(TICK, Op.EQ, 6)))),
    ("TRUE", ALWAYS),
    ("NOT TRUE", NEVER),
    ("NULL", NEVER),
    ("NOT NULL", NEVER),
    ("1 = 1", ALWAYS),
    ("1 = 2 OR n = 5", Compare(N, Op.EQ, 5)),
    ("n = 5 -- why", Compare(N, Op.EQ, 5)),
    (
        "(n IS NULL) IS NULL",
        Opaque("(n IS NULL) IS NULL", "only plain columns can be tested for null"),
    ),
    ("n = l", Opaque("n = l", "only a column and a literal are compared")),
    ("NOT n = l", Opaque("NOT (n = l)", "only a column and a literal are compared")),
    ("n + 1 = 5", Opaque("n + 1 = 5", "only a column and a literal are compared")),
    ("s ILIKE 'a%'", Opaque("s ILIKE 'a%'", "ILike is not understood")),
    ("s RLIKE 'a'", Opaque("s RLIKE 'a'", "REGEXP_LIKE is not understood")),
    ("n LIKE '5%'", Opaque("n LIKE '5%'", "LIKE takes a string column and a pattern")),
    ("n IN (SELECT 1)", Opaque("n IN (SELECT 1)", "subqueries are left to Spark")),
    ("n IN (1, l)", Opaque("n IN (1, l)", "IN takes a column and literals only")),
    ("user IS NULL", Opaque("user IS NULL", "only plain columns can be tested for null")),
    ("tags IS NOT NULL", Opaque("NOT (tags IS NULL)", "only plain columns can be tested for null")),
    ("map.k = 1", Opaque("map.k = 1", "what a map holds under a key is left to Spark")),
    ("tags[0] = 'x'", Opaque("tags[0] = 'x'", "only a column and a literal are compared")),
]


@pytest.mark.parametrize(("text", "expected"), CASES, ids=[text for text, _ in CASES])
def test_examples(text: str, expected: Predicate) -> None:
    assert parse_predicate(text, FIELDS) == expected


@pytest.mark.parametrize(("text", "expected"), CASES, ids=[text for text, _ in CASES])
def test_examples_round_trip(text: str, expected: Predicate) -> None:
    assert parse_predicate(spell(expected), FIELDS) == expected


REFUSED = [
    ("", "the predicate is empty"),
    ("  \n", "the predicate is empty"),
    ("m = 5", "no column 'm' at column 1"),
    ("n = 5 AND\n  ab = 1", "no column 'ab' at line 2, column 3"),
    ("upper(z) = 'X'", "no column 'z' at column 7"),
    ("user = 5", "column 'user' is a struct, which cannot be compared at column 1"),
    ("tags = 'x'", "column 'tags' is a list, which cannot be compared at column 1"),
    (
        "tags.element = 'x'",
        "column 'tags.element' is in a list or map, where a row has any number of values at column 1",
    ),
    (
        "map.key IS NULL",
        "column 'map.key' is in a list or map, where a row has any number of values at column 1",
    ),
    (
        "s = 5",
        "type mismatch: column 's' is of type string and cannot be compared with a literal of type integer",
    ),
    ("n", "type mismatch: column 'n' is of type int and cannot be compared with a literal of type boolean"),
    (
        "n IS TRUE",
        "type mismatch: column 'n' is of type int and cannot be compared with a literal of type boolean",
    ),
    ("n = '1.5'", "type mismatch: column 'n' is of type int and cannot be compared with '1.5'"),
    ("n = CAST('x' AS INT)", "'x' is no INT"),
    ("n = CAST(300 AS TINYINT)", "'300' is no TINYINT"),
    ("x = 1e400", "1e400 is out of the range of doubles"),
    ("5", "a literal of type integer is no condition"),
    ("n = ", "the predicate cannot be read at line 1, column 3: something is missing at '='"),
    ("n = 'x", "the predicate cannot be read at line 1, column 5: ' is not closed"),
    ("n = 1)", "the predicate cannot be read at line 1, column 6: unexpected ')'"),
    ("(n = 1", "the predicate cannot be read at line 1, column 6: expected ')' at '1'"),
    ("n = 1;\nn = 2", "the predicate holds several statements"),
    ("SELECT 1", "'SELECT 1' is not a predicate"),
    ("n = 1 ORDER BY n", "the predicate cannot be read at line 1, column 7: unexpected 'ORDER BY'"),
    ("DROP TABLE t", "'DROP TABLE t' is not a predicate"),
    ("n IN ()", "IN has an empty list"),
    (r"s LIKE 'a\\b'", r"LIKE pattern 'a\b': the escape character is before 'b'"),
    ("s LIKE 'a/' ESCAPE '/'", "LIKE pattern 'a/': the escape character is before nothing"),
    ("(" * 10_000 + "n = 1" + ")" * 10_000, "the predicate is nested too deeply"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=[text[:40] for text, _ in REFUSED])
def test_refused(text: str, message: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError) as caught:
        parse_predicate(text, FIELDS)
    assert str(caught.value) == message
    assert caught.value.hint
    assert capfd.readouterr() == ("", "")


def test_hints_list_what_is_there() -> None:
    with pytest.raises(UsageError) as caught:
        parse_predicate("user.nam = 'x'", FIELDS)
    assert caught.value.hint == "did you mean user.Name?"
    with pytest.raises(UsageError) as caught:
        parse_predicate("zzzzz = 'x'", FIELDS)
    assert caught.value.hint == "columns are n, x, s, flag, user.Name, day, `odd.name`, l, …"


def test_ambiguous_names() -> None:
    fields = (Field(1, "a", "int"), Field(2, "A", "int"), Field(3, "b", "int"))
    with pytest.raises(UsageError, match="column 'a' is ambiguous at column 11"):
        parse_predicate("b = 1 AND a = 1", fields)
    assert parse_predicate("b = 1", fields) == Compare(fields[2], Op.EQ, 1)


def test_deep_and_long_texts() -> None:
    assert parse_predicate("(" * 100 + "n = 1" + ")" * 100, FIELDS) == Compare(N, Op.EQ, 1)
    chain = parse_predicate(" OR ".join(f"n = {number}" for number in range(3000)), FIELDS)
    assert isinstance(chain, Or)
    assert len(chain.parts) == 3000
    keys = ", ".join(f"'k{number}'" for number in range(20_000))
    listed = parse_predicate(f"s IN ({keys})", FIELDS)
    assert isinstance(listed, In)
    assert len(listed.values) == 20_000


def test_short_texts_are_quick() -> None:
    best = min(_timed(f"s = 'key {number}'") for number in range(50))
    assert best < 0.001


def _timed(text: str) -> float:
    start = time.perf_counter()
    parse_predicate(text, FIELDS)
    return time.perf_counter() - start


@given(st.text(max_size=30) | st.text("ns x=<>()'\"`,.%_INORT 15-\\;", max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(UsageError):
        parse_predicate(text, FIELDS)


# A reference of our own: SQL's text beside what three-valued logic says of it, with no NOT pushed anywhere.

Row = dict[str, Any]


@dataclass(frozen=True)
class Asked:
    text: str
    truth: Callable[[Row], bool | None]


def _known(column: str, ask: Callable[[Any], bool]) -> Callable[[Row], bool | None]:
    return lambda row: None if row[column] is None else ask(row[column])


def _and(*truths: bool | None) -> bool | None:
    return False if False in truths else None if None in truths else True


def _not(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


SMALL = st.integers(-3, 3)
DOUBLES = st.sampled_from([-1.5, 0.0, 0.5, 2.0, float("nan"), float("inf")])
WORDS = st.text("ab_%", max_size=3)


def _spelled_double(value: float) -> str:
    return f"CAST('{value}' AS DOUBLE)"


@st.composite
def atoms(draw: st.DrawFn) -> Asked:
    n, m, x = draw(SMALL), draw(SMALL), draw(DOUBLES)
    word = draw(WORDS)
    null = draw(st.booleans())
    listed = f"n IN ({n}, {m}{', NULL' if null else ''})"
    like_word = word.replace("_", "\\\\_").replace("%", "\\\\%")
    return draw(
        st.sampled_from(
            [
                Asked(f"n < {n}", _known("n", lambda v: v < n)),
                Asked(f"{n} <= n", _known("n", lambda v: n <= v)),
                Asked(f"n = {n}.5", _known("n", lambda v: False)),
                Asked(f"n > {n}.5", _known("n", lambda v: v > float(f"{n}.5"))),
                Asked("n = NULL", lambda row: None),
                Asked(f"n <=> {n}", lambda row: row["n"] == n),
                Asked("n <=> NULL", lambda row: row["n"] is None),
                Asked("n IS NULL", lambda row: row["n"] is None),
                Asked(listed, _known("n", lambda v: v in (n, m) or (None if null else False))),
                Asked(
                    f"n BETWEEN {n} AND {'NULL' if null else m}",
                    lambda row: _and(
                        None if row["n"] is None else row["n"] >= n,
                        None if row["n"] is None or null else row["n"] <= m,
                    ),
                ),
                Asked(f"x >= {_spelled_double(x)}", _known("x", lambda v: ordered(v) >= ordered(x))),
                Asked(f"x != {_spelled_double(x)}", _known("x", lambda v: ordered(v) != ordered(x))),
                Asked("isnan(x)", lambda row: row["x"] is not None and row["x"] != row["x"]),
                Asked("flag", lambda row: row["flag"]),
                Asked("flag IS TRUE", lambda row: row["flag"] is True),
                Asked("flag IS NOT FALSE", lambda row: row["flag"] is not False),
                Asked(f"s = '{word}'", _known("s", lambda v: v == word)),
                Asked(f"s LIKE '{like_word}%'", _known("s", lambda v: v.startswith(word))),
                Asked(f"s LIKE '%{like_word}'", _known("s", lambda v: v.endswith(word))),
                Asked("s NOT LIKE '_'", _known("s", lambda v: len(v) != 1)),
                Asked("TRUE", lambda row: True),
                Asked("NULL", lambda row: None),
            ]
        )
    )


def _joined(children: st.SearchStrategy[Asked]) -> st.SearchStrategy[Asked]:
    def negation(one: Asked) -> Asked:
        return Asked(f"NOT ({one.text})", lambda row: _not(one.truth(row)))

    def conjunction(pair: tuple[Asked, Asked]) -> Asked:
        a, b = pair
        return Asked(f"({a.text}) AND ({b.text})", lambda row: _and(a.truth(row), b.truth(row)))

    def disjunction(pair: tuple[Asked, Asked]) -> Asked:
        a, b = pair
        truth = lambda row: _not(_and(_not(a.truth(row)), _not(b.truth(row))))  # noqa: E731
        return Asked(f"({a.text}) OR ({b.text})", truth)

    pairs = st.tuples(children, children)
    return children.map(negation) | pairs.map(conjunction) | pairs.map(disjunction)


ROWS = st.fixed_dictionaries(
    {
        "n": st.none() | SMALL,
        "x": st.none() | DOUBLES,
        "s": st.none() | WORDS,
        "flag": st.none() | st.booleans(),
    }
)


@given(st.recursive(atoms(), _joined, max_leaves=8), st.lists(ROWS, min_size=1, max_size=8))
def test_not_is_pushed_down_rightly(asked: Asked, rows: list[Row]) -> None:
    predicate = parse_predicate(asked.text, FIELDS)
    assert [matches(predicate, row) for row in rows] == [asked.truth(row) is True for row in rows]


# Spelling and reading again.

DAYS = st.integers(-719_162, 2_932_896)
MICROS = st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32).map(lambda v: NAN if v != v else v + 0.0),
    "double": st.floats().map(lambda v: NAN if v != v else v + 0.0),
    "decimal(12, 2)": st.integers(-(10**12) + 1, 10**12 - 1),
    "decimal(38, 0)": st.integers(-(10**38) + 1, 10**38 - 1),
    "date": DAYS,
    "time": st.integers(0, 86_399_999_999),
    "timestamp": MICROS,
    "timestamptz": MICROS,
    "timestamp_ns": st.integers(-(2**63), 2**63 - 1),
    "timestamptz_ns": st.integers(-(2**63), 2**63 - 1),
    "string": TEXTS,
    "binary": st.binary(max_size=4),
    "fixed[2]": st.binary(min_size=2, max_size=2),
    "uuid": st.binary(min_size=16, max_size=16),
    "boolean": st.booleans(),
}
TYPED = {name: Field(number, f"of {name}", name) for number, name in enumerate(VALUES)}
PARTS = [("top",), ("a.b", "c"), ("`",), ("select", "from")]
NAMED = [Field(100 + at, ".".join(parts), "string", path=parts) for at, parts in enumerate(PARTS)]


@st.composite
def leaves(draw: st.DrawFn) -> Predicate:
    name = draw(st.sampled_from(list(VALUES)))
    field, values = TYPED[name], VALUES[name]
    words = draw(st.sampled_from([TYPED["string"], *NAMED]))
    negated = draw(st.booleans())
    several = draw(st.lists(values, min_size=2, max_size=4, unique=True))
    return draw(
        st.sampled_from(
            [
                Compare(field, draw(st.sampled_from(list(Op))), several[0]),
                In(field, tuple(several), negated),
                IsNull(field, negated),
                IsNaN(TYPED["double"], negated),
                like(words, draw(st.text("ab.%_*", max_size=5)), negated=negated),
                begins_with(words, draw(TEXTS), negated=negated),
                Opaque("UPPER(`top`) = 'X'", "only a column and a literal are compared"),
            ]
        )
    )


def _trees(children: st.SearchStrategy[Predicate]) -> st.SearchStrategy[Predicate]:
    several = st.lists(children, min_size=2, max_size=3)
    return several.map(lambda parts: all_of(*parts)) | several.map(lambda parts: any_of(*parts))


@given(st.recursive(leaves(), _trees, max_leaves=6))
def test_spelling_is_read_back(predicate: Predicate) -> None:
    assert parse_predicate(spell(predicate), [*TYPED.values(), *NAMED]) == predicate


def test_constants_are_spelled() -> None:
    assert (spell(Always()), spell(Never())) == ("TRUE", "FALSE")
    assert spell(Like(S, "", "a|b")) == "`s` RLIKE '^(?:a|b)$'"
    assert spell(Compare(DAY, Op.LT, 3_000_000)) == "`day` < DATE '+10183-09-21'"
