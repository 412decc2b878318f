"""Runs: recorded, leased, watched, measured and told of."""
