"""Random lakes that are hard to clear up: links, two names, guests, forks, shared folders, paths outside.

`python -m tests.safety.orphan_lakes --lakes 500` removes orphans from so many, and sees that nothing that
any table of any catalog needs is gone, and that true orphans are.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table
from pyiceberg.table.update import SetLocationUpdate

from rookery.api.lake import Lake, connect
from rookery.io import local_path
from rookery.maintain.policies.policy import DEFAULT, Orphans, Policy
from rookery.maintain.steps import clean_up, orphans
from rookery.maintain.steps.step import Idle, MaintainedTable, Plan, Ran
from rookery.maintain.survey import survey
from rookery.model import UsageError

DAY = 24 * 3600.0
LATER = 30 * DAY  # how far in the future orphans are removed: then all that is written now is old
AGE = timedelta(days=2)
ROWS = pa.table({"id": pa.array(range(5), pa.int64())})
FOLDERS = ("plain", "sp ace", "ünï☃", "per%20cent", "MiXed", "a+b=c&d", "dots.in.it")
STRAY_NAMES = (
    "part-{}.parquet",
    "{}-m0.avro",
    "snap-{}.avro",
    "{} #1?.parquet",
    "é{}%2F%.orc",
    "line\n{}",
    "{}.STATS",
)
STRAY_FOLDERS = (
    "",
    "data",
    "data/kind=1",
    "data/_kind=1",
    "metadata",
    "data/per%20cent",
    "data/#a?b",
    "new\nline",
)


class Find(Exception):
    """Something that must not be: the lake is told by its seed."""


@dataclass
class RandomLake:
    """A folder under two names, two catalogs, and a table in the midst of what makes it hard."""

    root: Path
    chance: random.Random
    features: set[str] = field(default_factory=set)
    orphans: set[str] = field(default_factory=set)  # that must go, if nothing is refused
    outside_orphans: set[str] = field(
        default_factory=set
    )  # that go only where the folder is the table's alone

    def __post_init__(self) -> None:
        self.real, self.alias = self.root / "real", self.root / "alias"
        self.real.mkdir()
        self.alias.symlink_to(self.real)
        self.lake, self.second = (self._catalog(name) for name in ("one", "two"))
        self.folder = self.real / self.chance.choice(FOLDERS) / "t"
        self.outside = self.real / "pool" / self.chance.choice(FOLDERS)
        self.table = self.lake.catalog.create_table(
            "db.t", ROWS.schema, location=self.called(self.folder), properties=self._properties(self.folder)
        )

    def _catalog(self, name: str) -> Lake:
        uri = f"sqlite:///{self.root / name}.db"
        lake = connect(uri=uri, warehouse=f"file://{self.real}/warehouse-{name}")
        lake.catalog.create_namespace("db")
        return lake

    def often(self, share: float) -> bool:
        return self.chance.random() < share

    def called(self, path: Path) -> str:
        """One of the names of a path below the root."""
        inside = path.relative_to(self.real)
        base = self.chance.choice((self.real, self.alias, self.real / ".." / "alias", self.alias / "." / ""))
        text = f"{base}{self.chance.choice(('/', '//'))}{inside}"
        return self.chance.choice(("", "file:", "file://")) + text

    def _properties(self, folder: Path) -> dict[str, str]:
        found = {"write.object-storage.enabled": self.chance.choice(("true", "false"))}
        if self.often(0.2):
            found["write.data.path"] = self.called(folder / "data")
        elif self.often(0.7):
            key = self.chance.choice(("write.data.path", "write.object-storage.path"))
            found[key] = found["write.data.path"] = self.outside_path()
        if self.often(0.2):
            found["write.metadata.path"] = self.called(folder / "metadata")
        if self.often(0.3):
            found["write.metadata.previous-versions-max"] = self.chance.choice(("1", "3"))
        return found

    def outside_path(self) -> str:
        return self.called(self.outside) + self.chance.choice(("", "/"))

    # -- histories

    def commit(self, table: Table) -> None:
        table.refresh()
        match self.chance.randrange(8):
            case 0:
                table.delete(f"id = {self.chance.randrange(5)}")
            case 1:
                table.overwrite(ROWS)
            case 2:
                inside = self.called(self.folder_of(table) / "data")
                path = self.outside_path() if self.often(0.7) else inside
                with table.transaction() as change:
                    change.set_properties({"write.data.path": path})
            case 3:
                location = self.called(self.folder_of(table))
                with table.transaction() as change:
                    change._apply((SetLocationUpdate(location=location),))
            case 4:
                self.add_file(
                    table, self.folder_of(table) / "data" / f"added-{self.chance.randrange(1 << 30)}.parquet"
                )
            case _:
                table.append(ROWS)

    def commits(self, table: Table, least: int, most: int) -> None:
        for _ in range(self.chance.randint(least, most)):
            self.commit(table)

    def folder_of(self, table: Table) -> Path:
        return Path(os.path.realpath(local_path(table.location())))

    def add_file(self, table: Table, path: Path) -> None:
        """A file that the table takes over by another name, through a link of its own perhaps."""
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(ROWS, path)
        named = path
        if self.often(0.3):
            named = path.with_name(f"link-{path.name}")
            named.symlink_to(path) if self.often(0.5) else os.link(path, named)
        table.add_files([self.called(named)], check_duplicate_files=False)

    # -- what makes it hard

    def guest_data(self) -> None:
        """Its data lies in our folder, and the rest elsewhere."""
        path = self.folder / self.chance.choice(("data/guest", "guest-data", "data"))
        properties = {"write.data.path": self.called(path)}
        self._guest(self.lake, self.real / "guests" / "data", properties)
        self.features |= {"unseen from the second"}

    def guest_location(self) -> None:
        """Its location lies in our folder, and its metadata elsewhere."""
        properties = {"write.metadata.path": self.called(self.real / "elsewhere" / "guest-metadata")}
        self._guest(self.lake, self.folder / "guest", properties)
        self.features |= {"unseen from the second"}

    def guest_nested(self) -> None:
        self._guest(self.chance.choice((self.lake, self.second)), self.folder / "data" / "below", {})

    def guest_file(self) -> None:
        """Another table has taken over a file that lies in our folder."""
        guest = self._guest(self.lake, self.real / "guests" / "file", {})
        self.add_file(guest, self.folder / "data" / "taken-over.parquet")
        self.features |= {"unseen from the second"}

    def guest_outside(self) -> None:
        """Another table writes to the folder outside, or above or below it; of another catalog, maybe."""
        where = self.chance.choice(("at", "above", "below"))
        path = {"at": self.outside, "above": self.outside.parent, "below": self.outside / "below"}[where]
        properties = {"write.data.path": self.called(path) + self.chance.choice(("", "/"))}
        lake = self.chance.choice((self.lake, self.second))
        guest = self._guest(lake, self.real / "guests" / "outside", properties)
        goes_on = self.often(0.7)
        if not goes_on:  # its files stay where they are
            with guest.transaction() as change:
                change.remove_properties("write.data.path")
        if lake is self.second:
            self.features |= {"unseen outside"}
        else:
            shared = where == "at" or (where == "above" and goes_on)
            self.features |= {"unseen from the second", *(["shared outside"] if shared else [])}

    def shared_folder(self) -> None:
        self._guest(self.chance.choice((self.lake, self.second)), self.folder, {})
        self.features |= {"refused"}

    def _guest(self, lake: Lake, folder: Path, properties: dict[str, str]) -> Table:
        name = f"db.g{len(lake.catalog.list_tables('db'))}"
        guest = lake.catalog.create_table(
            name, ROWS.schema, location=self.called(folder), properties=properties
        )
        for _ in range(self.chance.randint(1, 3)):
            guest.append(ROWS)
        return guest

    def fork(self) -> None:
        """Another catalog has the table too and commits; its metadata may go elsewhere later."""
        where = self.chance.choice((self.second, self.lake))
        fork = where.catalog.register_table("db.fork", self.table.refresh().metadata_location)
        self.features |= {"fork in the catalog"} if where is self.lake else set()
        self.commits(fork, 1, 3)
        if self.often(0.3):
            with fork.transaction() as change:
                change.set_properties(
                    {"write.metadata.path": self.called(self.real / "elsewhere" / "fork-metadata")}
                )
            fork.append(ROWS)
            self.features |= {"went on elsewhere"}
        self.commits(self.table, 1, 3)
        self.features |= {"refused"}

    def failed_commit(self) -> None:
        """Two writers at once: one of them fails, and leaves a metadata file and what that names."""
        late = self.lake.catalog.load_table("db.t")
        self.table.refresh().append(ROWS)
        with suppress(CommitFailedException):
            late.append(ROWS)
        self.features |= {"failed commit"}

    def links(self) -> None:
        (self.folder / "data").mkdir(parents=True, exist_ok=True)
        (self.folder / "data" / "up").symlink_to(self.folder)
        (self.folder / "nowhere").symlink_to(self.root / "nothing")
        for number, path in enumerate(list(self.folder.rglob("*.parquet"))[:2]):
            with suppress(FileExistsError):
                os.link(path, self.folder / f"hard-{number}.parquet")

    def case_variants(self) -> None:
        for path in list(self.folder.rglob("*.parquet"))[:2]:
            variant = path.with_name(path.name.upper())
            if path.is_file() and not variant.exists():
                variant.write_bytes(b"not the same, and yet not to be told from it")

    def under_way(self) -> None:
        """Files that a writer is about to name."""
        for number in range(3):
            self._plant(f"data/under-way-{number}.parquet", LATER - self.chance.uniform(0, 1.9 * DAY))

    def _plant(self, name: str, after: float) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"nobody knows me")
        at = time.time() + after
        os.utime(path, (at, at))
        return path

    def plant_orphans(self) -> None:
        for number in range(self.chance.randint(1, 8)):
            unique = f"{number}-{self.chance.randrange(1 << 40):x}"
            name = self.chance.choice(STRAY_NAMES).format(unique)
            path = self._plant(f"{self.chance.choice(STRAY_FOLDERS)}/{name}".lstrip("/"), -10 * DAY)
            self.orphans.add(str(path))
            if self.often(0.5):
                name = f"{self.outside}/{self.chance.choice(STRAY_FOLDERS)}/{unique}"
                self.outside_orphans.add(os.path.normpath(str(self._plant(name, -10 * DAY))))

    @property
    def writes_outside(self) -> bool:
        """Whether the table writes to the folder outside at this moment."""
        properties = self.table.refresh().properties
        paths = [properties.get(key) for key in ("write.data.path", "write.object-storage.path")]
        return str(self.outside) in {os.path.realpath(local_path(path)) for path in paths if path}


HARD: tuple[tuple[float, Callable[[RandomLake], None]], ...] = (
    (0.25, RandomLake.guest_data),
    (0.2, RandomLake.guest_location),
    (0.25, RandomLake.guest_nested),
    (0.2, RandomLake.guest_file),
    (0.3, RandomLake.guest_outside),
    (0.1, RandomLake.shared_folder),
    (0.25, RandomLake.fork),
    (0.25, RandomLake.failed_commit),
    (0.5, RandomLake.links),
    (0.3, RandomLake.case_variants),
    (0.5, RandomLake.under_way),
)


def grown(root: Path, chance: random.Random) -> RandomLake:
    """A lake with some of all this, in any order."""
    found = RandomLake(root, chance)
    found.commits(found.table, 1, 4)
    chosen = [add for share, add in HARD if found.often(share)]
    chance.shuffle(chosen)
    for add in chosen:
        add(found)
        found.commits(found.table, 0, 2)
    found.plant_orphans()
    return found


def needed(catalog: Catalog) -> Iterator[str]:
    """All that the tables of a catalog name, read by PyIceberg, which Rookery's planning does not use."""
    for identifier in catalog.list_tables("db"):
        table = catalog.load_table(identifier)
        metadata = table.metadata
        yield table.metadata_location
        yield from (entry.metadata_file for entry in metadata.metadata_log)
        yield from (file.statistics_path for file in metadata.statistics)
        for snapshot in metadata.snapshots:
            yield snapshot.manifest_list
            for manifest in snapshot.manifests(table.io):
                yield manifest.manifest_path
                for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
                    yield entry.data_file.file_path


def maintained_of(lake: Lake, name: str, policy: Policy, forced: bool) -> MaintainedTable:
    full = lake.table_name(name)

    def no_spark() -> object:
        raise AssertionError("Spark was asked for")

    return MaintainedTable(
        full,
        lambda: lake.open(full),
        no_spark,
        policy,
        lambda: time.time() + LATER,
        forced,
        lake.other_tables(),  # type: ignore[arg-type]
    )


def remove_orphans(maintained: MaintainedTable) -> set[str]:
    """Do what the step does, but for asking Iceberg as well; return what went, by resolved paths."""
    before = maintained.view(survey(*maintained.load()))
    planned = orphans.plan(before)
    if isinstance(planned, Idle):
        return set()
    paths = {os.path.realpath(local_path(file.location)) for file in planned.details["files"]}
    removed = orphans.take_away(maintained, planned.details["files"])
    if len(removed) != len(planned.details["files"]):
        raise Find("what was planned was not removed")
    ran = Ran(len(removed), details={"removed": tuple(removed)})
    orphans.verify(before, planned, ran, maintained.view(survey(*maintained.load())))
    return paths


def clear_up(maintained: MaintainedTable) -> None:
    view = maintained.view(survey(*maintained.load()))
    planned = clean_up.plan(view)
    if isinstance(planned, Plan):
        clean_up.run(view, planned)


def run_lake(seed: str, tally: Counter[str]) -> None:
    """Grow a lake, remove orphans from every table that can be, and see what is left."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="orphans-lake-") as root:
        grew = grown(Path(os.path.realpath(root)), chance)
        names = {*needed(grew.lake.catalog), *needed(grew.second.catalog)}
        there = {name for name in names if os.path.exists(local_path(name))}
        trash = str(grew.root / "trash") if chance.random() < 0.3 else None
        unseen = "unseen outside" in grew.features  # then nobody may say that the folder is his alone
        own = chance.random() < 0.6 and not unseen
        policy = replace(DEFAULT, orphans=Orphans(AGE, 1.0, trash, outside=own))
        forced = chance.random() < 0.3 and "went on elsewhere" not in grew.features
        lakes = [grew.lake] if "unseen from the second" in grew.features else [grew.lake, grew.second]
        for lake in lakes:
            for identifier in lake.catalog.list_tables("db"):
                maintained = maintained_of(lake, ".".join(identifier), policy, forced)
                removed = _removed(maintained, grew, tally)
                is_main = lake is grew.lake and identifier[-1] == "t"
                if is_main and removed is not None:
                    left = {path for path in grew.orphans if os.path.exists(path)}
                    if left - _left_alone(grew):
                        raise Find(f"orphans stayed: {sorted(left)}")
                    tally["true orphans gone"] += len(grew.orphans - left)
                    _check_outside(grew, own, tally)
        lost = sorted(name for name in there if not os.path.exists(local_path(name)))
        if lost:
            raise Find(f"{len(lost)} needed files are gone: {lost[:3]}; {sorted(grew.features)}")
        tally["lakes"] += 1
        tally["needed files kept"] += len(there)
        tally.update(grew.features)


def _check_outside(grew: RandomLake, said: bool, tally: Counter[str]) -> None:
    """See that orphans outside have gone if the folder is said to be, and is, the table's alone; else not."""
    left = {path for path in grew.outside_orphans if os.path.exists(path)}
    if not grew.writes_outside or "fork in the catalog" in grew.features:  # which may write there too
        return
    if said and "shared outside" not in grew.features:
        if left:
            raise Find(f"orphans outside stayed: {sorted(left)}; {sorted(grew.features)}")
        tally["orphans outside gone"] += len(grew.outside_orphans)
    elif left != grew.outside_orphans:
        raise Find(f"files went though the folder is shared: {sorted(grew.outside_orphans - left)}")
    else:
        tally["orphans outside left"] += len(left)


def _left_alone(grew: RandomLake) -> set[str]:
    """Orphans that lie where a guest writes: nobody can tell that they are not the guest's."""
    folders = []
    for lake in (grew.lake, grew.second):
        for identifier in lake.catalog.list_tables("db"):
            table = lake.catalog.load_table(identifier)
            if identifier[-1] != "t":
                keys = ("write.data.path", "write.metadata.path")
                paths = (table.location(), *(table.properties.get(key, "") for key in keys))
                folders += [os.path.realpath(local_path(path)) for path in paths if path]
    root = os.path.realpath(grew.folder)
    return {path for path in grew.orphans if any(path.startswith(f"{f}/") and f != root for f in folders)}


def _removed(maintained: MaintainedTable, grew: RandomLake, tally: Counter[str]) -> set[str] | None:
    """Remove a table's orphans; none where that is refused, which must have its reason."""
    try:
        removed = remove_orphans(maintained)
        clear_up(maintained)
    except UsageError as error:
        if "refused" not in grew.features:
            raise Find(f"refused without need: {error}") from error
        tally["refused"] += 1
        return None
    tally["files removed"] += len(removed)
    return removed


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.safety.orphan_lakes", description=__doc__)
    parser.add_argument("--lakes", type=int, default=500)
    parser.add_argument("--seed", default="0", help="the same seed makes the same lakes")
    parser.add_argument("--lake", type=int, default=None, help="this lake alone")
    asked = parser.parse_args()
    tally: Counter[str] = Counter()
    finds = 0
    numbers = range(asked.lakes) if asked.lake is None else [asked.lake]
    for number in numbers:
        try:
            run_lake(f"{asked.seed}/{number}", tally)
        except Find as find:
            finds += 1
            sys.stdout.write(f"--- lake {asked.seed}/{number}: {find}\n")
        if number % 25 == 0:
            sys.stdout.write(f"{number}: {dict(tally)}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{dict(tally)}\n{finds} finds\n")
    return 1 if finds else 0


if __name__ == "__main__":
    sys.exit(main())
