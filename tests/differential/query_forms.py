"""The forms of random queries, each made of `Parts`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.differential.columns import Column, Path
from tests.differential.queries import Parts, Query, Source


def joins(parts: Parts) -> Query:
    text, scope = parts.joined()
    select = f"SELECT {parts.listed(parts.outputs(scope))} FROM {text}{parts.where(scope)}"
    return Query("join", select)


def star(parts: Parts) -> Query:
    source = parts.table(aliased=parts.rng.random() < 0.5)
    return Query("plain", f"SELECT * FROM {source.text}{parts.where([source])}")


def natural(parts: Parts) -> Query:
    """A join by equal names: the key alone, or whatever the tables have in common."""
    word = parts.rng.choice(("NATURAL JOIN", "NATURAL LEFT JOIN", "NATURAL FULL JOIN"))
    left, right = parts.source(), parts.table()
    alias = parts.alias()
    chosen = parts.rng.choice(right.paths()).text
    only = f"(SELECT k, {chosen} AS z FROM {right.text}{parts.where([right])}) {alias}"
    listed = "*" if parts.rng.random() < 0.2 else parts.listed(parts.outputs([left])) + f", {alias}.z"
    return Query("natural join", f"SELECT {listed} FROM {left.text} {word} {only}{parts.where([left])}")


def subquery(parts: Parts) -> Query:
    rng = parts.rng
    text, scope = parts.joined() if rng.random() < 0.3 else _one(parts.source())
    inner = parts.table()
    outer = rng.choice(scope)
    mine = rng.choice(outer.paths())
    theirs = [path for path in inner.paths() if path.column.kind == mine.column.kind]
    key = parts.key([outer], inner) or "TRUE"
    within = parts.where([inner])
    link = " AND " if within else " WHERE "
    forms = [
        f"EXISTS (SELECT 1 FROM {inner.text}{within}{link}{key})",
        f"NOT EXISTS (SELECT 1 FROM {inner.text}{within}{link}{key})",
        f"(SELECT count(*) FROM {inner.text}{within}{link}{key}) {rng.choice(('= 0', '> 0', '< 3'))}",
    ]
    if theirs:
        their = rng.choice(theirs).text
        forms += [
            f"{mine.text} IN (SELECT {their} FROM {inner.text}{within})",
            f"{mine.text} NOT IN (SELECT {their} FROM {inner.text}{within})",
            f"{mine.text} NOT IN (SELECT {their} FROM {inner.text}{within}{link}{their} IS NOT NULL)",
            f"{mine.text} >= (SELECT min({their}) FROM {inner.text}{within})",
            f"NOT ({mine.text} IN (SELECT {their} FROM {inner.text}{within}))",
        ]
    condition = rng.choice(forms)
    if rng.random() < 0.2:
        condition = f"({condition} OR {parts.predicate(scope)})"
    where = parts.where(scope, 1)
    where = f"{where} AND {condition}" if where else f" WHERE {condition}"
    return Query("subquery", f"SELECT {parts.listed(parts.outputs(scope))} FROM {text}{where}")


def _one(source: Source) -> tuple[str, list[Source]]:
    return source.text, [source]


def set_operation(parts: Parts) -> Query:
    """Two or three queries about columns of one type, now and then all about one table."""
    rng = parts.rng
    text = ""
    for place in range(rng.choice((2, 2, 3))):
        source = parts.source()
        keys = [path for path in source.paths() if path.names[-1] == "k"] or source.paths()
        word = rng.choice(("UNION ALL", "UNION", "INTERSECT", "EXCEPT", "MINUS ALL", "INTERSECT ALL"))
        select = f"SELECT {rng.choice(keys).text} AS o0 FROM {source.text}{parts.where([source])}"
        text += f" {word} {select}" if place else select
    return Query("set operation", text)


def common(parts: Parts) -> Query:
    """A query with a name, which may be that of a table."""
    rng = parts.rng
    inner = parts.table()
    chosen = parts.outputs([inner], 2)
    name = rng.choice([*parts.tables, "c"])
    listed = f"{parts.listed(chosen)}, {inner.alias}.k"
    text = f"WITH {name} AS (SELECT {listed} FROM {inner.text}{parts.where([inner])})"
    outer = parts.table()
    if outer.text.split()[0] == name:
        outer = Source(f"lake.db.{name} {outer.alias}", outer.alias, outer.columns)
    word = rng.choice(("JOIN", "LEFT JOIN", "FULL JOIN", "LEFT ANTI JOIN"))
    condition = f"w.k = {outer.alias}.k"
    listed = "w.o0 AS p0" + ("" if "ANTI" in word else f", {parts.rng.choice(outer.paths()).text} AS p1")
    twice = rng.random() < 0.3
    select = (
        f"SELECT {listed} FROM {name} w {word} {outer.text} ON {condition} AND {parts.predicate([outer])}"
    )
    if twice:
        select += (
            f" UNION ALL SELECT w.o0{'' if 'ANTI' in word else ', NULL'} FROM {name} w WHERE w.k IS NOT NULL"
        )
    return Query("common table", f"{text} {select}")


def aggregate(parts: Parts) -> Query:
    rng = parts.rng
    text, scope = parts.joined() if rng.random() < 0.4 else _one(parts.source())
    group, other = parts.outputs(scope, 1)[0], parts.outputs(scope, 1)[0]
    having = rng.choice(("", f" HAVING {group.text} = {parts.value(group)}", " HAVING count(*) > 1"))
    listed = (
        f"{group.text} AS o0, count(*) AS o1, count(DISTINCT {other.text}) AS o2, max({other.text}) AS o3"
    )
    if rng.random() < 0.3:
        plain = f"SELECT count(*) AS o0, min({other.text}) AS o1 FROM {text}{parts.where(scope)}"
        return Query("aggregate", plain)
    return Query(
        "aggregate", f"SELECT {listed} FROM {text}{parts.where(scope)} GROUP BY {group.text}{having}"
    )


def window(parts: Parts) -> Query:
    """What a window sees must not shrink by what is asked of its results."""
    source = parts.source()
    by, *chosen = parts.outputs([source], 3)
    order = ", ".join(path.text for path in (by, *chosen))
    calls = (
        f"row_number() OVER (PARTITION BY {by.text} ORDER BY {order})",
        f"count(*) OVER (PARTITION BY {by.text})",
    )
    inner = (
        f"SELECT {parts.listed([by, *chosen])}, {parts.rng.choice(calls)} AS w "
        f"FROM {source.text}{parts.where([source], 1)}"
    )
    outer = f"o0 = {parts.value(by)}" if parts.rng.random() < 0.5 else "w = 1"
    return Query("window", f"SELECT * FROM ({inner}) WHERE {outer}")


def limited(parts: Parts) -> Query:
    source = parts.source()
    first, *more = parts.outputs([source])
    order = ", ".join(f"o{number}" for number in range(len(more) + 1))
    count = parts.rng.choice((1, 5, 10))
    inner = (
        f"SELECT {parts.listed([first, *more])} FROM {source.text}{parts.where([source], 1)} "
        f"ORDER BY {order} LIMIT {count}"
    )
    if parts.rng.random() < 0.4:
        return Query("limit", inner)
    return Query(
        "limit",
        f"SELECT * FROM ({inner}) WHERE o0 {parts.rng.choice(('=', '!=', '>='))} {parts.value(first)}",
    )


def pipe(parts: Parts) -> Query:
    rng = parts.rng
    source = parts.table(aliased=False)
    source = Source(source.text, "", source.columns)
    first, *more = parts.outputs([source], 3)
    order = ", ".join(f"o{number}" for number in range(len(more) + 1))
    listed = parts.listed([first, *more])
    mine = f"o0 {rng.choice(('=', '!=', '<='))} {parts.value(first)}"
    partner = parts.table()
    rest = ", ".join(["o0", *(f"{path.text} AS o{number + 1}" for number, path in enumerate(more))])
    forms = [
        f"|> SELECT {listed} |> ORDER BY {order} |> LIMIT {rng.choice((1, 10))} |> WHERE {mine}",
        f"|> WHERE {parts.predicate([source])} |> SELECT {listed} |> WHERE {mine}",
        f"|> EXTEND {first.text} AS o0 |> WHERE {mine} |> SELECT {rest}",
        f"|> AGGREGATE count(*) AS n GROUP BY {first.text} AS o0 |> WHERE {mine}",
        f"|> SELECT {listed} |> SET o0 = {parts.value(first)} |> WHERE {mine}",
        f"|> SELECT {first.text} AS o0 |> UNION ALL (SELECT {first.text} FROM {source.text}) |> WHERE {mine}",
    ]
    text = f"FROM {source.text} {rng.choice(forms)}"
    choice = rng.random()
    if choice < 0.15:
        text = f"FROM {source.text} |> AS l |> LEFT JOIN {partner.text} ON l.k = {partner.alias}.k"
        text += f" |> WHERE {parts.predicate([partner])} |> SELECT l.k AS o0, {partner.paths()[0].text} AS o1"
    elif choice < 0.4:
        text = f"SELECT {listed} FROM {source.text}{parts.where([source], 1)}"
        text += f" |> ORDER BY {order} |> LIMIT 5 |> WHERE {mine}"
    return Query("pipe", text)


def lateral(parts: Parts) -> Query:
    outer, inner = parts.table(), parts.table()
    key = parts.key([outer], inner) or "TRUE"
    alias = parts.alias()
    chosen = parts.rng.choice(inner.paths()).text
    within = (
        f"LATERAL (SELECT {chosen} AS z FROM {inner.text} WHERE {key} AND {parts.predicate([inner])}) {alias}"
    )
    word = parts.rng.choice((",", " JOIN", " LEFT JOIN"))
    if parts.rng.random() < 0.3:
        text = f"{outer.text} LATERAL VIEW explode(array(1, 2)) {alias} AS z"
    else:
        text = f"{outer.text}{word} {within}" + (" ON TRUE" if word == " LEFT JOIN" else "")
    listed = parts.listed(parts.outputs([outer]))
    return Query("lateral", f"SELECT {listed}, {alias}.z FROM {text}{parts.where([outer])}")


def pivot(parts: Parts) -> Query:
    source = parts.table()
    by, other = parts.outputs([source], 1)[0], parts.outputs([source], 1)[0]
    inner = f"SELECT {by.text} AS o0, {other.text} AS o1 FROM {source.text}{parts.where([source], 1)}"
    values = f"{parts.value(by)} AS p, {parts.value(by)} AS q"
    return Query("pivot", f"SELECT * FROM ({inner}) PIVOT (count(*) AS n FOR o0 IN ({values}))")


def sample(parts: Parts) -> Query:
    source = parts.table(aliased=False)
    source = Source(source.text, "", source.columns)
    chosen = parts.rng.choice(("100 PERCENT", "0 PERCENT"))
    text = f"{source.text} TABLESAMPLE ({chosen}) REPEATABLE (3)"
    return Query(
        "sample", f"SELECT {parts.listed(parts.outputs([source]))} FROM {text}{parts.where([source])}"
    )


def metadata(parts: Parts) -> Query:
    """Columns that no copy has: Spark itself answers."""
    rng = parts.rng
    name = rng.choice(list(parts.tables))
    alias = rng.choice(("", "m"))
    source = Source(f"lake.db.{name} {alias}", alias, parts.tables[name])
    dot = f"{alias}." if alias else ""
    hidden = rng.choice(("_file", "_pos", "_spec_id", "_partition", "_deleted", "_row_id"))
    where = parts.where([source])
    if rng.random() < 0.3:
        where += (" AND " if where else " WHERE ") + rng.choice((f"{dot}_pos < 3", f"{dot}_spec_id = 0"))
    text = f"SELECT {parts.listed(parts.outputs([source]))}, {dot}{hidden} AS h FROM {source.text}{where}"
    return Query("metadata column", text, native=True)


def in_full(parts: Parts) -> Query:
    """Columns that are named with their table's namespace and catalog."""
    rng = parts.rng
    name = rng.choice(list(parts.tables))
    written = rng.choice((f"lake.db.{name}", f"db.{name}"))
    alias = rng.choice((f"lake.db.{name}", f"db.{name}", name))
    source = Source(written, alias, parts.tables[name])
    partner = parts.table() if rng.random() < 0.4 else None
    text = written
    if partner is not None:
        text += f" JOIN {partner.text} ON {parts.on([source], partner)}"
    listed = parts.listed(parts.outputs([source]))
    return Query("in full", f"SELECT {listed} FROM {text}{parts.where([source])}", native=True)


def branch(parts: Parts) -> Query:
    """A branch, of which no copy is there either."""
    if not parts.branches:
        return star(parts)
    name, of = parts.rng.choice(parts.branches)
    written = parts.rng.choice((f"lake.db.{name}.branch_{of} b", f"lake.db.{name} VERSION AS OF '{of}' AS b"))
    source = Source(written, "b", parts.tables[name])
    listed = parts.listed(parts.outputs([source]))
    return Query("branch", f"SELECT {listed} FROM {source.text}{parts.where([source])}", native=True)


def view(parts: Parts) -> Query:
    """A temporary view, which may have the name of a table, and a query over it and a table."""
    rng = parts.rng
    inner = parts.table()
    name = rng.choice([*parts.tables, "v0", "v0"])
    held = inner.text.split()[0].rpartition(".")[2]
    if held == name:
        name = "v0"
    full = Source(f"lake.db.{held} {inner.alias}", inner.alias, inner.columns)
    chosen = parts.outputs([full], 2)
    definition = f"SELECT {parts.listed(chosen)}, {inner.alias}.k FROM {full.text}{parts.where([full])}"
    columns = [_renamed(path, f"o{number}") for number, path in enumerate(chosen)]
    seen = Source(f"{name} v", "v", columns)
    others = {key: value for key, value in parts.tables.items() if key != name}
    partner = Parts(rng, others or parts.tables, lenient=parts.lenient).table()
    word = rng.choice(("JOIN", "LEFT JOIN", "LEFT SEMI JOIN"))
    condition = f"v.k = {partner.alias}.k AND {parts.predicate([partner])}"
    text = f"SELECT v.o0 FROM {seen.text} {word} {partner.text} ON {condition}"
    if rng.random() < 0.4:
        text = f"SELECT v.* FROM {seen.text}{parts.where([seen])}"
    if rng.random() < 0.3:
        text += f" UNION ALL {text}"
    return Query("view", text, views=((name, definition),))


def _renamed(path: Path, name: str) -> Column:
    return Column(name, path.column.kind, path.column.values, path.column.children)


FORMS: Mapping[Callable[[Parts], Query], int] = {
    joins: 8,
    star: 2,
    natural: 1,
    subquery: 4,
    set_operation: 2,
    common: 2,
    aggregate: 2,
    window: 2,
    limited: 1,
    pipe: 3,
    lateral: 1,
    pivot: 1,
    sample: 1,
    metadata: 1,
    in_full: 1,
    branch: 1,
    view: 2,
}
_WEIGHTED = [form for form, weight in FORMS.items() for _ in range(weight)]


def make(parts: Parts) -> Query:
    return parts.rng.choice(_WEIGHTED)(parts)
