"""What the tables of histories hold, and what may happen to them."""

from __future__ import annotations

PARTS = ("bucket(3, id)", "few", "truncate(1, word)", "months(day)", "flag")
ORDERS = ("id", "word DESC, id", "day", "amount", "bucket(4, id)", "truncate(2, name)", "x", "at")


def expressions(salt: int) -> dict[str, str]:
    """What the columns hold of a row by its number: few values and many, nulls, and some of them often."""
    h = f"abs(hash(id, {salt}))"
    return {
        "id": "id",
        "few": f"CAST(if({h} % 11 = 0, NULL, if({h} % 3 = 0, 0, {h} % 5)) AS int)",
        "many": f"CAST({h} % 900 AS int)",
        "big": f"if(id % 13 = 0, NULL, (id * 7919 + {salt}) * 1000003)",
        "word": f"if({h} % 9 = 0, NULL, if({h} % 7 = 0, '', concat('w', {h} % 6)))",
        "name": f"concat('a name with a long beginning ', {h} % 400)",
        "x": f"CASE {h} % 12 WHEN 0 THEN NULL WHEN 1 THEN -0D WHEN 2 THEN 0D WHEN 3 THEN double('NaN') "
        f"ELSE {h} % 50 / 4D END",
        "day": f"date_add(DATE '2024-01-10', CAST({h} % 70 AS int))",
        "at": f"timestamp_micros(1700000000000000 + id * 1000000 + {salt})",
        "amount": f"CAST({h} % 300 / 4 AS decimal(12, 2))",
        "flag": f"if({h} % 4 = 0, NULL, {h} % 2 = 0)",
    }


# The kinds of steps, and how frequent they are.
WEIGHTS = {
    "append": 6, "upsert": 3, "delete": 4, "update": 2, "delete_equal": 2, "change_columns": 4,
    "change_partitions": 2, "order": 1, "upgrade": 1, "compact": 2, "rewrite_more": 2, "roll_back": 2,
    "branch": 2, "expire": 2, "others_statistics": 3, "analyze": 6, "index": 1,
}  # fmt: skip
TYPES = {
    "id": "bigint", "few": "int", "many": "int", "big": "bigint", "word": "string", "name": "string",
    "x": "double", "day": "date", "at": "timestamp", "amount": "decimal(12, 2)", "flag": "boolean",
}  # fmt: skip
