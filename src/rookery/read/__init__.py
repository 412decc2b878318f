"""Rows out of the files that survive: Arrow, with no Spark."""
