"""Keeping tables healthy: what is stale, what a policy wants, the pipeline, and its history."""
