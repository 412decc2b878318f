"""A mutation fuzzer for everything that reads bytes: `python -m tests.fuzz --seconds 60`."""
