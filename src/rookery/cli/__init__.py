"""The command line."""

from rookery.cli.app import app, main

__all__ = ["app", "main"]
