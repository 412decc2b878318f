"""Names that suggest a reference, and names that do not."""

from __future__ import annotations

import pytest

from rookery.discover.describe import common_prefix
from rookery.discover.names import ENDS_SO, NOTHING, RELATED, SAME, name_evidence
from tests.discover.columns import column


@pytest.mark.parametrize(
    "child, parent, evidence",
    [
        ("lineitem.l_orderkey", "orders.o_orderkey", SAME),
        ("orders.customer_id", "customers.id", SAME),
        ("orders.customerId", "customer.ID", SAME),
        ("orders.billing_customer_id", "db.customers.id", SAME),
        ("orders.customerid", "customers.id", SAME),
        ("store_sales.ss_sold_date_sk", "date_dim.d_date_sk", ENDS_SO),
        ("events.user", "users.id", RELATED),
        ("orders.id", "customers.id", NOTHING),
        ("lineitem.l_linenumber", "orders.o_orderkey", NOTHING),
        ("lineitem.l_partkey", "customer.c_custkey", NOTHING),
        ("a.x", "b.y", NOTHING),
        ("a.__", "b.-", NOTHING),
    ],
)
def test_evidence(child: str, parent: str, evidence: float) -> None:
    prefixes = {"lineitem": "l_", "orders": "o_", "customer": "c_", "store_sales": "ss_", "date_dim": "d_"}
    columns = []
    for name in (child, parent):
        table, _, own = name.rpartition(".")
        columns.append(column(table, own, [1], column_prefix=prefixes.get(table, "")))
    assert name_evidence(*columns) == evidence


def test_prefixes() -> None:
    assert common_prefix(["ps_partkey", "ps_suppkey", "ps_availqty"]) == "ps_"
    assert common_prefix(["order_id", "order_date", "city"]) == ""
    assert common_prefix(["aa_b_c", "aa_b_d", "aa_"]) == "aa_"
    assert common_prefix([]) == ""
