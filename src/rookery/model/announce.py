"""Messages about what takes long, for people who wait for it; a library prints none by itself."""

from __future__ import annotations

import logging

LOGGER = "rookery.progress"
_log = logging.getLogger(LOGGER)


def announce(message: str) -> None:
    """Log that something begins that may take seconds or more."""
    _log.info("%s", message)
