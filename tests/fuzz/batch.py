"""A batch of inputs, the same for the same seed; and what is kept of an input that failed."""

from __future__ import annotations

import hashlib
import signal
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.fuzz.corpus import Seed
from tests.fuzz.drive import drive
from tests.fuzz.mutate import mutated

INPUTS_PER_BATCH = 500
THOROUGH_EVERY = 25
SECONDS_PER_INPUT = 5.0


class HangError(BaseException):
    """An input took too long. Not an `Exception`, so that nothing on the way swallows it."""


@dataclass(slots=True)
class Tally:
    """What came of some inputs."""

    inputs: int = 0
    outcomes: set[str] = field(default_factory=set)
    failures: list[tuple[bytes, str]] = field(default_factory=list)


@contextmanager
def watched() -> Iterator[None]:
    """Turn a hang into an error, and a warning too: a computation that overflows is wrong in silence."""

    def ring(number: int, frame: object) -> None:
        raise HangError(f"no end within {SECONDS_PER_INPUT} s")

    before = signal.signal(signal.SIGALRM, ring)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def inputs(corpus: Sequence[Seed], seed: str) -> Iterator[bytes]:
    """The inputs of the batch that *seed* names, always the same ones."""
    random = Random(seed)
    return (mutated(random, corpus) for _ in range(INPUTS_PER_BATCH))


def run_batch(
    corpus: Sequence[Seed], seed: str, tally: Tally, before: Callable[[bytes], object] | None = None
) -> None:
    """Drive a batch, within `watched`; *before* sees every input before it is driven."""
    for number, data in enumerate(inputs(corpus, seed)):
        if before is not None:
            before(data)
        signal.setitimer(signal.ITIMER_REAL, SECONDS_PER_INPUT)
        try:
            tally.outcomes |= drive(data, number % THOROUGH_EVERY == 0)
        except (Exception, HangError):  # noqa: BLE001 (whatever comes here is the find)
            signal.setitimer(signal.ITIMER_REAL, 0)
            tally.failures.append((data, traceback.format_exc()))
        tally.inputs += 1
    signal.setitimer(signal.ITIMER_REAL, 0)


def keep(folder: Path, data: bytes, account: str) -> Path:
    """Write an input that failed, and why, under a name that the input determines."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{hashlib.sha256(data).hexdigest()[:16]}.puffin"
    path.write_bytes(data)
    path.with_suffix(".txt").write_text(account)
    return path
