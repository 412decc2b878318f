"""Reading `rookery.yaml`: all of its errors, each in one line with the file, the line, and what to do."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NoReturn, TypeVar

import yaml

from rookery.maintain.policies.choosing import (
    Given,
    PolicyRule,
    PolicySet,
    Selector,
    SelectorKind,
    SettingSource,
)
from rookery.maintain.policies.policy import FROM_QUERIES, Strategy
from rookery.maintain.policies.settings import (
    ALONE,
    BY_KEY,
    SECTIONS,
    Setting,
    contradictions,
    hint_for,
    shown,
)
from rookery.model import GroupedUsageError, UsageError, split_name

T = TypeVar("T")

DEFAULT_FILE = "rookery.yaml"
VARIABLE = "ROOKERY_POLICY"
MOST_BYTES = 1 << 20
_MOST_ERRORS = 50  # that are reported
_TAG = "tag:yaml.org,2002:"
_SCALARS = frozenset(_TAG + name for name in ("str", "int", "float", "bool", "timestamp", "value", "merge"))
_NULL = _TAG + "null"
_TOP = ("defaults", "rules")
_KINDS = tuple(kind.value for kind in SelectorKind)
_SHAPES = {yaml.MappingNode: "a mapping", yaml.SequenceNode: "a list", yaml.ScalarNode: "a single value"}


def find_policies(path: str | os.PathLike[str] | None = None) -> PolicySet:
    """Load the policy file: *path*, else `$ROOKERY_POLICY`, else `rookery.yaml` here, else no rules."""
    if path is None:
        path = os.environ.get(VARIABLE) or (DEFAULT_FILE if os.path.lexists(DEFAULT_FILE) else None)
    return PolicySet() if path is None else load_policies(path)


def load_policies(path: str | os.PathLike[str]) -> PolicySet:
    """Load a policy file, and check all of it."""
    file = os.fspath(path)
    text = _text(file)
    try:
        root = yaml.compose(text, yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = " ".join(str(error.problem or error.context or "not understood").split())
        _fail(file, mark.line + 1 if mark else 1, f"this is not YAML: {what}", "check indentation and quotes")
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        _fail(file, line, "YAML allows no control characters", "remove it")
    except RecursionError:
        _fail(file, 1, "this is nested too deeply", "rules are nested three deep at most")
    reader = _Reader(file)
    policies = reader.policies(root)
    if reader.errors:
        raise GroupedUsageError.of(reader.errors)
    return policies


def _text(file: str) -> str:
    try:
        with open(file, "rb") as stream:
            data = stream.read(MOST_BYTES + 1)
    except OSError as error:
        what = "there is no policy file" if isinstance(error, FileNotFoundError) else "cannot be read"
        reason = "" if isinstance(error, FileNotFoundError) else f": {error.strerror}"
        raise UsageError(f"{file}: {what}{reason}", hint=f"name another by --policy or ${VARIABLE}") from None
    if len(data) > MOST_BYTES:
        raise UsageError(f"{file}: a policy file of more than 1 MiB", hint="select tables by patterns")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        _fail(file, line, "this is not UTF-8", "save the file as UTF-8")


def _error(file: str, line: int, what: str, hint: str | None) -> UsageError:
    return UsageError(f"{file}:{line}: {shown(what, 300)}", hint=hint)


def _fail(file: str, line: int, what: str, hint: str | None) -> NoReturn:
    raise _error(file, line, what, hint) from None


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads the nodes of one file.

    Aliases share nodes, and nesting is of a fixed depth, so that aliases cannot expand without limit. What
    has an error is left out, and the rest is read for further errors.
    """

    file: str
    errors: list[UsageError] = field(default_factory=list)

    def tried(self, work: Callable[[], T]) -> T | None:
        """Return the result of reading a part; if that fails, keep the error and return None."""
        try:
            return work()
        except UsageError as error:
            is_new = str(error) not in map(str, self.errors)  # else of a node that several aliases share
            if is_new and len(self.errors) < _MOST_ERRORS:
                self.errors.append(error)
            return None

    def fail(self, node: yaml.Node, what: str, hint: str | None) -> NoReturn:
        _fail(self.file, _line(node), what, hint)

    def policies(self, root: yaml.Node | None) -> PolicySet:
        """Return the rules of the whole file."""
        rules: list[PolicyRule] = []
        entries = self.tried(lambda: self.entries(root, "the file")) if root is not None else {}
        for name, (key, node) in (entries or {}).items():
            rules += self.tried(partial(self.part, name, key, node)) or []
        self.errors.extend(_repeated(self.file, rules))
        if not self.errors:  # what is missing may be among what could not be read
            self.errors.extend(_incomplete(self.file, rules))
        return PolicySet(tuple(rules), self.file)

    def part(self, name: str, key: yaml.Node, node: yaml.Node) -> list[PolicyRule]:
        """Return the rules under a key at the top."""
        if name not in _TOP:
            self.fail(key, f"there is no key '{shown(name)}' at the top", _top_hint(name))
        if name == "defaults":
            return [PolicyRule(None, _line(key), self.settings(self.entries(node, name), "defaults"))]
        rules = [self.tried(partial(self.rule, each)) for each in self.items(node, name)]
        return [rule for rule in rules if rule is not None]

    def rule(self, node: yaml.Node) -> PolicyRule | None:
        """Return one rule, with its one selector."""
        entries = self.entries(node, "a rule")
        chosen = {name: entries.pop(name)[1] for name in list(entries) if name in _KINDS}
        selector = self.tried(lambda: self.selected(node, chosen))
        settings = self.settings(entries, str(selector))
        return None if selector is None else PolicyRule(selector, _line(node), settings)

    def selected(self, node: yaml.Node, chosen: Mapping[str, yaml.Node]) -> Selector:
        """Return the one selector of a rule."""
        if len(chosen) != 1:
            what = f"a rule selects by {' and '.join(chosen)}" if chosen else "a rule selects no table"
            self.fail(node, what, f"give it one of {', '.join(_KINDS)}; or use `defaults` for all tables")
        (kind,) = chosen
        return self.selector(SelectorKind(kind), chosen[kind])

    def selector(self, kind: SelectorKind, node: yaml.Node) -> Selector:
        """Return the selector of a rule."""
        text = self.scalar(node, kind)
        if kind is SelectorKind.TABLES:
            return Selector(kind, (text,))
        try:
            parts = split_name(text)
        except UsageError as error:
            self.fail(node, f"{kind}: {error.message}", error.hint)
        if kind is SelectorKind.CATALOG and len(parts) > 1:
            self.fail(node, f"catalog: '{shown(text)}' has several parts", "use `namespace` or `table`")
        if kind is SelectorKind.TABLE and len(parts) < 2:
            self.fail(node, f"table: '{shown(text)}' does not name a table", "use namespace.table")
        if kind is not SelectorKind.CATALOG and any(sign in text for sign in "*?[") and "`" not in text:
            self.fail(node, f"{kind}: '{shown(text)}' is a pattern", "select by `tables`, which takes them")
        return Selector(kind, parts)

    def settings(self, entries: Mapping[str, tuple[yaml.Node, yaml.Node]], what: str) -> Mapping[str, Given]:
        """Return the settings of a rule, section by section."""
        settings: dict[str, Given] = {}
        for name, (key, node) in entries.items():
            settings |= self.tried(partial(self.setting, name, key, node, what)) or {}
        self.tried(lambda: self.check(settings))
        return settings

    def setting(self, name: str, key: yaml.Node, node: yaml.Node, what: str) -> Mapping[str, Given]:
        """Return one setting, or those of a section."""
        if name in ALONE:
            return {name: self.given(name, key, node, what)}
        if name not in SECTIONS:
            self.fail(key, f"there is no setting '{shown(name)}'", hint_for(name, (*SECTIONS, *ALONE)))
        known = [each.rpartition(".")[2] for each in BY_KEY if each.startswith(f"{name}.")]
        settings: dict[str, Given] = {}
        for last, (key_, node_) in self.entries(node, name).items():
            if last in known:
                given = self.tried(partial(self.given, f"{name}.{last}", key_, node_, what))
                settings |= {} if given is None else {f"{name}.{last}": given}
            else:
                what_ = f"there is no setting '{shown(last)}' in {name}"
                self.tried(partial(self.fail, key_, what_, hint_for(last, known)))
        return settings

    def given(self, name: str, key: yaml.Node, node: yaml.Node, what: str) -> Given:
        """Return one setting, with the line of its key."""
        written: str | list[str]
        if isinstance(node, yaml.SequenceNode):
            written = [self.scalar(each, name) for each in self.items(node, name)]
        else:
            written = self.scalar(node, name)
        try:
            value = BY_KEY[name].parse(written)
        except UsageError as error:
            self.fail(_culprit(BY_KEY[name], node), f"{name}: {error.message}", error.hint)
        if name == "statistics.queries":
            folder = Path(self.file).absolute().parent
            value = tuple(str(folder / pattern) for pattern in value)
        text = written if isinstance(written, str) else ", ".join(written) or "none"
        return Given(value, shown(text), SettingSource(what, self.file, _line(key)))

    def check(self, settings: Mapping[str, Given]) -> None:
        """Refuse contradictory settings within one rule."""
        for wrong in contradictions({key: given.value for key, given in settings.items()}):
            message = wrong.message(lambda key: f"{key} {settings[key].text}")
            _fail(self.file, settings[wrong.keys[0]].source.line or 1, message, wrong.hint)

    def entries(self, node: yaml.Node, what: str) -> dict[str, tuple[yaml.Node, yaml.Node]]:
        """Return the entries of a mapping by their keys; an empty value is an empty mapping."""
        if self.empty(node):
            return {}
        if not isinstance(node, yaml.MappingNode) or node.tag != f"{_TAG}map":
            self.fail(node, f"{what} is {self.shape(node)}, not a mapping", "write `key: value` lines")
        entries: dict[str, tuple[yaml.Node, yaml.Node]] = {}
        for key, value in node.value:
            name = self.scalar(key, f"a key of {what}")
            if key.tag == f"{_TAG}merge":
                self.fail(key, "'<<' is not supported", "set it in `defaults`, or in a rule for more tables")
            if name in entries:
                first = _line(entries[name][0])
                self.fail(key, f"'{shown(name)}' is repeated, first on line {first}", "keep one")
            entries[name] = key, value
        return entries

    def items(self, node: yaml.Node, what: str) -> Sequence[yaml.Node]:
        """Return the items of a list; an empty value is an empty list."""
        if self.empty(node):
            return ()
        if not isinstance(node, yaml.SequenceNode) or node.tag != f"{_TAG}seq":
            self.fail(node, f"{what} is {self.shape(node)}, not a list", "begin each item with `- `")
        return list(node.value)

    def scalar(self, node: yaml.Node, what: str) -> str:
        """Return a single value as text."""
        if self.empty(node):
            self.fail(node, f"{what} has no value", "write one, or remove the key")
        if not isinstance(node, yaml.ScalarNode) or node.tag not in _SCALARS:
            self.fail(
                node, f"{what} is {self.shape(node)}, not a single value", "write plain text or a number"
            )
        text = str(node.value).strip()
        if not text:
            self.fail(node, f"{what} has no value", "write one, or remove the key")
        return text

    @staticmethod
    def empty(node: yaml.Node) -> bool:
        """Whether the value is empty, `~` or `null`."""
        return isinstance(node, yaml.ScalarNode) and node.tag == _NULL

    @staticmethod
    def shape(node: yaml.Node) -> str:
        """Return the kind of a node, for messages."""
        plain = node.tag in _SCALARS or node.tag in (f"{_TAG}map", f"{_TAG}seq", _NULL)
        return _SHAPES[type(node)] if plain else "a value with a tag"


def _culprit(setting: Setting, node: yaml.Node) -> yaml.Node:
    """Return the item of a list that cannot be parsed, or else the whole list."""
    items: Sequence[yaml.Node] = node.value if isinstance(node, yaml.SequenceNode) else ()
    for item in items if setting.many else ():
        try:
            setting.parse([str(item.value).strip()])
        except UsageError:
            return item
    return node


def _top_hint(name: str) -> str:
    if name in (*SECTIONS, *ALONE):
        return "put it under `defaults`, or into one of the `rules`"
    if name in _KINDS:
        return "put it into one of the `rules`"
    return hint_for(name, _TOP)


def _repeated(file: str, rules: Sequence[PolicyRule]) -> Iterator[UsageError]:
    """Yield errors of two rules with one selector that make the same setting."""
    seen: dict[tuple[Selector, str], int] = {}
    for rule in rules:
        if rule.selector is None:
            continue
        for key, given in rule.settings.items():
            line = given.source.line or 1
            if (first := seen.get((rule.selector, key))) is not None:
                yield _error(
                    file, line, f"{key} of {rule.selector} is set on line {first} already", "keep one"
                )
            seen[rule.selector, key] = line


def _incomplete(file: str, rules: Sequence[PolicyRule]) -> Iterator[UsageError]:
    """Yield errors of settings that need another one which the file does not make."""
    made = {key for rule in rules for key, given in rule.settings.items() if given.value != ()}
    for key, given in _settings(rules):
        line = given.source.line or 1
        if (
            key == "statistics.columns"
            and given.value == (FROM_QUERIES,)
            and "statistics.queries" not in made
        ):
            yield _error(
                file, line, f"{key} from-queries needs files of SQL", "name some: queries: [sql/*.sql]"
            )
        if given.value is Strategy.Z_ORDER and "compaction.columns" not in made:
            yield _error(file, line, f"{key} z-order needs columns", "name them: columns: [a, b]")


def _settings(rules: Sequence[PolicyRule]) -> Iterator[tuple[str, Given]]:
    for rule in rules:
        yield from rule.settings.items()
