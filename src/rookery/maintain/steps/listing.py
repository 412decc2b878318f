"""Folders of a table, as they are listed for deletion."""

from __future__ import annotations

from rookery.io import list_folder
from rookery.io.identity import Listing
from rookery.sidecar import Store


def list_table(location: str, store: Store) -> Listing:
    """List a folder for deletion: what is a link, or lies behind one, is left out."""
    return Listing(location, list_folder(location, store.io_properties, links=False))
