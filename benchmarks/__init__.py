"""Rookery measured beside its peers: `python -m benchmarks [names…] [--quick]`."""
