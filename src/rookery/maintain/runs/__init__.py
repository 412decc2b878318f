"""Runs: history, leases, the watch loop, metrics and alerts."""
