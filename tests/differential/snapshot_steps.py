"""Steps between snapshots: staged and picked, branches, back and forth; and what Rookery does in between."""

from __future__ import annotations

import uuid

import rookery
from rookery.model import UsageError
from tests.differential.columns import paths
from tests.differential.history import History
from tests.differential.row_steps import append, delete, delete_equal, merge, update
from tests.differential.world import configured


def analyze(history: History, snapshot: int | None = None) -> None:
    history.note("analyze" if snapshot is None else f"analyze snapshot {snapshot}")
    rookery.analyze(history.world.spark, history.name, snapshot=snapshot, lake=history.world.lake)


def index(history: History) -> None:
    rng = history.rng
    able = [path for path in paths(history.columns) if path.column.kind != "boolean"]
    if not able:
        return
    path, kind = rng.choice(able), rng.choice(("bloom", "bitmap"))
    handle = rookery.table(history.name, history.world.lake)
    history.note(f"{kind} index on {'.'.join(path.names)}")
    try:
        handle.add_index(kind, ".".join(path.names))
    except UsageError as error:
        history.refused(error)
    if rng.random() < 0.7:
        analyze(history)


def stage_and_pick(history: History) -> None:
    """Write aside, audit, let main go on, publish: the same files get another place in the order."""
    rng, spark = history.rng, history.world.spark
    history.sql(f"ALTER TABLE {history.name} SET TBLPROPERTIES ('write.wap.enabled'='true')")
    key = uuid.uuid4().hex
    history.note("staged by WAP:")
    versions = list(history.versions)
    with configured(spark, {"spark.wap.id": key}):
        append(history)
    history.versions = versions
    snapshots = history.world.lake.load(history.name).snapshots()
    staged = [each.snapshot_id for each in snapshots if each.summary and each.summary.get("wap.id") == key]
    if not staged:
        return
    if rng.random() < 0.7:
        analyze(history, staged[0])
    for _ in range(rng.randrange(3)):
        rng.choice((delete_equal, delete_equal, append, delete))(history)
    call = f"CALL lake.system.cherrypick_snapshot('{history.short}', {staged[0]})"
    if history.sql(call, may_fail=True):
        history.committed()


def branch(history: History) -> None:
    """Let a branch go its own way; its head is a snapshot that main may never have, or goes to later."""
    rng = history.rng
    if history.branches and rng.random() < 0.4:
        name = rng.choice(history.branches)
    else:
        name = f"b{len(history.steps)}"
        ids = [each.snapshot for each in history.versions]
        start = f" AS OF VERSION {rng.choice(ids)}" if ids and rng.random() < 0.3 else ""
        if not history.sql(f"ALTER TABLE {history.name} CREATE BRANCH {name}{start}", may_fail=True):
            return
        history.branches.append(name)
    for _ in range(rng.randrange(1, 3)):
        rng.choice((_insert, _insert, delete, update, merge))(history, f".branch_{name}")
    head = history.world.lake.load(history.name).metadata.refs[name].snapshot_id
    history.remember(head)
    if rng.random() < 0.3:  # most know main alone
        analyze(history, head)
    if rng.random() < 0.4:
        history.sql(f"CALL lake.system.fast_forward('{history.short}', 'main', '{name}')", may_fail=True)


def _insert(history: History, branch: str) -> None:
    rows = f"SELECT * FROM {history.name} LIMIT 7"
    history.sql(f"INSERT INTO {history.name}{branch} {rows}", may_fail=True)


def roll_back(history: History) -> None:
    ids = [each.snapshot for each in history.versions]
    current = history.snapshot()
    if current in ids[1:]:
        target = ids[ids.index(current) - 1]
        call = f"CALL lake.system.rollback_to_snapshot('{history.short}', {target})"
        history.sql(call, may_fail=True)


def rewrite(history: History) -> None:
    call = history.rng.choice(("rewrite_manifests('{}')", "rewrite_data_files('{}')"))
    if history.sql(f"CALL lake.system.{call.format(history.short)}", may_fail=True):
        history.committed()


def set_property(history: History) -> None:
    for key, value in history.layout().items():
        if history.rng.random() < 0.3:
            history.sql(f"ALTER TABLE {history.name} SET TBLPROPERTIES ('{key}'='{value}')")
