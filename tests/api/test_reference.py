"""The Python reference names everything that is public."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from tests.api.public import public_calls, public_names

PAGE = Path(__file__).resolve().parents[2] / "docs" / "python.md"


def missing(page: str, groups: Iterable[set[str]]) -> list[str]:
    """The objects of which no name has a line of code of its own."""
    named = set(re.findall(r"^    ([\w.]+)", page, re.M))
    return sorted(min(names) for names in groups if not names & named)


def objects() -> list[set[str]]:
    """The full names of each public object: some are exported twice."""
    groups: dict[int, set[str]] = {}
    for name, found in public_names().items():
        groups.setdefault(id(found), set()).add(name)
    return list(groups.values())


def test_every_public_name_is_in_the_reference() -> None:
    page = PAGE.read_text()
    assert len(objects()) > 50
    assert missing(page, objects()) == []
    methods = {name.partition(".")[2] for name in public_calls() if not name.startswith("rookery.")}
    assert missing(page, [{name} for name in methods]) == []


def test_a_name_that_is_not_there_is_found() -> None:
    page = "### copy\n\n    rookery.api.puffin_files.copy(source: str)\n\nIt copies, as `payload` does.\n"
    assert missing(page, [{"rookery.api.puffin_files.copy", "rookery.copy"}]) == []
    assert missing(page, [{"rookery.api.puffin_files.payload"}]) == ["rookery.api.puffin_files.payload"]
