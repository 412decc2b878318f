"""Damage to segments and states, byte by byte and file by file: no answer changes, and it is not silent.

No JVM: a table of PyIceberg, whose every column is served by one stage of the cascade alone.
"""

from __future__ import annotations

import json
import logging
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from rookery.api.where import bind
from rookery.indexes.bitmap import bitmaps_of, directory_of, whole_index
from rookery.indexes.bloom import matrices, probe
from rookery.model.cache import clear_caches
from rookery.prune.cascade import prune
from rookery.prune.fileset import file_set
from rookery.puffin import open_puffin
from rookery.puffin.layout import HEADER_SIZE
from rookery.sidecar import Segment, SegmentEntry
from rookery.sketch.blob_types import HEAD_SIZE
from tests.collect.plain import PlainTable

SEED = 20240503
FILES, ROWS = 6, 120
SCHEMA = pa.schema(
    [("id", pa.int64()), ("key", pa.int64()), ("word", pa.string()), ("n", pa.int32()), ("day", pa.int64())]
)
PREDICATES = {
    "id = 100": "bloom filter check",
    "id IN (7, 8, 1203)": "bloom filter check",
    "key = 31": "inverted theta",
    "word = 'w5'": "bitmap",
    "word = 'w3' AND n IS NULL": "bitmap",
    "n = 5": "bitmap",
    "n = 1 AND id = 345": "bloom filter check",
    "day = 4": "manifest file scan",
}


def file_rows(number: int) -> pa.Table:
    """Rows whose ids and keys lie across the same ranges in every file, so that bounds say nothing."""
    at = range(ROWS)
    return pa.table(
        {
            "id": pa.array([row * FILES + number + (0 if row else -number) for row in at], pa.int64()),
            "key": pa.array([(row * FILES + number) % 97 if 0 < row < 20 else row % 2 * 96 for row in at]),
            "word": ["w0", "w9", *(f"w{row % (2 + number)}" for row in at[2:])],
            "n": pa.array([_n(row, number) for row in at], pa.int32()),
            "day": pa.array([number] * ROWS, pa.int64()),
        },
        schema=SCHEMA,
    )


def _n(row: int, number: int) -> int | None:
    """A null now and then, and no 5 in one of the files."""
    return (0 if (number, row % 7) == (4, 5) else row % 7) if row % 11 else None


@dataclass
class Kept:
    """A table, what is kept of it, and what is true."""

    table: PlainTable
    copy: Path
    rows: list[dict[str, Any]]

    def __post_init__(self) -> None:
        self.loaded = self.table.load()
        self.true = {where: self._true(where) for where in PREDICATES}
        self.paths = {row["path"] for row in self._files().to_pylist()}
        clear_caches()
        self.funnels = {where: self.funnel(where) for where in PREDICATES}

    @property
    def folder(self) -> Path:
        return Path(self.table.store.location)

    def restore(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.copy, self.folder)
        clear_caches()

    def _files(self) -> pa.Table:
        snapshot = self.loaded.snapshot()
        assert snapshot is not None
        return file_set(self.loaded, self.table.store, snapshot).files

    def _true(self, where: str) -> list[dict[str, Any]]:
        """The rows by Python's own judgement."""
        text = where.replace("AND", "and").replace("IS NULL", "is None").replace("IN", "in")
        code = compile(text.replace(" = ", " == "), "where", "eval")
        found = [row for row in self.rows if eval(code, {}, row)]
        return sorted(found, key=repr)

    def funnel(self, where: str) -> tuple[dict[str, int], list[str]]:
        """How many files each stage leaves, and the notes; no file that matches is left out."""
        snapshot = self.loaded.snapshot()
        assert snapshot is not None
        files = file_set(self.loaded, self.table.store, snapshot)
        assert set(files.files["path"].to_pylist()) == self.paths
        assert len(files) == FILES
        predicate = bind(where, self.loaded, snapshot, "UTC")
        pruning = prune(self.loaded, snapshot, files, predicate)
        days = files.files["path"].take(pruning.numbers).to_pylist()
        holding = {self.path_of(row["day"]) for row in self.true[where]}
        assert holding <= set(days), where
        left = {stage.name: stage.files_out for stage in pruning.stages}
        return left, [*files.notes, *(stage.note for stage in pruning.stages)]

    def path_of(self, day: int) -> str:
        if not hasattr(self, "_paths"):
            tasks = self.loaded.table.scan().plan_files()
            self._paths = {
                int.from_bytes(task.file.lower_bounds[5], "little"): task.file.file_path for task in tasks
            }
        return self._paths[day]

    def assert_right(self, warnings: list[str], *chosen: str) -> bool:
        """The files left hold all rows; where fewer are skipped than should be, somebody says so."""
        noticed = False
        for where in chosen or self.funnels:
            good, good_notes = self.funnels[where]
            found, notes = self.funnel(where)
            if found != good:
                noticed = True
                assert warnings or set(notes) - set(good_notes), (where, good, found)
        return noticed or bool(warnings)

    def assert_answers(self) -> None:
        """What people call gives exactly the right rows."""
        for where, rows in self.true.items():
            assert self.table.read(where, self.loaded) == rows, where
            assert self.table.count(where, self.loaded) == len(rows), where
            report = self.table.explain(where, self.loaded)
            assert {self.path_of(row["day"]) for row in rows} <= {file.path for file in report.files}


@pytest.fixture(scope="module")
def kept_once(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    table = PlainTable(tmp_path_factory.mktemp("damaged"), SCHEMA)
    table.table.transaction().set_properties({"write.parquet.row-group-limit": "50"}).commit_transaction()
    for number in range(FILES):
        table.append(file_rows(number))
        if number == FILES // 2:
            table.add_index("bloom", "id")
            table.add_index("bitmap", "word")
            table.analyse("key")
    table.analyse("key")
    table.add_index("bitmap", "n")
    table.analyse("key")  # so that there are segments of nothing but an index
    copy = tmp_path_factory.mktemp("kept") / "copy"
    shutil.copytree(table.store.location, copy)
    clear_caches()
    return Kept(table, copy, [row for number in range(FILES) for row in file_rows(number).to_pylist()])


@pytest.fixture
def kept(kept_once: Kept) -> Iterator[Kept]:
    kept_once.restore()
    yield kept_once
    kept_once.restore()


@pytest.fixture
def warnings() -> Iterator[list[str]]:
    """What the project warns of, from now on."""
    found: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(record.getMessage())

    listener = Listener(logging.WARNING)
    logger = logging.getLogger("rookery")
    before = logger.propagate
    logger.addHandler(listener)
    logger.propagate = False  # thousands of them
    yield found
    logger.removeHandler(listener)
    logger.propagate = before


# -- that the table is what the tests need


def test_each_stage_has_its_column(kept: Kept) -> None:
    """Else the tests below could not fail."""
    for where, stage in PREDICATES.items():
        left = kept.funnels[where][0]
        names = list(left)
        before = left[names[names.index(stage) - 1]]
        assert left[stage] < before, (where, left)
        assert kept.true[where], where
    kept.assert_answers()
    kinds = set()
    for path in kept.table.segment_paths():
        with open_puffin(path) as reader:
            kinds.add(frozenset(blob.type for blob in reader.metadata.blobs))
    assert len(kinds) == 2  # everything; an index alone
    assert max(map(len, kinds)) == 4


# -- files that the state does not list


@pytest.mark.parametrize("missing", range(FILES))
def test_a_file_that_is_in_no_segment(kept: Kept, missing: int) -> None:
    """Whatever a state leaves out of manifests that it has seen is found there."""
    state = kept.table.prepared("key").state
    assert state is not None
    keys = state.files["key"].combine_chunks()
    listed = state.files.filter(pc.not_equal(keys, keys.unique()[missing]))
    assert listed.num_rows > FILES  # the others are in two segments
    kept.table.store.write_state(replace(state, files=listed.combine_chunks()))
    clear_caches()
    kept.assert_answers()


# -- bytes


@dataclass(frozen=True)
class Region:
    """Bytes of a file that mean one thing."""

    name: str
    start: int
    end: int


def regions(path: Path) -> list[Region]:
    """All bytes of a segment, by what they mean; those of the footer by the parts of its JSON."""
    data = path.read_bytes()
    found = [Region("magic", 0, HEADER_SIZE)]
    with open_puffin(path) as reader:
        for blob in reader.metadata.blobs:
            name = f"{blob.type} {list(blob.fields)}"
            head = int(blob.properties.get(HEAD_SIZE, "0"))
            if head:
                found.append(Region(f"{name} head", blob.offset, blob.offset + head))
            found.append(Region(f"{name} body", blob.offset + head, blob.end))
        start = reader.footer_start
    found.append(Region("footer magic", start, start + 4))
    payload = data[start + 4 : -12]
    for part in _json_parts(payload):
        found.append(Region(f"footer {part[0]}", start + 4 + part[1], start + 4 + part[2]))
    found.append(Region("tail", len(data) - 12, len(data)))
    return found


def _json_parts(payload: bytes) -> Iterator[tuple[str, int, int]]:
    """Each key with its value, wherever it stands; lists are one value."""
    text = payload.decode()
    json.loads(text)
    for key in (
        "fields", "offset", "length", "type", "theta", "checksum", "head-size", "head-checksum",
        "snapshot-id", "sequence-number", "compression-codec", "properties",
    ):  # fmt: skip
        at = text.find(f'"{key}"')
        while at >= 0:
            end = min((e for e in (text.find(",", at), text.find("}", at)) if e >= 0), default=len(text))
            yield key, at, end
            at = text.find(f'"{key}"', end)


def mutants(data: bytes, region: Region, chance: random.Random, count: int) -> Iterator[bytes]:
    """Flip a bit, write a digit over a digit, write zeros, or cut a piece out and pad it, in the region."""
    for _ in range(count):
        changed = bytearray(data)
        at = chance.randrange(region.start, region.end)
        kind = chance.randrange(4)
        if kind == 0:
            changed[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            digits = [place for place in range(region.start, region.end) if chr(data[place]).isdigit()]
            at = chance.choice(digits) if digits else at
            changed[at] = ord(chance.choice("0123456789"))
        elif kind == 2:
            end = min(at + 4, region.end)
            changed[at:end] = bytes(end - at)
        else:
            end = min(at + chance.randrange(1, 9), region.end)
            changed[at:end] = changed[at:end][::-1]
        if changed != data:
            yield bytes(changed)


def test_every_region_of_every_segment(kept: Kept, warnings: list[str]) -> None:
    chance = random.Random(SEED)
    tried = noticed = 0
    for path in kept.table.segment_paths():
        whole = path.read_bytes()
        for region in regions(path):
            if region.end <= region.start:
                continue
            for changed in mutants(whole, region, chance, 1 if "footer" in region.name else 2):
                path.write_bytes(changed)
                clear_caches()
                warnings.clear()
                noticed += kept.assert_right(warnings, *chance.sample(list(PREDICATES), 3))
                tried += 1
        path.write_bytes(whole)
    assert tried > 100
    assert noticed > 0.5 * tried


def test_every_byte_of_the_footer_is_noticed_at_opening(kept: Kept) -> None:
    """Whatever a footer says, it is the footer that the state means, or none."""
    from rookery.model import RookeryError

    store = kept.table.store
    state = kept.table.prepared("key").state
    assert state is not None
    chance = random.Random(SEED)
    for entry in state.header.segments:
        path = Path(store.path(entry.name))
        whole = path.read_bytes()
        with store.open_segment(entry) as opened:
            good = opened._reader.metadata
        silent = 0
        for at in range(entry.size - entry.footer_size + chance.randrange(2), entry.size, 2):
            changed = bytearray(whole)
            changed[at] ^= 1 << chance.randrange(8)
            path.write_bytes(changed)
            try:
                with store.open_segment(entry) as opened:
                    assert opened._reader.metadata == good
                silent += 1
            except RookeryError:
                pass
        path.write_bytes(whole)
        assert silent == 0


def test_every_byte_of_the_payloads(kept: Kept) -> None:
    """Each part of a segment reads as it was written, or not at all."""
    from rookery.model import RookeryError

    store = kept.table.store
    state = kept.table.prepared("key").state
    assert state is not None
    hashes = [hash_of * 0x9E3779B97F4A7C15 % 2**64 for hash_of in range(12)]

    def parts(entry: SegmentEntry) -> Iterator[Callable[[Segment], object]]:
        yield lambda opened: opened.files.to_pydict()
        for number in range(1, 6):
            yield lambda opened, n=number: opened.zone_column(n).to_pydict()
        for number in entry.field_ids:
            yield lambda opened, n=number: opened.thetas(frozenset({n}))[n].encode()
        for index in entry.indexes:
            number = index.field_id
            if index.kind == "bloom":
                yield lambda opened, n=number: [(o.tolist(), m.tolist()) for o, m in probe(opened, n, hashes)]
                yield lambda opened, n=number: [matrix.encode() for matrix in matrices(opened, n)]
            else:
                yield lambda opened, n=number: bitmaps_of(
                    opened, n, range(len(directory_of(opened, n).sizes))
                )
                yield lambda opened, n=number: whole_index(opened, n).encode()

    chance = random.Random(SEED)
    tried = missed = 0
    for entry in state.header.segments:
        path = Path(store.path(entry.name))
        whole = path.read_bytes()
        with store.open_segment(entry) as opened:
            good = [read(opened) for read in parts(entry)]
        for at in range(chance.randrange(16), entry.size - entry.footer_size, 16):
            changed = bytearray(whole)
            changed[at] ^= 1 << chance.randrange(8)
            path.write_bytes(changed)
            refused = 0
            with store.open_segment(entry) as opened:
                for read, expected in zip(parts(entry), good, strict=True):
                    try:
                        assert read(opened) == expected, at
                    except RookeryError:
                        refused += 1
            tried += 1
            missed += not refused
        path.write_bytes(whole)
    assert tried > 500
    assert missed < 0.01 * tried  # the magic at the start


# -- files


def truncated(kept: Kept, path: Path, chance: random.Random) -> None:
    data = path.read_bytes()
    region = chance.choice(regions(path))
    path.write_bytes(data[: chance.choice([region.start, region.end - 1, 0, len(data) - 1])])


def lengthened(kept: Kept, path: Path, chance: random.Random) -> None:
    data = path.read_bytes()
    at = chance.choice(regions(path)).start
    path.write_bytes(data[:at] + b"\0" * chance.randrange(1, 9) + data[at:])


def deleted(kept: Kept, path: Path, chance: random.Random) -> None:
    path.unlink()


def made_a_folder(kept: Kept, path: Path, chance: random.Random) -> None:
    path.unlink()
    path.mkdir()


def replaced(kept: Kept, path: Path, chance: random.Random) -> None:
    others = [other for other in kept.table.segment_paths() if other != path]
    path.write_bytes(chance.choice(others).read_bytes())


def replaced_by_a_state(kept: Kept, path: Path, chance: random.Random) -> None:
    path.write_bytes(chance.choice(sorted(kept.folder.glob("state-*"))).read_bytes())


def blobs_swapped(kept: Kept, path: Path, chance: random.Random) -> None:
    """Payloads change places with others of the same kind, or are laid over them, here or elsewhere."""
    other = chance.choice(kept.table.segment_paths())
    with open_puffin(path) as reader, open_puffin(other) as others:
        blob = chance.choice(reader.metadata.blobs)
        alike = [each for each in others.metadata.blobs if each.type == blob.type]
        taken = others.read_stored(chance.choice(alike or [blob]))
    data = bytearray(path.read_bytes())
    data[blob.offset : blob.offset + min(len(taken), blob.length)] = taken[: blob.length]
    path.write_bytes(data)


def footers_swapped(kept: Kept, path: Path, chance: random.Random) -> None:
    other = chance.choice([each for each in kept.table.segment_paths() if each != path])
    with open_puffin(path) as reader, open_puffin(other) as others:
        start, other_start = reader.footer_start, others.footer_start
    path.write_bytes(path.read_bytes()[:start] + other.read_bytes()[other_start:])


DAMAGES: list[Callable[[Kept, Path, random.Random], None]] = [
    truncated, lengthened, deleted, made_a_folder, replaced, replaced_by_a_state, blobs_swapped,
    footers_swapped,
]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_segments_damaged(
    kept: Kept, warnings: list[str], damage: Callable[[Kept, Path, random.Random], None]
) -> None:
    chance = random.Random(SEED)
    noticed = 0
    for turn, name in enumerate(path.name for path in kept.table.segment_paths()):
        damage(kept, kept.folder / name, chance)
        clear_caches()
        warnings.clear()
        noticed += kept.assert_right(warnings)
        if turn < 2:
            clear_caches()
            kept.assert_answers()
        kept.restore()
    assert noticed


def test_all_segments_damaged_at_once(kept: Kept, warnings: list[str]) -> None:
    for path in kept.table.segment_paths():
        path.write_bytes(path.read_bytes()[:-3])
    clear_caches()
    assert kept.assert_right(warnings)
    kept.assert_answers()


def test_bloom_rows_of_two_columns_or_segments_are_told_apart(tmp_path: Path) -> None:
    """Matrices of one shape, whose heads differ in nothing but what they hold."""
    table = PlainTable(tmp_path, pa.schema([("a", pa.int64()), ("b", pa.int64()), ("z", pa.int64())]))
    for number in range(2):
        values = {name: pa.array([number * 100 + offset, 900]) for name, offset in (("a", 1), ("b", 50))}
        table.append(pa.table({**values, "z": pa.array([1, 2])}))
    table.add_index("bloom", "a")
    table.add_index("bloom", "b")
    table.analyse("z")
    (path,) = table.segment_paths()
    with open_puffin(path) as reader:
        a, b = [blob for blob in reader.metadata.blobs if "bloom" in blob.type]
        first, second = reader.read_stored(a), reader.read_stored(b)
    assert (a.length, a.properties[HEAD_SIZE]) == (b.length, b.properties[HEAD_SIZE])
    clear_caches()
    assert [file.rows for file in table.explain("a = 101").files] == [2]
    data = bytearray(path.read_bytes())
    data[a.offset : a.end], data[b.offset : b.end] = second, first
    path.write_bytes(data)
    clear_caches()
    assert table.read("a = 101") == [{"a": 101, "b": 150, "z": 1}]
    assert table.count("b = 50") == 1


# -- states


def test_bytes_of_states(kept: Kept, warnings: list[str]) -> None:
    chance = random.Random(SEED)
    names = sorted(path.name for path in kept.folder.glob("state-*"))
    noticed = 0
    for _ in range(200):
        path = kept.folder / chance.choice(names[-2:])
        whole = path.read_bytes()
        changed = next(mutants(whole, Region("all", 0, len(whole)), chance, 9))
        path.write_bytes(changed)
        clear_caches()
        warnings.clear()
        noticed += kept.assert_right(warnings)
        path.write_bytes(whole)
    assert noticed > 50


@pytest.mark.parametrize("size", [0, 10, 200, -1])
def test_states_cut(kept: Kept, warnings: list[str], size: int) -> None:
    for path in kept.folder.glob("state-*"):
        path.write_bytes(path.read_bytes()[:size])
    clear_caches()
    assert kept.assert_right(warnings)
    kept.assert_answers()


def test_states_under_each_others_names(kept: Kept, warnings: list[str]) -> None:
    """What counts is what a state says, not what its name does."""
    paths = sorted(kept.folder.glob("state-*"))
    assert len(paths) > 1
    contents = [path.read_bytes() for path in paths]
    for path, content in zip(paths, reversed(contents), strict=True):
        path.write_bytes(content)
    clear_caches()
    kept.assert_answers()


def test_the_folder_of_another_table(kept: Kept, tmp_path: Path, warnings: list[str]) -> None:
    """A table that was made from the same rows has another uuid, and files of other names."""
    other = PlainTable(tmp_path, SCHEMA)
    for number in range(FILES):
        other.append(file_rows(FILES - 1 - number))
    other.add_index("bloom", "id")
    other.analyse("key")
    shutil.rmtree(kept.folder)
    shutil.copytree(other.store.location, kept.folder)
    clear_caches()
    kept.assert_answers()
    assert kept.table.indexes().indexes == ()


def test_nothing_is_left(kept: Kept) -> None:
    shutil.rmtree(kept.folder)
    clear_caches()
    kept.assert_answers()


def test_an_analysis_mends_it(kept: Kept, warnings: list[str]) -> None:
    """Of what is damaged, missing or replaced as a whole, nothing is built upon."""
    for damage in (deleted, replaced, truncated, footers_swapped):
        for path in kept.table.segment_paths()[:1]:
            damage(kept, path, random.Random(SEED))
        clear_caches()
        warnings.clear()
        kept.table.analyse("key")
        assert any("is skipped" in text for text in warnings)
        assert {view.built for view in kept.table.indexes().indexes} == {"built"}
        clear_caches()
        warnings.clear()
        assert not kept.assert_right(warnings)
        kept.assert_answers()
        kept.restore()
