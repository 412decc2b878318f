"""Which columns queries use, read from their texts."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from rookery.maintain.policies.queried import queried_columns
from rookery.model import Field, TableName

NAME = TableName("prod", ("sales",), "orders")
FIELDS = [
    Field(number, name, "string", repeated=name.startswith("tags"))
    for number, name in enumerate(("id", "status", "Amount", "region", "addr.city", "day", "tags.element"), 1)
]


def columns(tmp_path: Path, text: str) -> set[str]:
    (tmp_path / "q.sql").write_text(text)
    return set(queried_columns([str(tmp_path / "q.sql")], NAME, FIELDS))


CASES = {
    "where": ("SELECT id FROM sales.orders WHERE status = 'a;b' AND amount > 3", {"status", "Amount"}),
    "results do not count": ("SELECT status FROM orders ORDER BY region", set()),
    "in full": ("SELECT 1 FROM prod.sales.orders WHERE region = 'e'", {"region"}),
    "qualified by the table": (
        "SELECT 1 FROM sales.orders WHERE sales.orders.id = 1 AND orders.day > 2",
        {"id", "day"},
    ),
    "another catalog": ("SELECT 1 FROM test.sales.orders WHERE region = 'e'", set()),
    "another table": ("SELECT 1 FROM sales.orders_old WHERE region = 'e'", set()),
    "aliases in any case": ("SELECT 1 FROM orders O JOIN x ON o.ID = x.status", {"id"}),
    "using": ("SELECT 1 FROM orders JOIN lines USING (id, nothing)", {"id"}),
    "group by": ("SELECT region, count(*) FROM orders GROUP BY region", {"region"}),
    "group by place": ("SELECT upper(region), status, count(*) FROM orders GROUP BY 1", {"region"}),
    "group by result": ("SELECT region AS r, count(*) FROM orders GROUP BY r", {"region"}),
    "in a struct": ("SELECT 1 FROM orders o WHERE o.addr.city = 'x'", {"addr.city"}),
    "in a struct, unqualified": ("SELECT 1 FROM orders WHERE addr.city = 'x'", {"addr.city"}),
    "no such column": ("SELECT 1 FROM orders o WHERE o.nope = 1 AND nope = 2", set()),
    "in a list": ("SELECT 1 FROM orders WHERE array_contains(tags, 'x')", set()),
    "common table": (
        "WITH c AS (SELECT id oid, * FROM orders) SELECT 1 FROM c JOIN x ON c.oid = x.a WHERE c.region = 1",
        {"id", "region"},
    ),
    "common table, renamed twice": (
        "WITH a AS (SELECT day AS d FROM orders), b AS (SELECT d AS e FROM a) SELECT 1 FROM b WHERE e > 1",
        {"day"},
    ),
    "common table of that name": (
        "WITH orders AS (SELECT * FROM other) SELECT 1 FROM orders WHERE region = 1",
        set(),
    ),
    "recursive": (
        "WITH RECURSIVE t AS (SELECT day FROM orders UNION ALL SELECT t.day FROM t) "
        "SELECT 1 FROM t WHERE t.day = 1 AND t.nope = 2",
        {"day"},
    ),
    "computed result": ("SELECT 1 FROM (SELECT id + 1 AS region FROM orders) s WHERE s.region = 3", set()),
    "union": (
        "SELECT 1 FROM (SELECT * FROM orders UNION ALL SELECT * FROM other) u WHERE u.status = 2",
        {"status"},
    ),
    "correlated": ("SELECT 1 FROM orders o WHERE EXISTS (SELECT 1 FROM x WHERE x.a = o.day)", {"day"}),
    "subquery of another": (
        "SELECT 1 FROM x WHERE x.region IN (SELECT id FROM orders WHERE day = 1)",
        {"day"},
    ),
    "alias of another": ("SELECT 1 FROM orders o JOIN x ON x.region = o.id", {"id"}),
    "create as": ("CREATE TABLE z AS SELECT * FROM sales.orders WHERE day > 3", {"day"}),
    "insert": ("INSERT INTO z SELECT * FROM sales.orders WHERE day > 3", {"day"}),
    "delete": ("DELETE FROM sales.orders WHERE status = 'z'", {"status"}),
    "update": ("UPDATE sales.orders SET day = 1 WHERE region = 'z'", {"region"}),
    "merge": ("MERGE INTO orders t USING u s ON t.id = s.region WHEN MATCHED THEN DELETE", {"id"}),
    "trino": ('SELECT 1 FROM "sales"."orders" WHERE "id" = 2', {"id"}),
    "trino's aliases": ('SELECT 1 FROM sales.orders o WHERE o."id" = 2 AND "day" > 3', {"id", "day"}),
    "spark's strings": ('SELECT 1 FROM orders WHERE id = "day"', {"id"}),
    "spark's alone": ('SELECT "a.b" FROM orders LATERAL VIEW explode(x) v AS `day` WHERE id = 1', {"id"}),
    "trino's own": (
        "SELECT 1 FROM orders WHERE id = 1 AND day = TIMESTAMP '2024-01-01 00:00 UTC' AT TIME ZONE 'x'",
        {"id", "day"},
    ),
    "comments": ("-- orders where id = 1\n;/* orders */;", set()),
}


@pytest.mark.parametrize("text, expected", CASES.values(), ids=CASES)
def test_columns_of(tmp_path: Path, text: str, expected: set[str], caplog: pytest.LogCaptureFixture) -> None:
    assert columns(tmp_path, text) == expected
    assert caplog.messages == []


def test_the_most_frequent_first(tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text(
        "SELECT 1 FROM orders WHERE day = 1 AND day = 2;SELECT 1 FROM orders WHERE region = 1 AND id = 2"
    )
    lines = [
        {"query": "SELECT 1 FROM orders WHERE region = 1", "user": "a"},
        {"sql": "SELECT 1 FROM orders WHERE region = 1"},
        {"sql": "SELECT 1 FROM orders WHERE status = 1; SELECT 2 FROM orders WHERE status = 2"},
    ]
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "b.jsonl").write_text("\n\n".join(map(json.dumps, lines)))
    found = queried_columns([f"{tmp_path}/*.sql", f"{tmp_path}/**/*.jsonl"], NAME, FIELDS)
    assert found == ("region", "status", "id", "day")


def test_what_cannot_be_read_is_passed_over(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a.sql").write_text(
        "SELECT FROM WHERE orders (((;\nSELECT 1 FROM orders WHERE id = 1;\nCALL orders('hunter2')"
    )
    (tmp_path / "b.jsonl").write_text(
        '{"query": 5}\nnonsense\n[]\n{"sql": "SELECT 1 FROM orders WHERE day=1"}'
    )
    (tmp_path / "c.sql").write_bytes(b"SELECT '\xff' FROM orders WHERE region = 'open")
    (tmp_path / "d.sql").mkdir()
    deep = "(" * 50_000
    (tmp_path / "e.sql").write_text(f"SELECT 1 FROM orders WHERE {deep}")
    with caplog.at_level(logging.WARNING):
        found = queried_columns([f"{tmp_path}/*", f"{tmp_path}/none*"], NAME, FIELDS)
    assert found == ("id", "day")
    assert [message.replace(str(tmp_path), "") for message in caplog.messages] == [
        "queries of '/d.sql' cannot be read: Is a directory",
        "no file of queries matches '/none*'",
        "6 of 9 queries could not be read",
    ]


def test_no_queries(tmp_path: Path) -> None:
    assert queried_columns([], NAME, FIELDS) == ()
