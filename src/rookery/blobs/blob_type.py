"""What a module declares about its blob type."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from rookery.model import IN_MEMORY, Check, CheckOutcome, FormatError
from rookery.puffin import BlobMetadata
from rookery.puffin.verify import PayloadCheck

Summary = Mapping[str, object]
Summarize = Callable[[BlobMetadata, bytes, str], Summary]
"""Given a blob's description, its payload and the name of its file, what is worth showing."""


@dataclass(frozen=True, slots=True)
class BlobType:
    """A blob type: its name, what it holds, where its format is described, and what can be done with it.

    `is_carried` states whether a blob means something in the statistics file of a later snapshot.
    """

    name: str
    holds: str
    page: str  # below docs/formats
    summarize: Summarize
    check_payload: PayloadCheck | None = None
    is_carried: bool = False

    def check(self, subject: str, blob: BlobMetadata, payload: bytes) -> Iterator[Check]:
        """Check a payload: by the type's own rules, or else whether it can be decoded."""
        if self.check_payload is not None:
            yield from self.check_payload(subject, blob, payload)
            return
        try:
            self.summarize(blob, payload, IN_MEMORY.file)
        except FormatError as error:
            yield Check(
                subject=subject,
                rule="payload can be decoded",
                outcome=CheckOutcome.FINDING,
                detail=str(error),
                hint=error.hint,
            )
        else:
            yield Check(subject, "payload can be decoded", CheckOutcome.OK)
