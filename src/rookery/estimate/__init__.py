"""Estimates: how many rows match a predicate, from states, segments and metadata alone.

No data file is read, and no Spark is started. `rookery.estimate.selection` is the entry point.
"""
