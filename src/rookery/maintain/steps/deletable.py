"""Which files of a folder may be deleted: those that no known table, state or fork may need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray

from rookery.io import Listed, shown
from rookery.io.identity import Listing
from rookery.maintain.policies.policy import Policy
from rookery.maintain.steps.listing import list_folders, list_table
from rookery.maintain.steps.other_tables import DELETION_SECONDS
from rookery.maintain.steps.outside import not_its_own
from rookery.maintain.steps.ownership import Claims, claims
from rookery.maintain.steps.reachable_files import named
from rookery.maintain.steps.step import MaintainedTable, PlanInput, TableView
from rookery.maintain.survey import survey
from rookery.model import RookeryError, UsageError, counted
from rookery.sidecar import Store
from rookery.tables.iceberg import IcebergTable


@dataclass(frozen=True, slots=True, eq=False)
class Deletable:
    """The files that may be deleted, and the number and bytes of all files examined with them."""

    files: tuple[Listed, ...] = ()
    of_files: int = 0
    of_bytes: int = 0
    notes: tuple[str, ...] = ()  # why others were left
    folder: str = ""


def view_again(
    maintained: MaintainedTable, folders: Callable[[IcebergTable, Policy], Sequence[str]]
) -> TableView:
    """Return a table as it is at this moment, loaded after its *folders* were listed.

    The other tables of the catalog are those of this moment too, as far as they can be: loading hundreds of
    them again for each of hundreds would take longer than it helps.
    """
    table, store = maintained.open()
    if maintained.other_tables is not None:
        maintained.other_tables.refresh(DELETION_SECONDS)
    listings = list_folders(folders(table, maintained.policy), store)
    return maintained.view(survey(*maintained.open()), listings=listings)


def deletable(
    view: PlanInput, listing: Listing, wanted: NDArray[np.bool_], age: timedelta, *, outside: bool = False
) -> Deletable:
    """Return those of the *wanted* files of a folder that may be deleted, or refuse.

    Each file that the table names must be found in the listing, or be proved to be elsewhere. Then, if
    anything is left to delete, the claims of metadata files in the folder are read, and of all other tables
    of the catalog. A folder *outside* of the table's own must be its alone, even if forced: else nothing
    in it may be deleted, which is a note, not an error.
    """
    if not wanted.any():
        return Deletable()
    table, store = view.table, view.survey.store
    required, optional = listing.account(view.named.required), listing.account(view.named.optional)
    absent = absent_again(store, listing, required.absent)
    _check_accounted(table, (*absent, *required.doubtful, *optional.doubtful))
    wanted = wanted & ~required.matched & ~optional.matched
    if not wanted.any():
        return Deletable()
    if outside and (why := not_its_own(view, listing.location)) is not None:
        return _left(table, listing, wanted, why)
    others = np.zeros(len(wanted), bool)
    notes: list[str] = []
    for claim in (claims(table, store, listing, view.now), _of_other_tables(view, listing)):
        if outside and claim.shared is not None:
            return _left(table, listing, wanted, claim.shared)
        if claim.refusal is not None and not view.forced:
            raise claim.refusal
        inside = listing.inside(folder for folder in claim.folders if not listing.is_folder(folder))
        claimed = listing.account(claim.names).matched
        if outside and claim.of_others and (claimed & ~inside).any():
            return _left(table, listing, wanted, "another table of the catalog has files there")
        others |= inside | claimed
        if claim.since_ms is not None and not view.forced:
            late = _written_since(listing, claim.since_ms / 1000 - age.total_seconds()) & wanted & ~others
            notes += [_note(int(late.sum()))] if late.any() else []
            wanted = wanted & ~late
    to_delete = np.flatnonzero(wanted & ~others)
    looked_at = [listing.files[number] for number in np.flatnonzero(~others)]
    return Deletable(
        files=tuple(listing.files[number] for number in to_delete),
        of_files=len(looked_at),
        of_bytes=sum(file.size for file in looked_at),
        notes=tuple(notes),
        folder=listing.location,
    )


def _left(table: IcebergTable, listing: Listing, wanted: NDArray[np.bool_], why: str) -> Deletable:
    files = f"{counted(int(wanted.sum()), 'file')} under {shown(listing.location)}"
    return Deletable(notes=(f"{files} kept, which {table.name} does not reference: {why}",))


def _note(count: int) -> str:
    return f"{counted(count, 'file')} left: a commit that the catalog does not know may have begun a fork"


def _written_since(listing: Listing, moment: float) -> NDArray[np.bool_]:
    return np.array([file.modified >= moment for file in listing.files], bool)


def _of_other_tables(view: PlanInput, listing: Listing) -> Claims:
    """Read what other tables of the catalog claim; if that fails, nothing is deleted without --yes."""
    hint = "check that the catalog can be reached; --yes deletes what no metadata in the folder references"
    if view.other_tables is None:
        return Claims(refusal=UsageError("the catalog's other tables are not known", hint=hint))
    try:
        return view.other_tables.claims(view.table, listing)
    except RookeryError as error:
        message = f"the catalog's other tables are not known: {error.message}"
        return Claims(refusal=UsageError(message, hint=hint))


def _check_accounted(table: IcebergTable, unaccounted: Sequence[str]) -> None:
    """Refuse where files that the table names are neither listed nor proved to be elsewhere."""
    if unaccounted:
        raise UsageError(
            f"{counted(len(unaccounted), 'file')} that {table.name} references cannot be found, "
            f"{shown(unaccounted[0])} among them: a file in its folder may be the same under another name",
            hint="is a link or a mount missing here? Nothing is deleted until all referenced files are found",
        )


def absent_again(store: Store, listing: Listing, absent: tuple[str, ...]) -> tuple[str, ...]:
    """Look again for files that a listing lacks: others have committed since."""
    return list_table(listing.location, store).account(absent).absent if absent else ()


def still_absent(
    maintained: MaintainedTable, store: Store, listing: Listing, absent: tuple[str, ...]
) -> tuple[str, ...]:
    """Return which of the files that a listing lacks are lost: others commit and expire meanwhile."""
    absent = absent_again(store, listing, absent)
    if absent:
        still = set(named(maintained.open()[0]).required)
        absent = tuple(name for name in absent if name in still)
    return absent
