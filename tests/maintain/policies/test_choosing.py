"""Which setting holds for a table: against a reference that applies rules from the most general on."""

from __future__ import annotations

from datetime import timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rookery.maintain.policies.choosing import PolicySet, risky
from rookery.maintain.policies.policy import CleanUp, Orphans, Policy, Snapshots, Statistics, Strategy
from rookery.maintain.policies.policy_file import load_policies
from rookery.maintain.policies.settings import SETTINGS
from rookery.model import TableName, UsageError

ORDERS = TableName("prod", ("sales",), "orders")
KEYS = ("manifests.most-small", "snapshots.keep-last", "compaction.min-files")
NAMES = ("prod", "a", "b", "ab")
GLOBS = ("*", "a.*", "*.b", "prod.*", "*a*", "?.?", "a.b", "*.a*", "a*b", "prod.a.*")

settings = st.dictionaries(st.sampled_from(KEYS), st.integers(1, 9), max_size=3)
names = st.builds(
    TableName,
    st.sampled_from(NAMES),
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=2).map(tuple),
    st.sampled_from(NAMES),
)


Selecting = tuple[str, str]


def selectors(name: TableName) -> st.SearchStrategy[Selecting]:
    """Selectors of which most mean a table, and some mean others."""
    full = (name.catalog, *name.identifier)
    spans = [".".join(full[start:end]) for start in (0, 1) for end in range(start + 1, len(full) + 1)]
    texts = st.sampled_from([*spans, "a.b", "prod.a", "prod"])
    return st.one_of(
        st.tuples(st.just("catalog"), st.sampled_from([name.catalog, "a"])),
        st.tuples(st.just("namespace"), texts),
        st.tuples(st.just("tables"), st.sampled_from(GLOBS)),
        st.tuples(st.just("table"), texts.filter(lambda text: "." in text)),
    )


cases = names.flatmap(
    lambda name: st.tuples(st.just(name), st.dictionaries(selectors(name), settings, max_size=12))
)


def layers(name: TableName, rules: dict[Selecting, dict[str, int]]) -> list[list[Selecting]]:
    """The rules that speak of a table, from the most general on; those of one list are equally specific."""
    order: list[list[Selecting]] = [[("catalog", name.catalog)]]
    for level in range(1, len(name.namespace) + 1):
        plain = ".".join(name.namespace[:level])
        order += [[("namespace", plain)], [("namespace", f"{name.catalog}.{plain}")]]
    plain = ".".join(name.identifier)
    globs = [each for each in rules if each[0] == "tables"]
    for literal in range(30):
        alike = [each for each in globs if sum(letter not in "*?" for letter in each[1]) == literal]
        texts = (plain, f"{name.catalog}.{plain}")
        order.append([each for each in alike if any(fnmatchcase(text, each[1]) for text in texts)])
    order += [[("table", plain)], [("table", f"{name.catalog}.{plain}")]]
    return [[each for each in layer if each in rules] for layer in order]


@given(settings, cases, st.just({}) | settings)
def test_the_more_specific_over_the_more_general(
    tmp_path_factory: pytest.TempPathFactory,
    defaults: dict[str, int],
    case: tuple[TableName, dict[Selecting, dict[str, int]]],
    properties: dict[str, int],
) -> None:
    name, rules = case
    expected: dict[str, set[int]] = {key: {value} for key, value in defaults.items()}
    for layer in layers(name, rules):
        for key in KEYS:
            if values := {rules[each][key] for each in layer if key in rules[each]}:
                expected[key] = values
    expected |= {key: {value} for key, value in properties.items()}
    document = {"defaults": nested(defaults), "rules": [{k: v} | nested(s) for (k, v), s in rules.items()]}
    policies = written(tmp_path_factory.getbasetemp() / "chosen.yaml", document)
    said = {f"rookery.{key}": str(value) for key, value in properties.items()} | {"owner": "x"}
    if any(len(values) > 1 for values in expected.values()):
        with pytest.raises(UsageError, match="which is as specific"):
            policies.policy_of(name, said)
        return
    chosen = policies.policy_of(name, said)
    for setting in SETTINGS:
        if setting.key in expected:
            assert {setting.of(chosen.policy)} == expected[setting.key]
            assert chosen.texts[setting.key] == str(setting.of(chosen.policy))
            by_property = setting.key in properties
            assert str(chosen.sources[setting.key]).startswith("table property") is by_property
        else:
            assert str(chosen.sources[setting.key]) == "default"


def nested(values: dict[str, int]) -> dict[str, Any]:
    found: dict[str, dict[str, int]] = {}
    for key, value in values.items():
        section, _, last = key.partition(".")
        found.setdefault(section, {})[last] = value
    return dict(found)


def written(file: Path, document: object) -> PolicySet:
    file.write_text(yaml.safe_dump(document))
    return load_policies(file)


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)

    def from_text(text: str) -> PolicySet:
        Path("rookery.yaml").write_text(text)
        return load_policies("rookery.yaml")

    return from_text


def refusal(policies: PolicySet, properties: dict[str, str]) -> tuple[str, str | None]:
    with pytest.raises(UsageError) as caught:
        policies.policy_of(ORDERS, properties)
    return caught.value.message, caught.value.hint


@pytest.mark.parametrize(
    ("winner", "loser"),
    [
        ("{table: prod.sales.orders", "{table: sales.orders"),
        ("{table: sales.orders", "{tables: 'prod.sales.order?'"),
        ("{tables: '*'", "{namespace: prod.sales"),
        ("{namespace: prod.sales", "{namespace: sales"),
        ("{namespace: sales", "{catalog: prod"),
    ],
)
def test_one_over_the_other(load, winner: str, loser: str) -> None:
    rules = [f"{winner}, verify: rows}}", f"{loser}, verify: count}}"]
    for order in (rules, rules[::-1]):
        policies = load(f"defaults: {{verify: count}}\nrules: [{', '.join(order)}]")
        assert policies.policy_of(ORDERS, {}).policy.verify == "rows"


class TestSources:
    def test_each_is_named(self, load) -> None:
        policies = load(
            "defaults:\n  verify: rows\n  limits: {bytes: 5}\n"
            "rules:\n- tables: 'sales.*'\n  manifests: {most-small: 3}\n"
        )
        sources = policies.policy_of(ORDERS, {"rookery.snapshots.keep-for": "1d"}).sources
        assert [str(sources[key]) for key in ("verify", "manifests.most-small", "snapshots.keep-for")] == [
            "rookery.yaml:2 (defaults)",
            'rookery.yaml:6 (tables "sales.*")',
            "table property rookery.snapshots.keep-for",
        ]
        assert str(sources["deletes.dangling"]) == "default"
        assert list(sources) == [setting.key for setting in SETTINGS]

    def test_as_it_is_written(self, load) -> None:
        policies = load("defaults: {snapshots: {keep-for: 2w}, indexes: [bloom(a), bitmap(b)]}")
        texts = policies.policy_of(ORDERS, {"rookery.compaction.target-size": "1024KiB"}).texts
        shown = [texts[key] for key in ("snapshots.keep-for", "indexes", "compaction.target-size")]
        assert shown == ["2w", "bloom(a), bitmap(b)", "1024KiB"]

    def test_a_word_takes_a_general_rule_back(self, load) -> None:
        policies = load(
            "defaults: {statistics: {every: 7d}, quiet-hours: [22:00-06:00]}\n"
            "rules: [{table: sales.orders, statistics: {every: never}, quiet-hours: []}]"
        )
        policy = policies.policy_of(ORDERS, {}).policy
        assert (policy.statistics.every, policy.quiet_hours) == (None, ())


class TestProperties:
    def test_lists_and_what_is_not_ours(self) -> None:
        policy = (
            PolicySet()
            .policy_of(
                ORDERS,
                {
                    "rookery.location": "file:///elsewhere",
                    "rookeryx": "1",
                    "write.format.default": "parquet",
                    "rookery.compaction.strategy": "sort",
                    "rookery.compaction.columns": "a, b.c",
                    "rookery.quiet-hours": "22:00-06:00, Sat-Sun 00:00-24:00 Europe/Berlin",
                    "rookery.indexes": "",
                },
            )
            .policy
        )
        assert policy.compaction.columns == ("a", "b.c")
        assert len(policy.quiet_hours) == 2
        assert policy.indexes == ()

    def test_unknown(self) -> None:
        assert refusal(PolicySet(), {"rookery.snapshots.keepfor": "1d"}) == (
            "prod.sales.orders: there is no table property 'rookery.snapshots.keepfor'",
            "did you mean rookery.snapshots.keep-for?",
        )
        assert refusal(PolicySet(), {"rookery.token": "hunter2"}) == (
            "prod.sales.orders: there is no table property 'rookery.token'",
            "secrets do not belong in table properties; use the environment",
        )

    def test_bad_value(self) -> None:
        assert refusal(PolicySet(), {"rookery.snapshots.keep-for": "soon"}) == (
            "prod.sales.orders: table property rookery.snapshots.keep-for: 'soon' is not a duration",
            "write a whole number and a unit: 90s, 15m, 6h, 7d or 2w",
        )


class TestContradictions:
    def test_equal_patterns(self, load) -> None:
        policies = load(
            "rules:\n- {tables: 'sales.*', verify: rows}\n- {tables: '*.order?', verify: count}\n"
        )
        message, _ = refusal(policies, {})
        assert message == (
            'prod.sales.orders: verify is rows by rookery.yaml:2 (tables "sales.*"), '
            'and count by rookery.yaml:3 (tables "*.order?"), which is as specific'
        )

    def test_equal_patterns_of_one_mind(self, load) -> None:
        policies = load("rules:\n- {tables: 'sales.*', verify: rows}\n- {tables: '*orders', verify: rows}\n")
        assert policies.policy_of(ORDERS, {}).policy.verify == "rows"

    def test_small_against_target(self, load) -> None:
        policies = load("defaults: {compaction: {small-size: 256MB}}")
        assert refusal(policies, {"rookery.compaction.target-size": "128MB"}) == (
            "prod.sales.orders: compaction.small-size 256MB (rookery.yaml:1 (defaults)) is not below "
            "compaction.target-size 128MB (table property rookery.compaction.target-size)",
            "a file of the target size must not count as small",
        )

    def test_z_order_by_nothing(self, load) -> None:
        policies = load(
            "rules:\n- {catalog: prod, compaction: {strategy: z-order}}\n"
            "- {table: other.t, compaction: {columns: [a]}}\n"
        )
        message, _ = refusal(policies, {})
        assert message == (
            'prod.sales.orders: compaction.strategy z-order (rookery.yaml:2 (catalog "prod")) needs columns, '
            "and there is compaction.columns none (default)"
        )

    def test_from_no_queries(self) -> None:
        message, _ = refusal(PolicySet(), {"rookery.statistics.columns": "from-queries"})
        assert "needs files of SQL, and there is statistics.queries none (default)" in message

    def test_columns_that_nothing_sorts_by(self, load) -> None:
        message, _ = refusal(load("defaults: {compaction: {columns: [a]}}"), {})
        assert "cannot be used with compaction.strategy bin-pack (default)" in message

    def test_a_more_specific_strategy_makes_columns_void(self, load) -> None:
        policies = load("defaults: {compaction: {strategy: sort, columns: [a]}}")
        policy = policies.policy_of(ORDERS, {"rookery.compaction.strategy": "bin-pack"}).policy
        assert (policy.compaction.strategy, policy.compaction.columns) == (Strategy.BIN_PACK, ())

    def test_queries_count_only_if_columns_come_from_them(self, load) -> None:
        policies = load("defaults: {statistics: {columns: from-queries, queries: [a.sql]}}")
        policy = policies.policy_of(ORDERS, {"rookery.statistics.columns": "a,b"}).policy
        assert policy.statistics == Statistics(columns=("a", "b"), queries=())


def test_risks() -> None:
    assert risky(Policy()) == []
    assert risky(Policy(snapshots=Snapshots(None, 1), statistics_files=CleanUp(None))) == []
    found = risky(
        Policy(
            snapshots=Snapshots(timedelta(0), -1),
            orphans=Orphans(timedelta(days=-1)),
            statistics_files=CleanUp(timedelta(0)),
        )
    )
    assert [line.partition(":")[0] for line in found] == [
        "snapshots.keep-for is 0d",
        "snapshots.keep-last is -1",
        "orphans.older-than is -1d",
        "statistics-files.older-than is 0d",
    ]
