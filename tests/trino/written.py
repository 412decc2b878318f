"""Tables that Trino writes, with columns of every type that it has for Iceberg."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.trino.client import Trino

ROWS = 400
UUIDS = "concat('00000000-0000-4000-8000-', lpad(CAST(i % 90 AS varchar), 12, '0'))"


@dataclass(frozen=True)
class Column:
    """A column: its type, what it holds of row `i`, and conditions in Spark's words and in Trino's."""

    type: str
    expression: str
    conditions: Sequence[tuple[str, str]]


def _same(*conditions: str) -> tuple[tuple[str, str], ...]:
    """Conditions that both engines read alike."""
    return tuple((each, each) for each in conditions)


# Spark's NaN equals itself and is above all numbers; Trino's is neither.
COLUMNS = {
    "id": Column(
        "bigint", "i", _same("id < 37", "id BETWEEN 100 AND 103", "id IN (7, 399, 1000)", "id <> 5")
    ),
    "n": Column("integer", "i % 17", _same("n = 3", "n IS NULL", "n IS NOT NULL", "n >= 15", "NOT n < 14")),
    "b": Column("boolean", "i % 3 = 0", _same("b", "NOT b", "b IS NULL")),
    "f": Column(
        "real",
        "CASE i % 40 WHEN 3 THEN nan() WHEN 4 THEN -0e0 WHEN 5 THEN infinity() ELSE (i % 50) / 4e0 END",
        (("f > 11", "f > 11 OR is_nan(f)"), ("f = 0", "f = 0"), ("f = float('NaN')", "is_nan(f)")),
    ),
    "x": Column(
        "double",
        "CASE i % 40 WHEN 3 THEN nan() WHEN 4 THEN -0e0 WHEN 5 THEN -infinity() ELSE i / 4e0 END",
        (
            ("x >= 97.5", "x >= 97.5 OR is_nan(x)"),
            ("x < 0", "x < 0"),
            ("isnan(x)", "is_nan(x)"),
            ("x = 0", "x = 0"),
        ),
    ),
    "c": Column(
        "decimal(7, 2)", "CAST(i AS decimal(7, 2)) / 4", _same("c = 2.25", "c > 99.5", "c IN (0.25, 1.00)")
    ),
    "d": Column(
        "decimal(30, 4)",
        "CAST(i AS decimal(20, 4)) * DECIMAL '1000000000000.0001' - 5",
        _same("d < 0", "d IS NULL"),
    ),
    "day": Column(
        "date",
        "date_add('day', i % 120 - 60, DATE '1970-01-01')",
        _same("day = DATE '1969-12-25'", "day > DATE '1970-02-20'"),
    ),
    "t": Column(
        "time(6)", "TIME '00:00:00.000001' + i * INTERVAL '37' SECOND", _same("t IS NULL", "t IS NOT NULL")
    ),
    # Trino and Spark read an ORC timestamp before 1970 differently when less than a millisecond follows
    # the whole second (trinodb/trino issue 22511): the values here are not of that kind.
    "at": Column(
        "timestamp(6)",
        "date_add('second', i * 3601, TIMESTAMP '1969-12-31 23:00:00.500007')",
        (("at < TIMESTAMP_NTZ '1970-01-01 00:00:00'", "at < TIMESTAMP '1970-01-01 00:00:00'"),),
    ),
    "z": Column(
        "timestamp(6) with time zone",
        "date_add('second', i * 3601, TIMESTAMP '2024-03-31 00:30:00.000007 Europe/Berlin')",
        (("z >= TIMESTAMP '2024-04-15 00:00:00'", "z >= TIMESTAMP '2024-04-15 00:00:00 UTC'"),),
    ),
    "s": Column(
        "varchar",
        "CASE i % 20 WHEN 4 THEN '' WHEN 5 THEN 'é\U0001f600' ELSE 'a text with a long beginning ' || "
        "CAST(i % 130 AS varchar) END",
        _same(
            "s = ''", "s LIKE 'a text with a long beginning 12%'", "s > 'b'", "s IN ('é\U0001f600', 'none')"
        ),
    ),
    "v": Column(
        "varbinary",
        "to_big_endian_32(CAST(i % 300 AS integer))",
        (("v = X'00000007'", "v = X'00000007'"), ("v > X'00000120'", "v > X'00000120'")),
    ),
    "u": Column(
        "uuid",
        f"CAST({UUIDS} AS uuid)",
        tuple((f"u = '{each}'", f"u = UUID '{each}'") for each in ["00000000-0000-4000-8000-000000000033"]),
    ),
    "l": Column("array(integer)", "IF(i % 7 = 1, ARRAY[], ARRAY[CAST(i AS integer), NULL])", ()),
    "m": Column("map(varchar, bigint)", "MAP(ARRAY['k'], ARRAY[i])", ()),
    "r": Column(
        "row(x integer, y varchar)",
        "CAST(ROW(IF(i % 4 = 0, NULL, i % 60), CAST(i AS varchar)) AS row(x integer, y varchar))",
        _same("r.x = 7", "r.x IS NULL", "r.y > '39'"),
    ),
}
FOREIGN_TO_SPARK = ("t",)
SHARED = [name for name in COLUMNS if name not in FOREIGN_TO_SPARK]


def write(trino: Trino, name: str, names: Sequence[str], options: str) -> None:
    """Write files in turn, so that bounds differ, with deletes of rows and a change of partitions between."""
    listed = ", ".join(f'"{each}" {COLUMNS[each].type}' for each in names)
    trino.sql(f"CREATE TABLE {name} ({listed}) WITH ({options})")
    for start in range(0, ROWS, ROWS // 4):
        chosen = ", ".join(
            f"CAST({COLUMNS[each].expression if each == 'id' else _nullable(each)} AS {COLUMNS[each].type})"
            for each in names
        )
        source = f"UNNEST(sequence(BIGINT '{start}', {start + ROWS // 4 - 1})) AS q(i)"
        trino.sql(f"INSERT INTO {name} SELECT {chosen} FROM {source}")
        if start == ROWS // 4:
            trino.sql(f"ALTER TABLE {name} SET PROPERTIES partitioning = ARRAY['bucket(id, 2)', 'n']")
        if start == ROWS // 2:
            trino.sql(f"ALTER TABLE {name} SET PROPERTIES partitioning = ARRAY['truncate(s, 3)']")
    trino.sql(f"DELETE FROM {name} WHERE id % 10 = 7")
    trino.sql(f"UPDATE {name} SET n = 16 WHERE id % 100 = 51")


def _nullable(name: str) -> str:
    column = COLUMNS[name]
    return f"IF(i % 23 = {list(COLUMNS).index(name)}, NULL, {column.expression})"
