"""Two ways of doing the same, timed side by side: both warm, in turns, the best of several rounds."""

from __future__ import annotations

import gc
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

from rich.console import Console
from rich.table import Table

PACKAGES = ("rookery", "pyiceberg", "pyroaring", "zstandard", "lz4", "msgspec", "numpy", "zlib-ng")
WARMING = 5  # questions that are asked before any is timed
HEAD = ("what", "data", "rookery", "peer", "peer's time", "ratio", "target", "reached")


T = TypeVar("T")


@dataclass(frozen=True)
class Effort:
    """How much is done: the rounds, how long a round lasts at least, and the size of the data."""

    rounds: int
    seconds: float
    scale: float
    data: Path = Path("build/bench")  # what is slow to make is kept here between runs

    @classmethod
    def full(cls) -> Effort:
        return cls(rounds=15, seconds=0.01, scale=1)

    @classmethod
    def quick(cls) -> Effort:
        return cls(rounds=2, seconds=0, scale=0.01)

    def of(self, count: int) -> int:
        """Return *count*, made smaller where less effort is asked for."""
        return max(int(count * self.scale), 4)


@dataclass(frozen=True)
class Row:
    """One comparison. A ratio above 1 says that Rookery is the faster one."""

    what: str
    data: str
    rookery_seconds: float
    peer: str
    peer_seconds: float
    target: float | None

    @property
    def ratio(self) -> float:
        return self.peer_seconds / self.rookery_seconds

    @property
    def reached(self) -> bool | None:
        return None if self.target is None else self.ratio >= self.target

    def cells(self) -> tuple[str, ...]:
        said = {None: "", True: "yes", False: "no"}[self.reached]
        target = "" if self.target is None else f"≥ {self.target:.3g}"
        times = (spell(self.rookery_seconds), spell(self.peer_seconds))
        return self.what, self.data, times[0], self.peer, times[1], f"{self.ratio:.2f}", target, said

    def document(self) -> dict[str, Any]:
        return asdict(self) | {"ratio": round(self.ratio, 4), "reached": self.reached}


@dataclass(frozen=True)
class Measure:
    """A number with a limit of its own, with or without a peer's beside it: bytes, errors, absolute times."""

    what: str
    data: str
    value: float
    unit: str
    limit: float | None = None
    peer: str = ""
    peer_value: float | None = None
    series: tuple[float, ...] = ()  # the numbers of a curve; they are in the JSON alone

    @property
    def reached(self) -> bool | None:
        return None if self.limit is None else self.value <= self.limit

    def cells(self) -> tuple[str, ...]:
        theirs = "" if self.peer_value is None else amount(self.peer_value, self.unit)
        limit = "" if self.limit is None else f"≤ {amount(self.limit, self.unit)}"
        said = {None: "", True: "yes", False: "no"}[self.reached]
        return self.what, self.data, amount(self.value, self.unit), self.peer, theirs, "", limit, said

    def document(self) -> dict[str, Any]:
        document = asdict(self) | {"reached": self.reached}
        if not self.series:
            del document["series"]
        return document


def spell(seconds: float) -> str:
    """Say a time with three digits."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def amount(value: float, unit: str) -> str:
    """Say a number of something: seconds, bytes, or a share."""
    if unit == "s":
        return spell(value) if value else "0 s"
    if unit == "share":
        return f"{value:.2%}"
    for name, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if unit == "bytes" and value >= size:
            return f"{value / size:.4g} {name}"
    return f"{value:g} {unit}"


def compare(
    what: str,
    data: str,
    ours: Callable[[], object],
    peer: str,
    theirs: Callable[[], object],
    effort: Effort,
    *,
    target: float | None = None,
    peer_rounds: int | None = None,
) -> Row:
    """Time *ours* and *theirs* in turns. *peer_rounds* spares a peer that takes very long."""
    loops = (_loops(ours, effort), _loops(theirs, effort))  # which warms both
    best = [float("inf"), float("inf")]
    limits = (effort.rounds, effort.rounds if peer_rounds is None else min(peer_rounds, effort.rounds))
    gc.disable()
    try:
        for turn in range(effort.rounds):
            for side, deed in enumerate((ours, theirs)):
                if turn < limits[side]:
                    best[side] = min(best[side], _time(deed, loops[side]) / loops[side])
    finally:
        gc.enable()
    return Row(what, data, best[0], peer, best[1], target)


def compare_asking(
    what: str,
    data: str,
    ours: Callable[[T], object],
    peer: str,
    theirs: Callable[[T], object],
    questions: Sequence[T],
    *,
    target: float | None = None,
    peer_rounds: int | None = None,
) -> Iterator[Row]:
    """Time both, in turns, on questions of which none is asked twice: a row of medians, one of the best."""
    warming, asked = questions[:WARMING], questions[WARMING:]
    limits = (len(asked), len(asked) if peer_rounds is None else min(peer_rounds, len(asked)))
    times: tuple[list[float], list[float]] = ([], [])
    for side, deed in enumerate((ours, theirs)):
        for question in warming[: limits[side]]:
            deed(question)
    gc.disable()
    try:
        for turn, question in enumerate(asked):
            for side, deed in enumerate((ours, theirs)):
                if turn < limits[side]:
                    started = time.perf_counter()
                    deed(question)
                    times[side].append(time.perf_counter() - started)
    finally:
        gc.enable()
    counts = "" if limits[0] == limits[1] else f" and {limits[1]}"
    middle, best = (tuple(each(side) for side in times) for each in (median, min))
    yield Row(what, f"{data}, median of {limits[0]}{counts}", middle[0], peer, middle[1], target)
    yield Row(what, f"{data}, best of {limits[0]}{counts}", best[0], peer, best[1], None)


def _time(deed: Callable[[], object], loops: int) -> float:
    start = time.perf_counter()
    for _ in range(loops):
        deed()
    return time.perf_counter() - start


def _loops(deed: Callable[[], object], effort: Effort) -> int:
    """How often in a row makes a round long enough for the clock; if it has no length, nothing is warmed."""
    if not effort.seconds:
        return 1
    deed()
    once = _time(deed, 1)
    return max(1, min(1000, int(effort.seconds / max(once, 1e-9))))


@dataclass(frozen=True)
class Report:
    """The rows of a benchmark, and what they were measured with."""

    name: str
    title: str
    quick: bool
    python: str
    cpus: int
    packages: dict[str, str]
    rows: tuple[Row | Measure, ...]

    @classmethod
    def of(
        cls,
        name: str,
        title: str,
        effort: Effort,
        rows: Iterable[Row | Measure],
        packages: Sequence[str] = PACKAGES,
    ) -> Report:
        rows = tuple(rows)
        versions = {package: _version(package) for package in packages}
        python = f"{platform.python_implementation()} {platform.python_version()}"
        return cls(name, title, effort.scale < 1, python, os.cpu_count() or 1, versions, rows)

    def show(self) -> None:
        table = Table(*HEAD, title=self.title)
        for row in self.rows:
            style = {True: "green", False: "red", None: ""}[row.reached]
            table.add_row(*row.cells(), style=style)
        Console().print(table)

    def write(self, folder: Path) -> None:
        """Keep the report as JSON for programs and as Markdown for people."""
        folder.mkdir(parents=True, exist_ok=True)
        document = asdict(self) | {"rows": [row.document() for row in self.rows]}
        (folder / f"{self.name}.json").write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
        (folder / f"{self.name}.md").write_text(self.markdown())

    def markdown(self) -> str:
        lines = [HEAD, ("---",) * len(HEAD), *(row.cells() for row in self.rows)]
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        packages = ", ".join(f"{name} {number}" for name, number in self.packages.items())
        measured = f"{self.python}, {self.cpus} CPUs; {packages}."
        quick = "\n\nA quick run: these numbers say that it runs, and nothing else." if self.quick else ""
        return (
            f"# {self.title}\n\nRatio: the peer's time divided by Rookery's; above 1, Rookery is faster. "
            f"Best of several rounds, both warm, unless a row says otherwise.\n\n{table}\n\n"
            f"{self._losses()}{measured}{quick}\n"
        )

    def _losses(self) -> str:
        """Where the peer wins, and what was not reached, said outright."""
        slower = [row for row in self.rows if isinstance(row, Row) and row.ratio < 1]
        said = [
            f"- the peer is faster: {_named(row)}, {row.peer}, {1 / row.ratio:.2f} times" for row in slower
        ]
        said += [f"- not reached: {_named(row)}, {row.peer}" for row in self.rows if row.reached is False]
        return "\n".join(said) + "\n\n" if said else ""


def _named(row: Row | Measure) -> str:
    return f"{row.what} ({row.data})"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def told(rows: Iterable[Row | Measure]) -> Iterator[Row | Measure]:
    """Say each row as it comes: some take minutes."""
    for row in rows:
        print("  ".join(cell for cell in row.cells() if cell), file=sys.stderr, flush=True)
        yield row
