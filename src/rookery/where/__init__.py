"""Predicates: SQL text and PyIceberg expressions, bound to columns with Spark's semantics."""
