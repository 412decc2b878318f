"""TPC-H: its 22 queries, for the tables that `benchmarks.tpch.data` makes."""

from benchmarks.tpch.queries import QUERIES

__all__ = ["QUERIES"]
