"""The version of this package, and how it signs what it writes."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("rookery")
except PackageNotFoundError:  # run from a source tree that was never installed
    __version__ = "0.0.0"

CREATED_BY = f"Rookery version {__version__}"
