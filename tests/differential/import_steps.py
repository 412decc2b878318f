"""Files that were not written for the table: added as they are, and replaced under the same names."""

from __future__ import annotations

from pathlib import Path as FilePath

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
from pyarrow.lib import ArrowNotImplementedError

from tests.differential.columns import rows
from tests.differential.history import History
from tests.differential.snapshot_steps import analyze


def add_files(history: History) -> None:
    """Add files without field ids, in Parquet or ORC."""
    if history.parts:
        return
    rng = history.rng
    kind = rng.choice(("parquet", "parquet", "parquet" if history.beyond_orc else "orc"))
    history.orc |= kind == "orc"
    folder = history.folder() / "imported" / f"{len(history.steps)}-{kind}"
    folder.mkdir(parents=True)
    files = [folder / f"part-{number}.{kind}" for number in range(rng.choice((1, 2)))]
    if all(_write(history, file) for file in files) and _add(history, files):
        if rng.random() < 0.6:
            analyze(history)
        if rng.random() < 0.6:
            _write_again(history, files)


def _write(history: History, file: FilePath) -> bool:
    table = rows(history.rng, history.columns, history.rng.choice((5, 20, 60)))
    history.note(f"write {table.num_rows} rows to {file.parent.name}/{file.name}")
    try:
        if file.suffix == ".orc":
            orc.write_table(_utc(table), file)
        else:
            pq.write_table(_utc(table), file)
    except (ArrowNotImplementedError, pa.ArrowInvalid) as error:
        history.refused(error)
        return False
    return True


def _utc(table: pa.Table) -> pa.Table:
    """Dictionaries and extensions are unknown to other writers."""
    return table.replace_schema_metadata(None)


def _add(history: History, files: list[FilePath]) -> bool:
    folder = files[0].parent
    call = (
        f"CALL lake.system.add_files(table => '{history.short}', "
        f"source_table => '`{files[0].suffix[1:]}`.`{folder}`', check_duplicate_files => false)"
    )
    if not history.sql(call, may_fail=True):
        return False
    history.committed()
    return True


def _write_again(history: History, files: list[FilePath]) -> None:
    """Take files out of the table, write others under their names, add those."""
    history.note(f"take out {[file.name for file in files]}")
    history.world.java.remove_files(history.name, [file.parent.name + "/" + file.name for file in files])
    history.changed()
    if history.rng.random() < 0.5:
        analyze(history)
    if all(_write(history, file) for file in files) and _add(history, files):
        history.versions.clear()  # what they have is no longer there
        history.branches.clear()
    if history.rng.random() < 0.4:
        analyze(history)
