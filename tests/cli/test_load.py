"""`rookery load`, `tables` and `describe`: what they print, return and refuse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Rookery


@pytest.fixture
def flights(tmp_path: Path) -> Path:
    path = tmp_path / "flights.csv"
    path.write_text("id,origin,day\n1,AMS,2024-01-01\n2,EWR,2024-01-02\n3,,2024-01-02\n")
    return path


def test_load(rookery: Rookery, flights: Path) -> None:
    code, out, err = rookery("load", flights, "nyc.flights", "--partition", "day(day)", "--sort", "id desc")
    assert (code, err) == (0, "")
    assert "lake.nyc.flights: created with 3 rows in 2 files" in out
    assert "day     date" in out
    code, out, _ = rookery("load", flights, flights, "nyc.flights", "--append", "--output", "json")
    loaded = json.loads(out)
    assert (code, loaded["rows"], loaded["created"], loaded["inputs"]) == (0, 6, False, 2)
    assert rookery("count", "nyc.flights")[1] == "9\n"


def test_a_broken_row(rookery: Rookery, flights: Path) -> None:
    flights.write_text(flights.read_text() + "4,LHR\n")
    code, out, err = rookery("load", flights, "nyc.flights")
    assert (code, out) == (2, "")
    assert "flights.csv, line 5: " in err
    assert "hint: " in err
    code, out, _ = rookery("tables")
    assert (code, "no tables yet" in out) == (0, True)


@pytest.mark.parametrize("words", [("load",), ("load", "db.t"), ("load", "missing.csv", "db.t")])
def test_nothing_to_load(words: tuple[str, ...], rookery: Rookery) -> None:
    code, out, err = rookery(*words)
    assert (code, out) == (2, "")
    assert "hint: " in err


@pytest.mark.parametrize("command", ["tables", "status"])
def test_an_empty_catalog(command: str, rookery: Rookery) -> None:
    code, out, err = rookery(command)
    assert (code, err) == (0, "")
    assert "no tables yet" in out
    assert "rookery load" in out
    code, out, _ = rookery(command, "--output", "json")
    assert (code, json.loads(out)["tables"]) == (0, [])


LOOKS = (
    "tables", "status", "doctor", "discover", "history", "policy check", "describe db.t", "stats db.t",
    "explain db.t id=1", "read db.t", "count db.t", "estimate db.t id=1", "estimate --sql select*from(db.t)",
    "index list db.t", "index drop db.t bloom id", "policy show db.t", "analyze db.t",
    "analyze db.* --dry-run", "maintain --dry-run", "maintain db.t",
)  # fmt: skip


@pytest.mark.parametrize("words", LOOKS)
def test_looking_creates_nothing(words: str, rookery: Rookery, home: Path) -> None:
    """Neither the embedded catalog nor one that is named, and a missing one is not taken for an empty one."""
    code, _, err = rookery(*words.split())
    assert code in (0, 2), err
    uri = f"sqlite:///{home}/new/catalog.db"
    code, out, err = rookery(*words.split(), "--uri", uri)
    if words not in ("doctor", "history", "policy check"):
        assert (code, out) == (2, "")
        assert f"no file {home}/new/catalog.db" in err
        assert "hint: check its uri" in err
    assert list(home.iterdir()) == []


def test_tables(rookery: Rookery, flights: Path) -> None:
    for name in ("nyc.flights", "nyc.other"):
        assert rookery("load", flights, name)[0] == 0
    code, out, _ = rookery("tables", "nyc.f*")
    assert code == 0
    assert out.splitlines()[0] == "1 table"
    assert out.splitlines()[2].split()[:3] == ["lake.nyc.flights", "3", "1"]
    assert rookery("tables", "db.*")[0] == 2


def test_a_table_that_cannot_be_loaded(rookery: Rookery, flights: Path, home: Path) -> None:
    for name in ("nyc.flights", "nyc.other"):
        assert rookery("load", flights, name)[0] == 0
    for path in home.rglob("*.metadata.json"):
        if "other" in str(path):
            path.unlink()
    code, out, _ = rookery("tables", "--output", "json")
    one, other = json.loads(out)["tables"]
    assert (code, one["rows"], other["rows"]) == (1, 3, None)
    assert "cannot be loaded" in other["error"]


def test_describe(rookery: Rookery, flights: Path) -> None:
    rookery(
        "load",
        flights,
        "nyc.flights",
        "--partition",
        "day(day)",
        "--partition",
        "bucket(4, id)",
        "--sort",
        "id",
    )
    code, out, _ = rookery("describe", "nyc.flights")
    assert code == 0
    assert "day(day), bucket(4, id)" in out
    assert "id ASC NULLS FIRST" in out
    assert "append" in out
    described = json.loads(rookery("describe", "nyc.flights", "--output", "json")[1])
    assert [(column["id"], column["name"], column["type"]) for column in described["columns"]] == [
        (1, "id", "long"),
        (2, "origin", "string"),
        (3, "day", "date"),
    ]
    assert described["files"]["rows"] == 3
    assert described["branches"] == {"main": described["snapshots"][0]["id"]}


class TestDidYouMean:
    def test_a_table(self, rookery: Rookery, flights: Path) -> None:
        rookery("load", flights, "nyc.flights")
        for name in ("nyc.flihgts", "db.flights", "flights"):
            code, _, err = rookery("stats", name)
            assert code == 2
            assert "did you mean nyc.flights?" in err

    def test_nothing_like_it(self, rookery: Rookery, flights: Path) -> None:
        rookery("load", flights, "nyc.flights")
        err = rookery("stats", "db.zzz")[2]
        assert "did you mean" not in err
        assert "rookery tables" in err

    def test_of_an_empty_catalog(self, rookery: Rookery) -> None:
        assert "rookery load" in rookery("stats", "db.t")[2]

    @pytest.mark.parametrize(
        ("word", "meant"), [("analize", "analyze"), ("statsu", "status"), ("lod", "load")]
    )
    def test_a_command(self, word: str, meant: str, rookery: Rookery) -> None:
        code, _, err = rookery(word, "db.t")
        assert code == 2
        assert "Did you mean" in err
        assert f"'{meant}'" in err


class TestMetadataFile:
    @pytest.fixture
    def metadata(self, rookery: Rookery, flights: Path, home: Path) -> Path:
        """The metadata file of a table that no catalog knows."""
        rookery("load", flights, "nyc.flights", "--partition", "day(day)")
        (path,) = home.rglob("*.metadata.json")
        (database,) = home.rglob("catalog.db")
        database.unlink()
        return path

    def test_what_reads(self, rookery: Rookery, metadata: Path) -> None:
        assert rookery("count", metadata, "id > 1")[:2] == (0, "2\n")
        code, out, _ = rookery("read", f"file://{metadata}", "id = 1", "--output", "json")
        assert (code, json.loads(out)) == (0, [{"id": 1, "origin": "AMS", "day": "2024-01-01"}])
        explained = json.loads(rookery("explain", metadata, "day = '2024-01-01'", "--output", "json")[1])
        assert [stage["files_out"] for stage in explained["stages"]][-1] == 1
        for command in ("describe", "stats", "estimate"):
            code, out, err = rookery(command, metadata)
            assert (code, err) == (0, "")
            assert str(metadata) in out

    @pytest.mark.parametrize(
        "words",
        [
            ("analyze", "PATH"),
            ("status", "PATH"),
            ("tables", "PATH"),
            ("maintain", "PATH"),
            ("index", "add", "PATH", "bloom", "id"),
            ("index", "drop", "PATH", "bloom", "id"),
            ("load", "PATH", "PATH"),
        ],
    )
    def test_what_needs_a_catalog(self, words: tuple[str, ...], rookery: Rookery, metadata: Path) -> None:
        before = sorted(metadata.parents[3].rglob("*"))
        code, out, err = rookery(*(metadata if word == "PATH" else word for word in words))
        assert (code, out) == (2, "")
        assert "is a metadata file" in err
        assert "hint: describe, stats" in err
        assert not [path for path in metadata.parents[3].rglob("*.rookery") if path not in before]

    def test_a_file_that_is_not_there(self, rookery: Rookery, tmp_path: Path) -> None:
        code, _, err = rookery("count", tmp_path / "v1.metadata.json")
        assert code == 2
        assert "cannot be read" in err
        assert "Spark" not in err
