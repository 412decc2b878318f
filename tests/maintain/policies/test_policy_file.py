"""Reading policy files: what holds is loaded whole, what does not is one line with the place and a hint."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rookery.maintain.policies.choosing import PolicySet, Selector, SelectorKind
from rookery.maintain.policies.policy import DEFAULT, Strategy, Verify, WantedIndex
from rookery.maintain.policies.policy_file import find_policies, load_policies
from rookery.maintain.policies.settings import SETTINGS, policy_from
from rookery.maintain.policies.times import Cron
from rookery.model import TableName, UsageError

DOCUMENT = Path(__file__).parents[3] / "docs" / "policies.md"
ORDERS = TableName("prod", ("sales",), "orders")


PIECES = st.text(max_size=6) | st.sampled_from(
    [
        "  ",
        "\n",
        "\n  ",
        ": ",
        "- ",
        "{",
        "}",
        "[",
        "]",
        "&a ",
        "*a",
        "!!str ",
        "!x ",
        "|\n",
        "'",
        '"',
        "~",
        "0",
        "-1",
    ]
)


def example() -> str:
    """The example that is documented."""
    return DOCUMENT.read_text().partition("```yaml\n")[2].partition("```")[0]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ROOKERY_POLICY", raising=False)
    return tmp_path


def load(text: str | bytes, file: str = "rookery.yaml") -> PolicySet:
    Path(file).write_bytes(text if isinstance(text, bytes) else dedent(text).encode())
    return load_policies(file)


class TestGood:
    def test_every_setting(self, folder: Path) -> None:
        policies = load("""\
            rules:
              - table: sales.orders
                statistics:
                  health: 0.9
                  snapshots: 5
                  every: "0 3 * * *"
                  after-compaction: no
                  columns: from-queries
                  queries: [sql/*.sql, /logs/*.jsonl]
                indexes: [bloom(id), "bitmap( a.b )"]
                compaction: {strategy: z-order, columns: [a, b], target-size: 512MiB, small-size: 1.5MB,
                             min-files: 3, delete-ratio: 0.1, most-overlap: 2}
                deletes: {min-files: 2, dangling: false}
                manifests: {most-small: 7}
                snapshots: {keep-for: 0d, keep-last: -1}
                orphans: {older-than: never, max-share: 0.2, trash: /mnt/trash, trash-keep: 2d, outside: true}
                statistics-files: {older-than: 2w}
                quiet-hours: ["Mon-Fri 08:00-18:00 Europe/Berlin", 22:00-06:00]
                limits: {bytes: 1GB}
                verify: rows
            """)
        chosen = policies.policy_of(ORDERS, {})
        policy = chosen.policy
        assert policy.statistics.every == Cron("0 3 * * *")
        assert policy.statistics.columns == ()
        assert policy.statistics.queries == (str(folder / "sql/*.sql"), "/logs/*.jsonl")
        assert policy.indexes == (WantedIndex("bloom", "id"), WantedIndex("bitmap", "a.b"))
        assert policy.compaction.strategy is Strategy.Z_ORDER
        assert (policy.compaction.target_size, policy.compaction.small_size) == (512 << 20, 1_500_000)
        assert (policy.snapshots.keep_for, policy.snapshots.keep_last) == (timedelta(0), -1)
        assert policy.orphans.older_than is None
        assert [hours.zone for hours in policy.quiet_hours] == ["Europe/Berlin", "UTC"]
        assert policy.verify is Verify.ROWS
        assert all(setting.of(policy) != setting.of(DEFAULT) for setting in SETTINGS if _kept(setting.key))
        assert {str(source).partition(" ")[2] for source in chosen.sources.values()} == {
            '(table "sales.orders")'
        }
        assert str(chosen.sources["compaction.small-size"]).startswith("rookery.yaml:11 ")

    def test_the_documented_example(self) -> None:
        policies = load(example())
        said = {key for rule in policies.rules for key in rule.settings}
        assert said == {setting.key for setting in SETTINGS}
        policies.policy_of(ORDERS, {})

    def test_every_setting_is_documented(self) -> None:
        text = DOCUMENT.read_text()
        assert [each.key for each in SETTINGS if f"| `{each.key}` |" not in text] == []

    @pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "rules:\ndefaults:\n", "rules: []\n"])
    def test_no_rules(self, text: str) -> None:
        assert load(text).policy_of(ORDERS, {}).policy == DEFAULT

    def test_aliases(self) -> None:
        policies = load("""\
            defaults: {snapshots: &kept {keep-last: 3}}
            rules:
              - {catalog: prod, snapshots: *kept}
            """)
        assert str(policies.policy_of(ORDERS, {}).sources["snapshots.keep-last"]) == (
            'rookery.yaml:1 (catalog "prod")'
        )

    def test_words_are_read_as_they_are_written(self) -> None:
        """YAML takes `no` for false and `010` for eight; a column or a size is what it looks like."""
        policies = load("defaults: {statistics: {columns: [no, 010, 1e3]}}")
        assert policies.policy_of(ORDERS, {}).policy.statistics.columns == ("no", "010", "1e3")

    def test_orphans_of_a_day(self) -> None:
        policies = load("defaults: {orphans: {older-than: 24h}}")
        assert policies.policy_of(ORDERS, {}).policy.orphans.older_than == timedelta(days=1)

    def test_byte_order_mark(self) -> None:
        assert len(load(b"\xef\xbb\xbfdefaults: {verify: rows}").rules) == 1

    def test_selectors(self) -> None:
        policies = load("""\
            rules:
              - catalog: prod
              - namespace: prod.`a.b`
              - tables: "*_x"
              - table: sales.orders
            """)
        assert [rule.selector for rule in policies.rules] == [
            Selector(SelectorKind.CATALOG, ("prod",)),
            Selector(SelectorKind.NAMESPACE, ("prod", "a.b")),
            Selector(SelectorKind.TABLES, ("*_x",)),
            Selector(SelectorKind.TABLE, ("sales", "orders")),
        ]


def _kept(key: str) -> bool:
    return key != "statistics.columns"  # given by the queries


def one(setting: str) -> str:
    return f"rules:\n- tables: '*'\n  {setting}\n"


BAD = {
    "unknown at the top": ("\nrule: []", "2: there is no key 'rule' at the top", "did you mean rules?"),
    "a setting at the top": (
        "snapshots: {}",
        "1: there is no key 'snapshots' at the top",
        "put it under `defaults`, or into one of the `rules`",
    ),
    "unknown section": (one("snapshot: {}"), "3: there is no setting 'snapshot'", "did you mean snapshots?"),
    "unknown key": (
        one("snapshots:\n    keep_for: 7d"),
        "4: there is no setting 'keep_for' in snapshots",
        "did you mean keep-for?",
    ),
    "in the wrong section": (
        one("limits: {target-size: 1GB}"),
        "3: there is no setting 'target-size' in limits",
        "it belongs elsewhere: compaction.target-size",
    ),
    "a secret": (
        one("slack-webhook: https://hooks/T0/B0"),
        "3: there is no setting 'slack-webhook'",
        "secrets do not belong in this file; use the environment",
    ),
    "a secret at the top": (
        "password: x",
        "1: there is no key 'password' at the top",
        "secrets do not belong in this file; use the environment",
    ),
    "duplicate key": (
        one("verify: rows\n  verify: count"),
        "4: 'verify' is repeated, first on line 3",
        "keep one",
    ),
    "duplicate section": (
        one("limits: {bytes: 1}\n  limits: {}"),
        "4: 'limits' is repeated, first on line 3",
        "keep one",
    ),
    "bad duration": (
        one("snapshots:\n    keep-for: 7 days"),
        "4: snapshots.keep-for: '7 days' is not a duration",
        "write a whole number and a unit: 90s, 15m, 6h, 7d or 2w",
    ),
    "bad size": (
        one("limits: {bytes: 12 apples}"),
        "3: limits.bytes: '12 apples' is not a size",
        "write bytes, or a number and a unit: 128MB, 512MiB, 1GB",
    ),
    "no size": (
        one("limits: {bytes: 0}"),
        "3: limits.bytes: '0' is not a size of files",
        "write bytes, or a number and a unit: 128MB, 512MiB, 1GB",
    ),
    "bad number": (
        one("snapshots: {keep-last: many}"),
        "3: snapshots.keep-last: 'many' is not a whole number",
        "write digits only, such as 20",
    ),
    "octal": (
        one("snapshots: {keep-last: 010}"),
        "3: snapshots.keep-last: '010' is not a whole number",
        "write digits only, such as 20",
    ),
    "nan": (
        one("statistics: {health: .nan}"),
        "3: statistics.health: '.nan' is not a number",
        "write a number, 0 to 1",
    ),
    "out of range": (
        one("statistics: {health: 1.8}"),
        "3: statistics.health: '1.8' is out of range",
        "the range is 0 to 1",
    ),
    "ratio of nothing": (
        one("compaction: {delete-ratio: 0}"),
        "3: compaction.delete-ratio: '0' is out of range",
        "the range is above 0 and at most 1",
    ),
    "too few": (
        one("compaction: {min-files: 0}"),
        "3: compaction.min-files: '0' is below 1",
        "the minimum is 1",
    ),
    "bad strategy": (
        one("compaction: {strategy: zorder}"),
        "3: compaction.strategy: 'zorder' is not known",
        "it is one of none, bin-pack, sort, z-order",
    ),
    "bad truth": (
        one("deletes: {dangling: maybe}"),
        "3: deletes.dangling: 'maybe' is neither true nor false",
        "write true or false",
    ),
    "bad cron": (
        one("statistics: {every: 61 * * * *}"),
        "3: statistics.every: '61 * * * *' is not a schedule: bad minute",
        "the five fields are minute, hour, day of the month, month and day of the week, in UTC: 30 4 * * 1-5",
    ),
    "bad zone": (
        one("quiet-hours:\n  - 22:00-06:00\n  - 22:00-06:00 Europe/Berln"),
        "5: quiet-hours: there is no time zone 'Europe/Berln'",
        "did you mean Europe/Berlin?",
    ),
    "bad index": (
        one("indexes: [tree(id)]"),
        "3: indexes: 'tree(id)' is not a known kind of index",
        "the kinds are bitmap, bloom",
    ),
    "twice in a list": (
        one("indexes: [bloom(id), bloom( id )]"),
        "3: indexes: 'bloom( id )' is named twice",
        "name it once",
    ),
    "a word in a list": (
        one("statistics: {columns: [all]}"),
        "3: statistics.columns: 'all' must be the only value, not in a list",
        "write all without brackets",
    ),
    "no columns": (
        one("statistics: {columns: []}"),
        "3: statistics.columns: the list is empty",
        "write all or from-queries, or name some",
    ),
    "orphans too young": (
        one("orphans: {older-than: 23h}"),
        "3: orphans.older-than: '23h' is below 24h, which Iceberg refuses",
        "a writer may still be running; write 3d",
    ),
    "no value": (one("verify:"), "3: verify has no value", "write one, or remove the key"),
    "a list for one": (
        one("verify: [rows]"),
        "3: verify: one value is expected here, not a list",
        "write it without brackets",
    ),
    "a mapping for one": (
        one("verify: {rows: 1}"),
        "3: verify is a mapping, not a single value",
        "write plain text or a number",
    ),
    "a list in a list": (
        one("indexes: [[bloom(id)]]"),
        "3: indexes is a list, not a single value",
        "write plain text or a number",
    ),
    "no section": (
        one("limits: 5"),
        "3: limits is a single value, not a mapping",
        "write `key: value` lines",
    ),
    "rules are no list": ("rules: {a: 1}", "1: rules is a mapping, not a list", "begin each item with `- `"),
    "a list": ("- a", "1: the file is a list, not a mapping", "write `key: value` lines"),
    "no selector": (
        "rules:\n- verify: rows",
        "2: a rule selects no table",
        "give it one of catalog, namespace, tables, table; or use `defaults` for all tables",
    ),
    "two selectors": (
        "rules:\n- table: a.b\n  catalog: c",
        "2: a rule selects by table and catalog",
        "give it one of catalog, namespace, tables, table; or use `defaults` for all tables",
    ),
    "no dotted name": (
        "rules:\n- table: a..b",
        "2: table: 'a..b' is not a dotted name",
        "write name.name, and put a name that holds dots in `backquotes`",
    ),
    "no table": ("rules:\n- table: b", "2: table: 'b' does not name a table", "use namespace.table"),
    "a pattern for a table": (
        "rules:\n- table: a.*",
        "2: table: 'a.*' is a pattern",
        "select by `tables`, which takes them",
    ),
    "a long catalog": (
        "rules:\n- catalog: a.b",
        "2: catalog: 'a.b' has several parts",
        "use `namespace` or `table`",
    ),
    "from queries without any": (
        one("statistics:\n    columns: from-queries"),
        "4: statistics.columns from-queries needs files of SQL",
        "name some: queries: [sql/*.sql]",
    ),
    "z-order without columns": (
        one("compaction:\n    strategy: z-order"),
        "4: compaction.strategy z-order needs columns",
        "name them: columns: [a, b]",
    ),
    "bin-pack with columns": (
        one("compaction:\n    strategy: bin-pack\n    columns: [a]"),
        "5: compaction.columns a cannot be used with compaction.strategy bin-pack",
        "columns are those of sort and z-order",
    ),
    "small is not smaller": (
        one("compaction:\n    target-size: 128MB\n    small-size: 0.128GB"),
        "5: compaction.small-size 0.128GB is not below compaction.target-size 128MB",
        "a file of the target size must not count as small",
    ),
    "conflict": (
        "rules:\n- table: a.b\n  verify: rows\n- tables: a.b\n- table: a.`b`\n  verify: count",
        '6: verify of table "a.b" is set on line 3 already',
        "keep one",
    ),
    "conflict on one line": (
        "rules: [{catalog: a, verify: rows}, {catalog: a, verify: rows}]",
        '1: verify of catalog "a" is set on line 1 already',
        "keep one",
    ),
    "wrong YAML": ("rules:\n- a: [1\n", "3: this is not YAML", "check indentation and quotes"),
    "a tab": ("rules:\n\t- a: 1", "2: this is not YAML", "check indentation and quotes"),
    "an unknown alias": ("defaults: *x", "1: this is not YAML", "check indentation and quotes"),
    "two documents": ("---\n{}\n---\n{}", "3: this is not YAML", "check indentation and quotes"),
    "a control character": (
        "rules: []\n# \x07",
        "2: YAML allows no control characters",
        "remove it",
    ),
    "a tag": (
        one("verify: !!python/object/apply:os.getcwd []"),
        "3: verify is a value with a tag, not a list",
        "begin each item with `- `",
    ),
    "another tag": (
        one("verify: !secret x"),
        "3: verify is a value with a tag, not a single value",
        "write plain text or a number",
    ),
    "a merge": (
        "defaults: &d {verify: rows}\nrules:\n- <<: *d\n  table: a.b",
        "3: '<<' is not supported",
        "set it in `defaults`, or in a rule for more tables",
    ),
    "depth": ("[" * 9000, "1: this is nested too deeply", "rules are nested three deep at most"),
    "a password in a URL": (
        one("statistics: {every: 'pg://me:hunter2@host/db'}"),
        "3: statistics.every: 'pg://host/db' is not a duration",
        "write a whole number and a unit: 90s, 15m, 6h, 7d or 2w",
    ),
    "lines in a value": (
        one("verify: |\n    a\n    b"),
        "3: verify: 'a b' is not known",
        "it is one of count, rows",
    ),
}


class TestBad:
    @pytest.mark.parametrize("text, message, hint", BAD.values(), ids=BAD)
    def test_is_one_line(self, text: str, message: str, hint: str) -> None:
        with pytest.raises(UsageError) as caught:
            load(text)
        said = caught.value.message
        if message.endswith("not YAML"):
            said = said.partition("YAML")[0] + "YAML"
        assert (said, caught.value.hint) == (f"rookery.yaml:{message}", hint)
        assert "\n" not in caught.value.message

    def test_not_utf_8(self) -> None:
        with pytest.raises(UsageError, match=r"^rookery.yaml:2: this is not UTF-8\nhint: [^\n]+$"):
            load(b"rules:\n- table: a.\xff\n")

    def test_missing(self) -> None:
        with pytest.raises(UsageError, match=r"^none.yaml: there is no policy file\nhint: [^\n]+$"):
            load_policies("none.yaml")

    def test_a_folder(self, folder: Path) -> None:
        with pytest.raises(UsageError, match="cannot be read: Is a directory"):
            load_policies(folder)

    def test_a_laugh_that_does_not_grow(self) -> None:
        """Nine aliases to nine aliases and so on: a billion if they were written out."""
        lines = ["a0: &a0 [x]"]
        lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
        with pytest.raises(UsageError, match="there is no key 'a0' at the top"):
            load("\n".join(lines))
        nested = "\n".join(f"  - {line.partition(' ')[2]}" for line in lines)
        with pytest.raises(UsageError, match=":2: a rule is a list, not a mapping"):
            load(f"rules:\n{nested}\n")

    def test_an_alias_to_itself(self) -> None:
        with pytest.raises(UsageError, match=":1: a rule is a list, not a mapping"):
            load("rules: &a [*a]")

    def test_too_large(self) -> None:
        with pytest.raises(UsageError, match="more than 1 MiB"):
            load("#" * (2 << 20))

    @given(st.data())
    def test_a_spoilt_example_loads_or_is_refused(
        self, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
    ) -> None:
        text = example()
        for _ in range(data.draw(st.integers(1, 3))):
            start = data.draw(st.integers(0, len(text)))
            end = data.draw(st.integers(start, min(start + 12, len(text))))
            text = text[:start] + data.draw(PIECES) + text[end:]
        file = tmp_path_factory.getbasetemp() / "any.yaml"
        file.write_bytes(text.encode("utf-8", "surrogatepass"))
        assert re.fullmatch(rf"{re.escape(str(file))}:\d+: .+|", refused(file))


def refused(file: Path) -> str:
    """Load a file; return what is said against it, if anything."""
    try:
        load_policies(file)
    except UsageError as error:
        return error.message
    return ""


class TestFinding:
    def test_nothing(self) -> None:
        assert find_policies() == PolicySet()

    def test_in_this_folder(self) -> None:
        load("defaults: {verify: rows}")
        assert find_policies().file == "rookery.yaml"

    def test_by_the_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        load("defaults: {verify: rows}")
        load("defaults: {verify: count}", "other.yaml")
        monkeypatch.setenv("ROOKERY_POLICY", "other.yaml")
        assert find_policies().file == "other.yaml"
        assert find_policies("rookery.yaml").file == "rookery.yaml"
        monkeypatch.setenv("ROOKERY_POLICY", "gone.yaml")
        with pytest.raises(UsageError, match="there is no policy file"):
            find_policies()


def test_defaults_read_as_they_are_shown() -> None:
    read = {each.key: each.parse(each.text(each.of(DEFAULT))) for each in SETTINGS}
    assert policy_from(read) == DEFAULT
    assert policy_from({}) == DEFAULT


@given(st.integers(1, 1 << 50))
def test_sizes_read_as_they_are_shown(size: int) -> None:
    (setting,) = [each for each in SETTINGS if each.key == "limits.bytes"]
    assert setting.parse(setting.text(size)) == size
