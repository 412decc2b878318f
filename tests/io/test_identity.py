"""Whether two locations may be one file: every doubt counts, and what is surely another is another."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rookery.io import Listed, list_folder
from rookery.io.identity import Identities, Listing, path_keys
from rookery.io.moving import delete_file, move_file

SAME = [
    ("s3://b/t/x", "s3a://b/t/x"),
    ("s3n://b/t/x", "s3://b/t//x"),
    ("s3://b/t/./x", "s3://b/t/y/../x"),
    ("s3://b/t/a b", "s3://b/t/a%20b"),
    ("s3://b/t/a%2520b", "s3://b/t/a b"),
    ("s3://b/t/X.Parquet", "s3://b/t/x.parquet"),
    ("s3://b/t/x", "s3://b-alias/t/x"),
    ("s3://b/t/x", "https://b.s3.amazonaws.com/t/x"),
    ("s3://b/t/x", "http://localhost:9000/b/t/x"),
    ("abfss://c@a.dfs.core.windows.net/t/x", "wasbs://c@a.blob.core.windows.net/t/x"),
    ("hdfs://name:8020/t/x", "/t/x"),
    ("hdfs:///t/x", "hdfs://other/t/x"),
    ("file:/t/x", "file:///t/x"),
    ("file://localhost/t/x", "/t/x"),
    ("s3://b/t/" + unicodedata.normalize("NFD", "ünï"), "s3://b/t/" + unicodedata.normalize("NFC", "ünï")),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_names_of_one_file(one: str, other: str) -> None:
    assert path_keys(one) & path_keys(other)
    listing = Listing(one.rpartition("/")[0], [Listed(one, 1, 0.0)])
    assert listing.account([other]).matched.tolist() == [True]


@pytest.mark.parametrize(
    ("one", "other"), [("s3://b/t/x", "s3://b/t/y"), ("/t/x/a", "/t/y/a"), ("/t/x", "/t")]
)
def test_names_of_two_files(one: str, other: str) -> None:
    assert not path_keys(one) & path_keys(other)


@given(st.text(max_size=20), st.text(max_size=20))
def test_any_text_is_its_own_name_by_any_scheme(folder: str, name: str) -> None:
    path = f"/t/{folder}/{name}"
    assert path_keys(path) & path_keys(f"s3://bucket{path}") & path_keys(f"file:{path}")
    assert Identities().of(path) >= path_keys(path)


def listed(folder: Path) -> Listing:
    return Listing(str(folder), list_folder(str(folder), links=False))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "real" / "t").mkdir(parents=True)
    (tmp_path / "real" / "t" / "x").write_text("x")
    (tmp_path / "alias").symlink_to(tmp_path / "real")
    return tmp_path


@pytest.mark.parametrize(
    "name", ["alias/t/x", "real/../alias/t/x", "real//t/./x", "hard", "soft", "real/t/X", "alias/t/%78"]
)
def test_local_names_of_one_file(folder: Path, name: str) -> None:
    os.link(folder / "real" / "t" / "x", folder / "hard")
    (folder / "soft").symlink_to(folder / "alias" / "t" / "x")
    for prefix in ("", "file:", "file://"):
        found = listed(folder / "real" / "t").account([f"{prefix}{folder}/{name}"])
        assert found.matched.tolist() == [True]
        assert found.absent == found.doubtful == ()


def test_what_exists_elsewhere_is_elsewhere(folder: Path) -> None:
    """Even by the same last name: Hive gives all files the same few."""
    (folder / "x").write_text("x")
    found = listed(folder / "real" / "t").account([str(folder / "x"), str(folder / "real" / "none")])
    assert not found.matched.any()
    assert found.absent == found.doubtful == ()


def test_what_should_be_listed_and_is_not(folder: Path) -> None:
    listing = listed(folder / "real" / "t")
    by_link = f"{folder}/alias/t/data/gone"
    assert listing.account([by_link]).absent == (by_link,)
    nowhere = f"{folder}/no-link-any-more/t/x"
    assert listing.account([nowhere]).doubtful == (nowhere,)
    assert listing.account([nowhere]).matched.all()
    store = Listing("s3://b/t", [Listed("s3://b/t/x", 1, 0.0)])
    names = ["s3://b/t/gone", "s3://b/other/x", "s3://data/t/gone", "viewfs://cluster/mount/x", "gs://c/y"]
    found = store.account(names)
    assert (found.absent, found.doubtful) == (("s3://b/t/gone",), ("viewfs://cluster/mount/x",))


def test_folders_by_any_name(folder: Path) -> None:
    (folder / "real" / "t" / "below").mkdir()
    (folder / "real" / "t" / "below" / "y").write_text("y")
    listing = listed(folder / "real" / "t")
    assert listing.inside([f"file:{folder}/alias/t/below"]).tolist() == [True, False]
    assert listing.inside([f"{folder}/alias"]).tolist() == [False, False]
    assert listing.is_folder(f"{folder}/alias/t/")
    assert listing.contains(f"{folder}/alias/t/new")
    assert not listing.contains(str(folder))
    for root in ("/", "s3://bucket", "s3://bucket/"):
        assert Listing(root, ()).contains("s3://bucket/t")


def test_moved_and_deleted(folder: Path) -> None:
    source, target = folder / "real" / "t" / "x", folder / "trash" / "deep" / "x"
    move_file(f"file:{source}", str(target), {})
    assert (source.exists(), target.read_text()) == (False, "x")
    source.write_text("another")
    with pytest.raises(Exception, match="exists"):
        move_file(str(source), str(target), {})
    assert source.exists()
    move_file(str(source), "memory://trash/x", {})
    assert not source.exists()
    move_file("memory://trash/x", str(source), {})
    assert source.read_text() == "another"
    delete_file(f"file://{source}", {})
    delete_file(str(source), {})
    delete_file("memory://trash/x", {})
    assert not source.exists()


def test_moved_across_file_systems(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the disk has only one, it says that it has two."""
    source, target = folder / "real" / "t" / "x", folder / "trash" / "x"

    def refuse(*_: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "rename", refuse)
    move_file(str(source), str(target), {})
    assert (source.exists(), target.read_text()) == (False, "x")
