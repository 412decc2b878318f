"""The commands, each in turns with a peer that does as much as PyIceberg can of it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import rookery
from benchmarks.harness import Effort, Measure
from benchmarks.lake import CATALOG, Bench, beside, open_bench

TITLE = "Commands from a cold process"
PACKAGES = ("rookery", "pyiceberg", "pyarrow", "numpy", "numba", "pandas", "sqlalchemy", "typer")
TABLE = "made.cold"
SECONDS, BYTES = 0.8, 150 * 10**6  # of the processor in user mode, and of memory, for a command on a table
HELP_SECONDS = 0.2
ROUNDS = 7
LAUNCHER = Path(__file__).with_name("launcher.py")
ORDERS = Path(__file__).parents[2] / "examples" / "orders.csv"


@dataclass(frozen=True)
class Command:
    """A command of Rookery's, and the peer's words."""

    words: tuple[str, ...]
    peer: str
    theirs: tuple[str, ...]
    seconds: float
    bytes: int | None = None

    @property
    def what(self) -> str:
        return " ".join(("rookery", *self.words[:1]))


def rows(effort: Effort) -> Iterator[Measure]:
    bench = open_bench(effort, jvm=False)
    prepare(bench)
    for command in commands(bench):
        ours, theirs = in_turns(bench, command, min(effort.rounds, ROUNDS))
        data = "500 rows, analysed, with a Bloom index" if command.bytes else "–"
        yield Measure(
            f"{command.what}, user CPU", data, ours[0], "s", command.seconds, command.peer, theirs[0]
        )
        yield Measure(
            f"{command.what}, memory", data, ours[1], "bytes", command.bytes, command.peer, theirs[1]
        )


def prepare(bench: Bench) -> None:
    """Make the table, unless it is there. Its statistics are registered by a JVM, once."""
    if not bench.exists(TABLE):
        bench.lake.load_files(ORDERS, TABLE)
    if not beside(bench, TABLE).exists():
        bench.handle(TABLE).add_index("bloom", "id")
        rookery.analyze(bench.lake.spark(attach=False), TABLE, lake=bench.lake)


def commands(bench: Bench) -> list[Command]:
    """The commands that are measured."""
    address = ("--catalog", CATALOG, "--uri", bench.lake.properties["uri"])
    describe = (program("pyiceberg"), *address, "describe", TABLE)
    scan = (sys.executable, "-c", scanning(bench))
    described, scanned = "pyiceberg describe", "PyIceberg's scan, in Python"
    found = [
        Command(("read", TABLE, "id = 44"), scanned, scan, SECONDS, BYTES),
        Command(("count", TABLE, "id = 44"), scanned, scan, SECONDS, BYTES),
        Command(("stats", TABLE), described, describe, SECONDS, BYTES),
        Command(("status", TABLE), described, describe, SECONDS, BYTES),
    ]
    for word, theirs in (("--help", "--help"), ("--version", "version")):
        found.append(
            Command((word,), f"pyiceberg {theirs}", (program("pyiceberg"), *address, theirs), HELP_SECONDS)
        )
    return found


def scanning(bench: Bench) -> str:
    """What a person would write to read a key with PyIceberg alone."""
    properties = dict(bench.lake.properties)
    return (
        "from pyiceberg.catalog import load_catalog\n"
        f"table = load_catalog({CATALOG!r}, **{properties!r}).load_table({TABLE!r})\n"
        "print(table.scan('id = 44').to_arrow())"
    )


def program(name: str) -> str:
    return str(Path(sys.executable).with_name(name))


def in_turns(bench: Bench, command: Command, rounds: int) -> tuple[tuple[float, float], tuple[float, float]]:
    """The least user CPU and the least memory of either."""
    properties = bench.lake.properties
    options = ("--catalog", CATALOG, "--uri", properties["uri"], "--warehouse", properties["warehouse"])
    ours = (program("rookery"), *options, *command.words)
    taken = [(launched(ours), launched(command.theirs)) for _ in range(rounds)]
    first, second = ([each[side] for each in taken] for side in (0, 1))
    return _least(first), _least(second)


def _least(taken: list[tuple[float, float]]) -> tuple[float, float]:
    return min(each[0] for each in taken), min(each[1] for each in taken)


def launched(words: tuple[str, ...]) -> tuple[float, float]:
    """Run a program; return its user CPU in seconds, and the most memory that it had in bytes."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(LAUNCHER), *words], check=True, stdout=subprocess.PIPE
    )
    seconds, size = json.loads(done.stdout)
    return seconds, size
