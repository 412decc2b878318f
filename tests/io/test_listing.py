"""Folders listed with sizes and ages, hidden files and links among them; on disk and by fsspec."""

from __future__ import annotations

import os
import time
from pathlib import Path

import fsspec
import pytest

from rookery.io import list_folder
from rookery.model import StorageError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, size in (("a.txt", 3), (".hidden.tmp", 1), ("deep/er/b", 5)):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x" * size)
    os.utime(tmp_path / "a.txt", (1000, 2000))
    return tmp_path


@pytest.mark.parametrize("prefix", ["", "file:", "file://"])
def test_all_below(folder: Path, prefix: str) -> None:
    where = f"{prefix}{folder}"
    found = {file.location.removeprefix(f"{where}/"): file for file in list_folder(f"{where}/")}
    assert {name: file.size for name, file in found.items()} == {".hidden.tmp": 1, "a.txt": 3, "deep/er/b": 5}
    assert found["a.txt"].modified == 2000
    assert found["deep/er/b"].name == "b"


def test_one_level(folder: Path) -> None:
    assert [file.name for file in list_folder(str(folder), recursive=False)] == [".hidden.tmp", "a.txt"]


def test_nothing_there(tmp_path: Path) -> None:
    assert list_folder(f"{tmp_path}/none") == []


def test_links(folder: Path) -> None:
    """One that leads nowhere is listed, one to a folder is followed, a circle ends."""
    (folder / "nowhere").symlink_to(folder / "nowhere")
    (folder / "deep" / "up").symlink_to(folder)
    (folder / "side").symlink_to(folder / "deep" / "er")
    names = {file.location.removeprefix(f"{folder}/") for file in list_folder(str(folder))}
    assert names == {"nowhere", "a.txt", ".hidden.tmp", "deep/er/b", "side/b"}


def test_a_file_in_its_place(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="Not a directory"):
        list_folder(f"{tmp_path}/file")


def test_what_does_not_tell_its_age_is_young() -> None:
    memory = fsspec.filesystem("memory")
    memory.pipe_file("/listed/one", b"12")
    before = time.time()
    (found,) = list_folder("memory://listed")
    assert (found.size, found.name) == (2, "one")
    assert found.modified >= before - 60
    assert list_folder("memory://none-such") == []
