"""What a query's text says of its tables: only what is certain is counted."""

from __future__ import annotations

import pytest

from rookery.api.sql_tables import SelectTables, read_conditions, selects

COLUMNS = {"a": {"id", "k", "x"}, "b": {"id", "k", "y"}, "c": {"id", "z"}}


def conditions(text: str) -> tuple[dict[str, list[str]], set[str]]:
    """Return the conjuncts that count for each table, and the edges by which keys may cut, as text."""
    found: dict[str, list[str]] = {}
    edges: set[str] = set()
    for select in selects(text.replace("…", "SELECT * FROM")):
        _resolve(select)
        edges |= {
            f"{edge.source.alias}.{edge.source_column}>{edge.target.alias}.{edge.target_column}"
            for edge in read_conditions(select)
        }
        for use in select.uses:
            found.setdefault(use.alias, []).extend(part.sql() for part in use.conditions)
            found[use.alias] += [f"?{part.sql()}" for part in use.wheres]
    return found, edges


def _resolve(select: SelectTables) -> None:
    for use in select.uses:
        use.columns = frozenset(COLUMNS.get(use.node.name, ()))


@pytest.mark.parametrize(
    "text, counted",
    [
        ("… a WHERE x = 1 AND (k > 2 OR k < 0)", {"a": ["x = 1", "k > 2 OR k < 0"]}),
        ("… a WHERE x = 1 OR k = 2", {"a": ["x = 1 OR k = 2"]}),
        ("… a t WHERE t.x = 1", {"t": ["t.x = 1"]}),
        ("… a, b WHERE x = 1 AND y = 2", {"a": ["x = 1"], "b": ["y = 2"]}),
        ("… a, b WHERE k = 1", {"a": [], "b": []}),  # of which, Spark would ask too
        ("… a JOIN b ON a.k = b.k AND b.y = 2", {"a": [], "b": ["b.y = 2"]}),
        ("… a LEFT JOIN b ON a.k = b.k AND b.y = 2 AND a.x = 1", {"a": [], "b": ["b.y = 2"]}),
        ("… a RIGHT JOIN b ON a.k = b.k AND b.y = 2 AND a.x = 1", {"a": ["a.x = 1"], "b": []}),
        ("… a FULL JOIN b ON a.k = b.k AND b.y = 2 WHERE x = 1", {"a": ["?x = 1"], "b": []}),
        ("… a LEFT JOIN b ON a.k = b.k WHERE b.y = 2 AND x = 1", {"a": ["x = 1"], "b": ["?b.y = 2"]}),
        ("… a LEFT SEMI JOIN b ON a.k = b.k AND b.y = 2 AND a.x = 1", {"a": ["a.x = 1"], "b": ["b.y = 2"]}),
        ("… a LEFT ANTI JOIN b ON a.k = b.k AND b.y = 2 AND a.x = 1", {"a": [], "b": ["b.y = 2"]}),
        ("… a WHERE x = (SELECT max(y) FROM b WHERE b.y < 5)", {"a": [], "b": ["b.y < 5"]}),
        ("… a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND y = 2)", {"a": [], "b": ["y = 2"]}),
        ("WITH a AS (… b WHERE y = 1) … a WHERE x = 1", {"b": ["y = 1"]}),
        ("… a TABLESAMPLE (5 ROWS) WHERE x = 1", {}),
        ("… a VERSION AS OF 7 WHERE x = 1", {}),
        ("… a t(p, q, r) WHERE p = 1", {}),
        ("… a NATURAL JOIN b WHERE x = 1", {"a": ["?x = 1"], "b": []}),
        ("… a WHERE x = 1 UNION ALL … a WHERE x = 2", {"a": ["x = 1", "x = 2"]}),
        ("… a JOIN (… b) s ON a.k = s.k WHERE x = 1 AND a.x = 2", {"a": ["a.x = 2"], "b": []}),
        ("INSERT INTO a … b WHERE y = 1", {}),
        ("… a WHERE x = 1; SELECT 2", {}),
        ("SELEKT", {}),
    ],
)  # fmt: skip
def test_conditions(text: str, counted: dict[str, list[str]]) -> None:
    assert conditions(text)[0] == counted


@pytest.mark.parametrize(
    "text, expected",
    [
        ("… a JOIN b ON a.k = b.k", {"a.k>b.k", "b.k>a.k"}),
        ("… a, b WHERE a.k = b.k", {"a.k>b.k", "b.k>a.k"}),
        ("… a, b WHERE x = y", {"a.x>b.y", "b.y>a.x"}),
        ("… a LEFT JOIN b ON a.k = b.k", {"a.k>b.k"}),
        ("… a RIGHT JOIN b ON a.k = b.k", {"b.k>a.k"}),
        ("… a FULL JOIN b ON a.k = b.k", set()),
        ("… a LEFT SEMI JOIN b ON a.k = b.k", {"a.k>b.k", "b.k>a.k"}),
        ("… a LEFT ANTI JOIN b ON a.k = b.k", {"a.k>b.k"}),
        ("… a LEFT JOIN b ON a.k = b.k, c WHERE b.id = c.id", {"a.k>b.k"}),
        ("… a JOIN b ON a.k = b.k + 1", set()),
        ("… a JOIN b ON a.k = b.k OR a.id = b.id", set()),
        ("… a JOIN b USING (k)", set()),
    ],
)
def test_edges(text: str, expected: set[str]) -> None:
    assert conditions(text)[1] == expected


def test_a_column_named_in_full_keeps_its_table() -> None:
    assert selects("SELECT db.a.x FROM db.a WHERE db.a.x = 1") == []
    assert len(selects("SELECT a.x FROM db.a WHERE a.x = 1")) == 1


def test_where_a_name_stands() -> None:
    text = "SELECT * FROM `lake` . db.`my ``t` WHERE x = 1"
    (select,) = selects(text)
    start, end = select.uses[0].span()
    assert text[start:end] == "`lake` . db.`my ``t`"
