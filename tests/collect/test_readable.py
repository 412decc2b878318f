"""What Spark can read of a table, by the types of its columns and the formats of its files."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from rookery.collect.column_sets import column_set_field
from rookery.collect.readable import (
    has_other_text,
    needs_engine,
    readable_only,
    refused,
    skipped_files,
    unreadable,
    why_not_sketched,
    why_skipped,
)
from rookery.model import Field, Snapshot

AT = Snapshot(1, None, 1, 0, None, None)
ID, WORD, CLOCK = Field(1, "id", "long"), Field(2, "word", "string"), Field(3, "clock", "time")
FILES = pa.table(
    {
        "format": ["parquet", "orc", "avro", "parquet", "parquet", "parquet"],
        "deletes": ["", "", "", "d", None, ""],
        "partition": ["[]", "[]", "[]", "[]", '["plain"]', '["not \\ufffd utf-8"]'],
    }
)


def table(*fields: Field, not_loadable: str | None = None) -> Any:
    return cast(Any, SimpleNamespace(fields=lambda snapshot=None: fields, not_loadable=not_loadable))


def test_a_table_that_spark_reads() -> None:
    plain = table(ID, WORD)
    assert refused(plain, AT) is None
    assert (unreadable(plain, AT), readable_only(plain, AT)) == (frozenset(), None)


@pytest.mark.parametrize("kind", ["time", "timestamp_ns", "timestamptz_ns", "geometry", "of the future"])
def test_a_column_that_spark_refuses_is_left_out(kind: str) -> None:
    other = Field(3, "clock", kind)
    found = table(ID, WORD, other)
    assert refused(found, AT) == f"Spark cannot read 'clock', a column of type {kind}"
    assert (unreadable(found, AT), readable_only(found, AT)) == ({3}, [1, 2])


def test_a_variant_is_known_to_spark_but_not_read() -> None:
    variant = Field(4, "v", "variant")
    assert unreadable(table(ID, variant), AT) == frozenset()
    assert unreadable(table(ID, variant, CLOCK), AT) == {3, 4}


def test_of_a_list_or_map_all_is_left_out_of_a_struct_one_leaf() -> None:
    inside = [Field(5, "m.key", "long", repeated=True), Field(6, "m.value", "time", repeated=True)]
    struct = [Field(8, "s.a", "long"), Field(9, "s.b", "time")]
    assert unreadable(table(ID, *inside, *struct), AT) == {5, 6, 9}


def test_a_table_that_cannot_be_loaded_has_no_readable_column() -> None:
    foreign = table(ID, WORD, not_loadable="Java does not know a type")
    assert refused(foreign, AT) == "Java does not know a type"
    assert (unreadable(foreign, AT), readable_only(foreign, AT)) == ({1, 2}, [])


def test_files_for_the_engine() -> None:
    """Other formats, files with deletes, and those whose partition has other text than the file."""
    assert needs_engine(FILES).tolist() == [False, True, True, True, False, True]
    assert has_other_text(FILES).tolist() == [False] * 5 + [True]


def test_files_in_which_a_column_cannot_be_read() -> None:
    assert not skipped_files(FILES, ID, frozenset()).any()
    assert skipped_files(FILES, CLOCK, {3}).tolist() == [False, True, True, False, False, False]
    assert skipped_files(FILES, ID, {3}).tolist() == [False, False, True, False, False, False]
    both = column_set_field(("id", "clock"), [ID, CLOCK])
    assert skipped_files(FILES, both, {3}).tolist() == skipped_files(FILES, CLOCK, {3}).tolist()
    others = column_set_field(("id", "word"), [ID, WORD])
    assert skipped_files(FILES, others, {3}).tolist() == skipped_files(FILES, ID, {3}).tolist()


def test_reasons() -> None:
    plain, foreign = table(ID), table(ID, not_loadable="it has a type of the future")
    shape = Field(9, "shape", "geometry")
    assert why_not_sketched(plain, shape) == "columns of type geometry are not analyzed"
    assert why_not_sketched(foreign, shape).endswith("so nothing is registered for other engines")
    assert why_skipped(plain, CLOCK, 1, {3}).endswith("of type time from ORC and Avro; 1 file not covered")
    assert why_skipped(plain, ID, 2, {3}).startswith("Spark cannot read Avro files of a table with")
    assert why_skipped(foreign, ID, 2, {3}).startswith(
        "Spark cannot read ORC and Avro files of this table, as it has"
    )
