"""TPC-H queries with a filter on orders or customers that is selective: `{filter}` is what was changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

ORDER_KEYS = 6_000_000  # at scale factor 1; a quarter of these numbers are taken
RANGE = 0.001  # of them
DAYS = 7  # of one clerk among a thousand: a handful of orders

Q3 = """
SELECT l_orderkey, sum(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate, o_shippriority
FROM bench.tpch.customer, bench.tpch.orders, bench.tpch.lineitem
WHERE {filter} AND c_custkey = o_custkey AND l_orderkey = o_orderkey
  AND o_orderdate < DATE '1998-03-15' AND l_shipdate > DATE '1992-03-15'
GROUP BY l_orderkey, o_orderdate, o_shippriority
ORDER BY revenue DESC, o_orderdate LIMIT 10
"""
Q5 = """
SELECT n_name, sum(l_extendedprice * (1 - l_discount)) AS revenue
FROM bench.tpch.customer, bench.tpch.orders, bench.tpch.lineitem, bench.tpch.supplier, bench.tpch.nation,
  bench.tpch.region
WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey
  AND c_nationkey = s_nationkey AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey
  AND r_name = 'ASIA' AND {filter}
GROUP BY n_name ORDER BY revenue DESC
"""
Q10 = """
SELECT c_custkey, c_name, sum(l_extendedprice * (1 - l_discount)) AS revenue, c_acctbal, n_name
FROM bench.tpch.customer, bench.tpch.orders, bench.tpch.lineitem, bench.tpch.nation
WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND {filter}
  AND l_returnflag = 'R' AND c_nationkey = n_nationkey
GROUP BY c_custkey, c_name, c_acctbal, n_name ORDER BY revenue DESC LIMIT 20
"""
Q12 = """
SELECT l_shipmode,
  sum(CASE WHEN o_orderpriority IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END) AS high_line_count,
  sum(CASE WHEN o_orderpriority NOT IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END) AS low_line_count
FROM bench.tpch.orders, bench.tpch.lineitem
WHERE o_orderkey = l_orderkey AND {filter} AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate
GROUP BY l_shipmode ORDER BY l_shipmode
"""
Q18 = """
SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity) AS quantity
FROM bench.tpch.customer, bench.tpch.orders, bench.tpch.lineitem
WHERE o_orderkey IN (
    SELECT l_orderkey FROM bench.tpch.lineitem GROUP BY l_orderkey HAVING sum(l_quantity) > 100
  )
  AND {filter} AND c_custkey = o_custkey AND o_orderkey = l_orderkey
GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice
ORDER BY o_totalprice DESC, o_orderdate LIMIT 100
"""


@dataclass(frozen=True)
class Query:
    """A query, and what was changed in it."""

    name: str
    filter: str
    text: str


def queries(scale: float) -> Iterator[Query]:
    """The queries for data of a scale. A range of the join's own key, Spark carries over by itself."""
    customer = f"c_custkey = {12_346 if scale >= 1 else 121}"  # those that three divides have no order
    since = date(1995, 3, 1)
    until = since + timedelta(days=int(DAYS / scale))
    clerk = f"o_clerk = 'Clerk#000000007' AND o_orderdate BETWEEN DATE '{since}' AND DATE '{until}'"
    low = int(ORDER_KEYS * scale / 3)
    orders = f"o_orderkey BETWEEN {low} AND {low + int(ORDER_KEYS * scale * RANGE)}"
    for name, text, said in (
        ("Q3", Q3, customer),
        ("Q5", Q5, clerk),
        ("Q10", Q10, customer),
        ("Q12", Q12, clerk),
        ("Q12", Q12, orders),
        ("Q18, above 100 for 300", Q18, customer),
    ):
        yield Query(name, said, text.format(filter=said))
