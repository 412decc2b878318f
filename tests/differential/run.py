"""One case: some tables, a session, many predicates and queries, each against what is true."""

from __future__ import annotations

import copy
import random
import traceback
import uuid
from collections.abc import Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.differential import numbers, unread_types
from tests.differential.asking import Asking
from tests.differential.building import build, build_small
from tests.differential.history import History, Keys, Version
from tests.differential.querying import Querying
from tests.differential.sessions import Session, draw
from tests.differential.tally import Tally
from tests.differential.truth import Copy
from tests.differential.world import Find, Finds, World, configured
from tests.lakehouse import drop


@dataclass(frozen=True)
class Size:
    """How much is asked of a case."""

    tables: int = 3
    predicates: int = 110  # of each table
    earlier: int = 20  # of an earlier snapshot of each
    by_spark: int = 5  # of each table, in every way
    unread: int = 20  # of a table with types that Spark has not
    queries: int = 22
    source_queries: int = 1  # over the data source, which take longest


@dataclass
class Case:
    """The tables of a case, what is asked, and where it stands."""

    world: World
    rng: random.Random
    session: Session
    size: Size
    tally: Tally
    finds: Finds
    histories: list[History] = field(default_factory=list)

    def run(self) -> None:
        with self._building():
            if not self._built():
                self.tally.refused_by_spark += 1
                return
            try:
                copies = {
                    each.name.rpartition(".")[2]: self._copy(each, each.name) for each in self.histories
                }
            except Exception as error:
                # Iceberg cannot read deletes by a column that was dropped, if another one has its name now.
                if "multiple fields for name" not in str(error):
                    raise
                self.tally.refused_by_spark += 1
                return
        try:
            for history, held in zip(self.histories, copies.values(), strict=True):
                self.tally.tables += 1
                with self.finds.noted():
                    numbers.check(history, held, self.tally)
                self._ask(history, held, None, self.size.predicates)
                self._ask_earlier(history, self._heads(history))
                self._ask_earlier(history, {version.snapshot for version in history.versions})
            columns = {name: each.columns for name, each in zip(copies, self.histories, strict=True)}
            branches = [
                (name, of) for name, each in zip(copies, self.histories, strict=True) for of in each.branches
            ]
            querying = Querying(
                self.world, self.rng, self.session, copies, columns, branches, self.tally, self.finds
            )
            querying.ask(self.size.queries, self.size.source_queries)
        finally:
            for held in copies.values():
                held.drop()
        if self.size.unread:
            with self.finds.noted():
                unread_types.run(self.world, self.rng, self.tally, self.size.unread)

    @contextmanager
    def _building(self) -> Iterator[None]:
        """Tables are made in the session's zone, with its idea of names, and defaults for all else."""
        keys = ("spark.sql.session.timeZone", "spark.sql.caseSensitive")
        settings = {key: value for key, value in self.session.settings.items() if key in keys}
        with configured(self.world.spark, settings), configured(self.world.other, settings):
            yield

    def _built(self) -> bool:
        """Build the tables, unless Iceberg's writer refuses: truncated decimals may need a digit too many."""
        keys = Keys.draw(self.rng)
        for number in range(self.size.tables):
            twins = self.session.case_sensitive and self.rng.random() < 0.5
            name = f"lake.db.d{uuid.uuid4().hex[:10]}"
            history = History(self.world, self.rng, name, keys, twins)
            self.histories.append(history)
            try:
                (build_small if number == self.size.tables - 1 and number else build)(history)
            except Exception as error:
                if "Cannot write value as decimal" in str(error):
                    return False
                raise
        return True

    def _copy(self, history: History, source: str) -> Copy:
        return Copy.of(
            self.world.other,
            source,
            history.name.rpartition(".")[2],
            null_structs=history.partitioned_within_struct(),
        )

    def _ask(self, history: History, held: Copy, version: Version | None, count: int) -> None:
        columns = history.columns if version is None else version.columns
        asking = Asking(
            self.world,
            self.rng,
            history.name,
            self.session,
            version,
            columns,
            held,
            self.tally,
            self.finds,
        )
        asking.ask(count, self.size.by_spark if version is None else self.size.by_spark // 2)

    def _heads(self, history: History) -> set[int]:
        """The snapshots that branches are at now."""
        references = self.world.lake.load(history.name).metadata.refs
        return {references[name].snapshot_id for name in history.branches}

    def _ask_earlier(self, history: History, among: Set[int]) -> None:
        # Asked for by its id, the current snapshot has its own columns in Spark, and the table's here.
        wanted = among - {history.snapshot()}
        earlier = [version for version in history.versions if version.snapshot in wanted]
        if not earlier or not self.size.earlier:
            return
        version = copy.deepcopy(self.rng.choice(earlier))
        with self._building():
            source = f"{history.name} VERSION AS OF {version.snapshot}"
            held = Copy.of(
                self.world.other,
                source,
                f"earlier_{uuid.uuid4().hex[:8]}",
                null_structs=history.partitioned_within_struct(),
            )
        try:
            self._ask(history, held, version, self.size.earlier)
        finally:
            held.drop()

    def __str__(self) -> str:
        steps = [line for history in self.histories for line in history.steps]
        return "\n".join([*steps, str(self.session), *map(str, self.finds.found)])

    def drop(self) -> None:
        drop(self.world.spark, [history.name for history in self.histories])  # files go with the folder


def run_case(
    world: World,
    seed: str,
    number: int,
    tally: Tally,
    size: Size = Size(),  # noqa: B008
    *,
    keep_going: bool = False,
) -> None:
    """Make the tables of a case and ask them everything; raise `Find` on the first difference, or of all."""
    rng = random.Random(f"{seed}/{number}")
    case = Case(world, rng, draw(rng), size, tally, Finds(keep_going))
    command = f"python -m tests.differential --seed {seed} --case {number}"
    try:
        case.run()
    except Exception as error:
        case.finds.found.append(Find(_told(error)))
        raise Find(f"{command}\n{case}") from error
    finally:
        case.drop()
    if case.finds.found:
        raise Find(f"{command}\n{case}")


def _told(error: Exception) -> str:
    lines = "".join(traceback.format_exception(error)).splitlines()
    return "\n".join(line for line in lines if _telling(line))


def _telling(line: str) -> bool:
    """Java's traces are long, and say little."""
    return not line.startswith(("\tat ", "\t\tat ", "\t... ", "\tSuppressed", "\t\t..."))
