"""Orphans in folders outside of the table's own: they go only where the folder is the table's alone."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyiceberg.table import Table

from rookery.api.lake import Lake, connect
from rookery.maintain.policies.policy import DEFAULT, Orphans, Policy
from rookery.maintain.steps import orphans
from rookery.maintain.steps.step import Idle, Plan
from rookery.maintain.survey import survey
from rookery.model import UsageError
from tests.maintain.tending import DAY, plant
from tests.safety.orphan_lakes import ROWS, maintained_of, needed, remove_orphans

AGE = timedelta(days=2)
OWN = replace(DEFAULT, orphans=Orphans(AGE, 1.0, outside=True))
UNSAID = replace(DEFAULT, orphans=Orphans(AGE, 1.0))
PATHS = ("write.data.path", "write.object-storage.path", "write.folder-storage.path", "write.metadata.path")


class Site:
    """Two names of one folder, and a catalog whose tables lie in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.real, self.alias = root / "real", root / "alias"
        (self.real / "x").mkdir(parents=True)
        self.alias.symlink_to(self.real)
        self.lake = self.catalog("one")

    def catalog(self, name: str) -> Lake:
        lake = connect(uri=f"sqlite:///{self.root}/{name}.db", warehouse=f"file://{self.root}/{name}")
        lake.catalog.create_namespace("db")
        return lake

    def table(self, name: str = "t", lake: Lake | None = None, **properties: str) -> Table:
        stated = {f"write.{key.replace('_', '.')}": value for key, value in properties.items()}
        return self.make(name, stated, lake)

    def make(self, name: str, properties: dict[str, str], lake: Lake | None = None) -> Table:
        where = f"{self.real}/tables-{id(lake) if lake else 'one'}/{name}"
        made = (lake or self.lake).catalog.create_table(
            f"db.{name}", ROWS.schema, location=where, properties=properties
        )
        for _ in range(3):
            made.append(ROWS)
        return made

    def stray(self, name: str = "outside/data/kind=1/stray.parquet") -> Path:
        return plant(self.real, name, 9 * DAY)

    def plan(self, policy: Policy = OWN, name: str = "db.t", *, forced: bool = False) -> Plan | Idle:
        maintained = maintained_of(self.lake, name, policy, forced)
        return orphans.plan(maintained.view(survey(*maintained.load())))

    def remove(self, policy: Policy = OWN, name: str = "db.t", *, forced: bool = False) -> set[str]:
        """Remove orphans, long after all was written; nothing that any table names may be gone after it."""
        names = {os.path.realpath(path.removeprefix("file://")) for path in needed(self.lake.catalog)}
        there = {path for path in names if os.path.exists(path)}
        try:
            return remove_orphans(maintained_of(self.lake, name, policy, forced))
        finally:
            assert all(map(os.path.exists, there))


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


FORMS = [
    "{real}",
    "{real}/",
    "file:{real}",
    "file://{real}/",
    "{alias}",
    "file:{alias}",
    "{real}/x/..",
    "{real}//",
]


def written(site: Site, form: str, folder: str = "outside/data") -> str:
    return f"{form.format(real=site.real, alias=site.alias)}/{folder}"


@pytest.mark.parametrize("form", FORMS)
def test_they_are_found(site: Site, form: str) -> None:
    site.table(data_path=written(site, form, "outside/data/" if form.endswith("/") else "outside/data"))
    inside, outside = site.stray("tables-one/t/data/stray.parquet"), site.stray()
    hidden, young = site.stray("outside/data/_temporary/x"), plant(site.real, "outside/data/y", -29 * DAY)
    assert site.remove() == {str(inside), str(outside)}
    assert hidden.exists()
    assert young.exists()


@pytest.mark.parametrize("key", PATHS)
def test_every_path_that_a_table_writes_to(site: Site, key: str) -> None:
    site.make("t", {key: f"{site.real}/outside/data"})
    stray = site.stray()
    assert site.remove() == {str(stray)}


def test_paths_in_one_another_are_looked_at_once(site: Site) -> None:
    site.table(data_path=f"{site.real}/outside/data", metadata_path=f"{site.alias}/outside")
    stray = site.stray()
    planned = site.plan()
    assert isinstance(planned, Plan)
    assert planned.files == 1
    assert site.remove() == {str(stray)}


# -- whose folder it is


def test_without_proof_they_are_left_and_that_is_said(site: Site) -> None:
    site.table(data_path=f"{site.real}/outside/data")
    stray = site.stray()
    found = site.plan(UNSAID)
    assert isinstance(found, Idle)
    assert found.why == (
        f"1 file under {site.real}/outside/data kept, which {site.lake.table_name('db.t')} does not "
        "reference: a table of another catalog may write there too; if none does, set orphans.outside"
    )
    assert site.remove(UNSAID) == set()
    assert site.remove(UNSAID, forced=True) == set()  # --yes is asked for by other refusals too
    assert stray.exists()


def test_those_inside_go_all_the_same(site: Site) -> None:
    site.table(data_path=f"{site.real}/outside/data")
    inside, outside = site.stray("tables-one/t/data/stray.parquet"), site.stray()
    assert site.remove(UNSAID) == {str(inside)}
    assert outside.exists()


@pytest.mark.parametrize("dashes", [True, False])
def test_a_folder_named_by_the_uuid_is_its_own(site: Site, dashes: bool) -> None:
    made = site.table()
    uuid = str(made.metadata.table_uuid)
    folder = uuid if dashes else uuid.replace("-", "").upper()
    with made.transaction() as change:
        change.set_properties({"write.data.path": f"{site.real}/outside/{folder}/data"})
    made.append(ROWS)
    stray = site.stray(f"outside/{folder}/data/stray.parquet")
    assert site.remove(UNSAID) == {str(stray)}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("theirs", ["outside/data", "outside/data/", "outside", "."])
def test_a_folder_that_another_table_writes_to(site: Site, form: str, theirs: str) -> None:
    """At it or above it, by whatever name: nobody can tell whose the files are, and nothing is forced."""
    site.table(data_path=f"{site.real}/outside/data")
    site.make("u", {"write.object-storage.path": written(site, form, theirs)})
    stray = site.stray()
    found = site.plan(forced=True)
    assert isinstance(found, Idle)
    assert "1 file under" in found.why
    assert ".db.u writes to " in found.why
    assert site.remove(forced=True) == set()
    assert stray.exists()


def test_the_root_lies_above_everything(site: Site) -> None:
    site.table(data_path=f"{site.real}/outside/data")
    other = site.table("u")
    with other.transaction() as change:
        change.set_properties({"write.data.path": "/"})
    site.stray()
    assert site.remove() == set()


def test_a_table_that_writes_below_keeps_its_own(site: Site) -> None:
    site.table(data_path=f"{site.real}/outside/data")
    site.table("u", data_path=f"{site.alias}/outside/data/below/")
    theirs, ours = site.stray("outside/data/below/stray.parquet"), site.stray()
    assert site.remove() == {str(ours)}
    assert theirs.exists()
    assert site.remove(name="db.u") == set()


def test_a_table_that_lies_below_keeps_its_own(site: Site) -> None:
    site.table(data_path=f"{site.real}/outside/data")
    below = f"{site.real}/outside/data/u"
    site.lake.catalog.create_table("db.u", ROWS.schema, location=below).append(ROWS)
    theirs, ours = site.stray("outside/data/u/data/stray.parquet"), site.stray()
    assert site.remove() == {str(ours)}
    assert theirs.exists()


def test_a_table_of_another_catalog_below_is_known_by_its_metadata(site: Site) -> None:
    site.table(data_path=f"{site.real}/outside/data")
    other = site.catalog("two")
    below = f"{site.real}/outside/data/u"
    theirs = other.catalog.create_table("db.u", ROWS.schema, location=below)
    theirs.append(ROWS)
    ours = site.stray()
    assert site.remove() == {str(ours)}
    assert other.catalog.load_table("db.u").scan().to_arrow().num_rows == 5


@pytest.mark.parametrize("forced", [False, True])
def test_a_table_of_another_catalog_that_shows_to_write_there(site: Site, forced: bool) -> None:
    """Its metadata lies below, and says that its data lies in the folder itself."""
    site.table(data_path=f"{site.real}/outside/data")
    other = site.catalog("two")
    theirs = other.catalog.create_table(
        "db.u",
        ROWS.schema,
        location=f"{site.real}/outside/data/u",
        properties={"write.data.path": f"{site.alias}/outside/"},
    )
    theirs.append(ROWS)
    site.stray()
    assert site.remove(forced=forced) == set()
    assert other.catalog.load_table("db.u").scan().to_arrow().num_rows == 5


def test_a_table_that_wrote_there_once(site: Site) -> None:
    """Its property is gone, its files are not: what it has left there looks like ours."""
    site.table(data_path=f"{site.real}/outside/data")
    other = site.table("u", data_path=f"{site.real}/outside/data")
    with other.transaction() as change:
        change.remove_properties("write.data.path")
    site.stray()
    found = site.plan(forced=True)
    assert isinstance(found, Idle)
    assert found.why.endswith("another table of the catalog has files there")


def test_a_folder_above_the_own_one(site: Site) -> None:
    site.table(data_path=f"{site.real}")
    site.stray("other/people/precious.parquet")
    found = site.plan(forced=True)
    assert isinstance(found, Idle)
    assert "itself is there" in found.why


def test_a_table_that_cannot_be_loaded(site: Site) -> None:
    site.table(data_path=f"{site.real}/outside/data")
    other = site.table("u")
    Path(other.metadata_location.removeprefix("file://")).write_bytes(b"rubbish")
    site.stray()
    found = site.plan(forced=True)
    assert isinstance(found, Idle)
    assert "another table of the catalog cannot be read" in found.why


def test_a_fork_in_another_catalog(site: Site) -> None:
    made = site.table(data_path=f"{site.real}/outside/data")
    other = site.catalog("two")
    fork = other.catalog.register_table("db.t", made.metadata_location)
    for _ in range(2):
        fork.append(ROWS)
    site.stray()
    with pytest.raises(UsageError, match="its catalog does not know"):
        site.plan()
    site.remove(forced=True)
    assert other.catalog.load_table("db.t").scan().to_arrow().num_rows == 25


def test_a_fork_whose_metadata_lies_in_a_folder_that_looks_like_one_inside(site: Site) -> None:
    """Names that may be one, by their case or their bucket, need not be: the folder is listed too."""
    if (site.real / "X").exists():
        pytest.skip("names differ by more than case here")
    made = site.table(metadata_path=f"{site.real}/TABLES-one/t/metadata")
    other = site.catalog("two")
    fork = other.catalog.register_table("db.t", made.metadata_location)
    for _ in range(2):
        fork.append(ROWS)
    site.stray("tables-one/t/data/stray.parquet")
    with pytest.raises(UsageError, match="its catalog does not know"):
        site.plan()


def test_a_fork_whose_metadata_lies_behind_a_link(site: Site) -> None:
    made = site.table()
    metadata = site.real / "tables-one/t/metadata"
    metadata.rename(site.real / "moved")
    metadata.symlink_to(site.real / "moved")
    other = site.catalog("two")
    fork = other.catalog.register_table("db.t", made.metadata_location)
    for _ in range(2):
        fork.append(ROWS)
    site.stray("tables-one/t/data/stray.parquet")
    with pytest.raises(UsageError, match="its catalog does not know"):
        site.plan()


def test_a_fork_under_another_name_writes_there_too(site: Site) -> None:
    made = site.table(data_path=f"{site.real}/outside/data")
    site.lake.catalog.register_table("db.fork", made.metadata_location).append(ROWS)
    site.stray()
    assert site.remove(forced=True) == set()


# -- what is not found


def test_a_named_file_that_is_missing_refuses_all(site: Site) -> None:
    site.table(data_path=f"{site.real}/outside/data")
    next((site.real / "outside/data").rglob("*.parquet")).unlink()
    site.stray()
    with pytest.raises(UsageError, match="cannot be found"):
        site.plan(forced=True)


def test_a_file_taken_over_by_a_link(site: Site) -> None:
    made = site.table(data_path=f"{site.real}/outside/data")
    path = site.real / "outside/data/taken.parquet"
    pq.write_table(ROWS, path)
    link = site.real / "links" / "x.parquet"
    link.parent.mkdir()
    link.symlink_to(path)
    made.add_files([str(link)])
    stray = site.stray()
    assert site.remove() == {str(stray)}
    assert path.exists()


def test_what_lies_behind_a_link_is_left(site: Site) -> None:
    site.table(data_path=f"{site.real}/outside/data")
    elsewhere = site.stray("elsewhere/precious.parquet")
    (site.real / "outside/data/link").symlink_to(site.real / "elsewhere")
    assert site.remove() == set()
    assert elsewhere.exists()


def test_a_folder_that_is_not_there(site: Site) -> None:
    made = site.table()
    with made.transaction() as change:
        change.set_properties({"write.data.path": f"{site.real}/nowhere"})
    inside = site.stray("tables-one/t/data/stray.parquet")
    assert site.remove() == {str(inside)}


def test_no_more_than_a_share_of_each_folder_goes(site: Site) -> None:
    """A folder of many files inside does not make up for one of few outside."""
    site.table(data_path=f"{site.real}/outside/data")
    for number in range(4):
        site.stray(f"outside/data/{number}.parquet")
    careful = replace(OWN, orphans=replace(OWN.orphans, max_share=0.5))
    with pytest.raises(UsageError, match=r"4 files of 7 in .*/outside/data would be removed"):
        site.plan(careful)
    assert isinstance(site.plan(careful, forced=True), Plan)


def test_the_trash_keeps_their_paths(site: Site) -> None:
    made = site.table(data_path=f"file:{site.real}/outside/data", metadata_path=f"{site.alias}//more/data")
    names = ["outside/data/a/x/f.parquet", "outside/data/b/x/f.parquet", "more/data/a/x/f.parquet"]
    for name in names:
        plant(site.real, name, 9 * DAY, name.encode())
    policy = replace(OWN, orphans=replace(OWN.orphans, trash=str(site.root / "trash")))
    assert len(site.remove(policy)) == 3
    moved = list((site.root / "trash" / str(made.metadata.table_uuid)).rglob("f.parquet"))
    assert sorted(path.read_text() for path in moved) == sorted(names)
    assert {"outside"} == {path.relative_to(site.root / "trash").parts[2] for path in moved}


def test_what_is_named_meanwhile_is_not_removed(site: Site) -> None:
    made = site.table(data_path=f"{site.real}/outside/data")
    added, gone = site.stray("outside/data/added.parquet"), site.stray()
    pq.write_table(ROWS, added)
    os.utime(added, (time.time() - 9 * DAY,) * 2)
    maintained = maintained_of(site.lake, "db.t", OWN, False)
    planned = orphans.plan(maintained.view(survey(*maintained.load())))
    assert isinstance(planned, Plan)
    assert planned.files == 2
    made.refresh().add_files([f"file:{site.alias}/outside/data/added.parquet"])
    removed = orphans.take_away(maintained, planned.details["files"])
    assert [Path(file.location).name for file in removed] == [gone.name]
    assert added.exists()


def test_another_table_that_comes_meanwhile(site: Site) -> None:
    site.table(data_path=f"{site.real}/outside/data")
    stray = site.stray()
    maintained = maintained_of(site.lake, "db.t", OWN, False)
    planned = orphans.plan(maintained.view(survey(*maintained.load())))
    assert isinstance(planned, Plan)
    site.table("u", data_path=f"{site.real}/outside/data")
    later = maintained_of(site.lake, "db.t", OWN, False)
    assert orphans.take_away(later, planned.details["files"]) == []
    assert stray.exists()
