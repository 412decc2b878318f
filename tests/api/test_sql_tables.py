"""What a query's text says of its tables: only what is certain is counted."""

from __future__ import annotations

import pytest

from rookery.api.sql_tables import QueryTables, query_tables, read_conditions

COLUMNS = {"a": {"id", "k", "x", "s"}, "b": {"id", "k", "y"}, "c": {"id", "z"}}


def tables_of(text: str) -> QueryTables:
    found = query_tables(text.replace("…", "SELECT * FROM"))
    assert found is not None
    return found


def conditions(text: str) -> tuple[dict[str, list[str]], set[str]]:
    """Return the conjuncts that count for each table, and the edges by which keys may cut, as text."""
    found: dict[str, list[str]] = {}
    edges: set[str] = set()
    for select in tables_of(text).selects:
        for use in select.uses:
            use.columns = frozenset(COLUMNS.get(use.node.name, ()))
        edges |= {
            f"{edge.source.alias}.{edge.source_column}>{edge.target.alias}.{edge.target_column}"
            for edge in read_conditions(select)
        }
        for use in select.uses:
            found.setdefault(use.alias, []).extend(part.sql() for part in use.conditions)
    return found, edges


@pytest.mark.parametrize(
    "text, counted",
    [
        ("… a WHERE x = 1 AND (k > 2 OR k < 0)", {"a": ["x = 1", "k > 2 OR k < 0"]}),
        ("… a WHERE x = 1 OR k = 2", {"a": ["x = 1 OR k = 2"]}),
        ("… a t WHERE t.x = 1", {"t": ["t.x = 1"]}),
        ("… a WHERE s.f = 1 AND a.s.f = 2", {"a": ["s.f = 1", "a.s.f = 2"]}),
        ("… a, b WHERE x = 1 AND y = 2", {"a": ["x = 1"], "b": ["y = 2"]}),
        ("… a, b WHERE k = 1", {"a": [], "b": []}),  # of which, Spark would ask too
        ("… a, b WHERE b.x = 1", {"a": [], "b": []}),  # a field x of a column b, if any
        ("… a, nobody n WHERE x = 1 AND a.k = 2", {"a": ["a.k = 2"], "n": []}),
        ("… a JOIN b ON a.k = b.k AND b.y = 2 AND a.x = 1", {"a": ["a.x = 1"], "b": ["b.y = 2"]}),
        ("… a LEFT JOIN b ON a.k = b.k AND b.y = 2 AND a.x = 1", {"a": [], "b": ["b.y = 2"]}),
        ("… a LEFT JOIN b ON a.k = b.k WHERE b.y = 2 AND x = 1", {"a": ["x = 1"], "b": []}),
        ("… a LEFT JOIN b ON a.k = b.k JOIN c ON b.y IS NULL AND c.z = 1",
         {"a": [], "b": [], "c": ["c.z = 1"]}),
        ("… a LEFT SEMI JOIN b ON a.k = b.k AND b.y = 2 AND a.x = 1", {"a": [], "b": ["b.y = 2"]}),
        ("… a LEFT ANTI JOIN b ON a.k = b.k AND b.y = 2 AND a.x = 1", {"a": [], "b": ["b.y = 2"]}),
        ("… a JOIN b USING (k) WHERE k = 1 AND y = 2", {"a": [], "b": ["y = 2"]}),
        ("… a WHERE x = (SELECT max(y) FROM b WHERE b.y < 5)", {"a": [], "b": ["b.y < 5"]}),
        ("… a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND y = 2)", {"a": [], "b": ["y = 2"]}),
        ("WITH a AS (… b WHERE y = 1) … a WHERE x = 1", {"b": ["y = 1"]}),
        ("… a WHERE x = 1 UNION ALL … a WHERE x = 2", {"a": ["x = 1", "x = 2"]}),
        ("… a JOIN (… b) s ON a.k = s.k WHERE x = 1 AND a.x = 2", {"a": ["a.x = 2"], "b": []}),
        ("… (… a LIMIT 5) t WHERE x = 1", {"a": []}),
        ("… a x, a x WHERE x.k = 1", {"x": [], "x": []}),  # noqa: F601
    ],
)  # fmt: skip
def test_conditions(text: str, counted: dict[str, list[str]]) -> None:
    assert conditions(text)[0] == counted


@pytest.mark.parametrize(
    "text",
    [
        "… a TABLESAMPLE (5 ROWS) WHERE x = 1",
        "… a VERSION AS OF 7 WHERE x = 1",
        "… a TIMESTAMP AS OF '2024-01-01' WHERE x = 1",
        "… a t(p, q, r) WHERE p = 1",
        "… a NATURAL JOIN b WHERE x = 1",
        "… a RIGHT JOIN b ON a.k = b.k WHERE b.y = 1",
        "… a FULL JOIN b ON a.k = b.k WHERE x = 1",
        "… a CROSS JOIN LATERAL (SELECT a.x + 1 AS n) WHERE x = 1",
        "… a LATERAL VIEW explode(array(1)) e AS n WHERE x = 1",
        "… a PIVOT (sum(x) FOR k IN (1, 2)) WHERE id = 1",
        "… a JOIN (b JOIN c ON b.id = c.id) ON a.id = b.id WHERE x = 1",
        "SELECT /*+ BROADCAST(a) */ * FROM a WHERE x = 1",
        "SELECT _file FROM a WHERE x = 1",
        "SELECT a._pos FROM a WHERE x = 1",
        "SELECT _partition.k FROM a WHERE x = 1",
        "SELECT `_row_id` FROM a WHERE x = 1",
        "SELECT * FROM a WHERE x = 1 AND _spec_id = 0",
        "SELECT db.a.id FROM a WHERE x = 1",
        "SELECT db.a.* FROM db.a WHERE x = 1",
        "SELECT lake.db.a.s.f FROM lake.db.a WHERE x = 1",
        "FROM a |> LIMIT 10 |> WHERE x = 5",
        "SELECT * FROM a |> WHERE x = 5",
        "FROM a SELECT * WHERE x = 1",
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r JOIN a ON n = x) … a WHERE x = 1",
    ],
)  # fmt: skip
def test_forms_that_are_left_to_spark(text: str) -> None:
    found = query_tables(text.replace("…", "SELECT * FROM"))
    if found is not None:
        assert not any(use.parts[-1] == "a" for select in found.selects for use in select.uses)
        assert any(parts[-1] == "a" for parts in found.elsewhere)


@pytest.mark.parametrize("text", ["INSERT INTO a … b WHERE y = 1", "… a WHERE x = 1; SELECT 2", "SELEKT", ""])
def test_what_is_no_query(text: str) -> None:
    assert query_tables(text.replace("…", "SELECT * FROM")) is None


def test_uses_that_are_not_understood_are_told() -> None:
    found = tables_of("… a WHERE x = 1 AND k IN (SELECT k FROM lake.db.a VERSION AS OF 3)")
    assert [use.parts for select in found.selects for use in select.uses] == [["a"]]
    assert found.elsewhere == [["lake", "db", "a"]]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("… a JOIN b ON a.k = b.k", {"a.k>b.k", "b.k>a.k"}),
        ("… a, b WHERE a.k = b.k", {"a.k>b.k", "b.k>a.k"}),
        ("… a, b WHERE x = y", {"a.x>b.y", "b.y>a.x"}),
        ("… a LEFT JOIN b ON a.k = b.k", set()),
        ("… a LEFT SEMI JOIN b ON a.k = b.k", set()),
        ("… a LEFT ANTI JOIN b ON a.k = b.k", set()),
        ("… a LEFT JOIN b ON a.k = b.k, c WHERE b.id = c.id", set()),
        ("… a LEFT JOIN b ON a.k = b.k, c WHERE a.id = c.id", {"a.id>c.id", "c.id>a.id"}),
        ("… a JOIN b ON a.k = b.k + 1", set()),
        ("… a JOIN b ON a.k = b.k OR a.id = b.id", set()),
        ("… a JOIN b USING (k)", set()),
        ("… a JOIN b ON a.s.k = b.k", set()),
        ("… a JOIN b ON s.k = b.k", set()),
        ("… a JOIN b ON a.s['k'] = b.k", set()),
        ("… a JOIN b ON a.k <=> b.k", set()),
    ],
)
def test_edges(text: str, expected: set[str]) -> None:
    assert conditions(text)[1] == expected


def test_where_a_name_stands() -> None:
    text = "SELECT '🦀', * FROM `lake` . db.`my ``t` WHERE x = 1"
    (select,) = tables_of(text).selects
    start, end = select.uses[0].span()
    assert text[start:end] == "`lake` . db.`my ``t`"
