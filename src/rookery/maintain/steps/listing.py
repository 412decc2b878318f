"""Folders of a table, as they are listed for deletion."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from rookery.io import list_folder
from rookery.io.identity import Listing
from rookery.model import StorageError
from rookery.sidecar import Store

Listings: TypeAlias = Mapping[str, Listing | StorageError]
"""Folders by their locations: their contents, or why they cannot be listed."""


def list_table(location: str, store: Store) -> Listing:
    """List a folder for deletion: links, and what they lead to, are skipped."""
    return Listing(location, list_folder(location, store.io_properties, links=False))


def list_folders(locations: Iterable[str], store: Store) -> Listings:
    """List folders; an error in one does not affect the others."""
    listings: dict[str, Listing | StorageError] = {}
    for location in locations:
        try:
            listings[location.rstrip("/")] = list_table(location, store)
        except StorageError as error:
            listings[location.rstrip("/")] = error
    return listings
