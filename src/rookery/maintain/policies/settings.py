"""The one table of settings: how each is written, shown, and where it lives in a policy."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum
from typing import Any

from rookery.indexes import KINDS, kind_names
from rookery.io import local_path, scheme_of
from rookery.io import shown as shown_location
from rookery.io.redaction import is_secret, redact
from rookery.maintain.policies.policy import DEFAULT, FROM_QUERIES, Policy, Strategy, Verify, WantedIndex
from rookery.maintain.policies.times import (
    parse_duration,
    parse_quiet_hours,
    parse_schedule,
    show_duration,
    show_quiet_hours,
    show_schedule,
)
from rookery.model import UsageError

LEAST_ORPHAN_AGE = timedelta(hours=24)  # Iceberg's own procedure refuses less
_INDEX = re.compile(r"(\w+)\s*\(\s*(.*?)\s*\)")
_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")  # not 010, which is eight in YAML and ten elsewhere
_DECIMAL = re.compile(r"-?[0-9]{1,17}(?:\.[0-9]{0,17})?")
_SIZE = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,6})?)\s*([A-Za-z]*)")
_SIZES: dict[str, int] = {"": 1, "b": 1} | {
    f"{letter}{infix}b": base**power
    for power, letter in enumerate("kmgt", 1)
    for infix, base in (("", 1000), ("i", 1024))
}
_YES_NO = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting by its dotted key, which is also its path in `Policy`."""

    key: str
    read: Callable[[str], Any]  # of one text, or of one entry of a list
    show: Callable[[Any], str] = str
    many: bool = False
    words: Mapping[str, Any] = field(default_factory=dict)  # that replace a whole value
    some: bool = False  # whether a list must not be empty

    @property
    def section(self) -> str:
        """Its section, or empty if it is in none."""
        return self.key.rpartition(".")[0]

    @property
    def path(self) -> tuple[str, ...]:
        """The attributes that lead to it in a policy."""
        return tuple(self.key.replace("-", "_").split("."))

    def parse(self, written: str | Sequence[str]) -> Any:
        """Return the value of what was written; a text may hold a list, separated by commas."""
        if isinstance(written, str):
            if written in self.words:
                return self.words[written]
            if not self.many:
                return self.read(written)
            written = [part.strip() for part in written.split(",")] if written.strip() else []
        elif not self.many:
            raise UsageError("one value is expected here, not a list", hint="write it without brackets")
        return self._listed(written)

    def _listed(self, written: Sequence[str]) -> tuple[Any, ...]:
        values = tuple(map(self.read, written))
        for number, text in enumerate(written):
            if text in self.words:
                raise UsageError(
                    f"'{text}' must be the only value, not in a list", hint=f"write {text} without brackets"
                )
            if values[number] in values[:number]:
                raise UsageError(f"'{shown(text)}' is named twice", hint="name it once")
        if not values and self.some:
            raise UsageError("the list is empty", hint=f"write {' or '.join(self.words)}, or name some")
        return values

    def text(self, value: Any) -> str:
        """Return a value as one would write it."""
        for word, meaning in self.words.items():
            if meaning == value and type(meaning) is type(value):
                return word
        return ", ".join(map(self.show, value)) if self.many else self.show(value)

    def of(self, policy: Policy) -> Any:
        """Return the value that a policy has."""
        value: Any = policy
        for name in self.path:
            value = getattr(value, name)
        return value


def shown(text: str, most: int = 60) -> str:
    """Return a text as one line for messages: shortened if long, and without passwords in URLs."""
    text = redact(" ".join(text.split()))
    return text if len(text) <= most else text[: most - 1] + "…"


def parse_size(text: str) -> int:
    """Read a number of bytes, or of some unit of them.

    >>> parse_size("128MB"), parse_size("1.5KiB"), parse_size("42")
    (128000000, 1536, 42)
    """
    match = _SIZE.fullmatch(text.strip())
    unit: int | None = _SIZES.get(match[2].lower()) if match is not None else None
    hint = "write bytes, or a number and a unit: 128MB, 512MiB, 1GB"
    if match is None or unit is None:
        raise UsageError(f"'{shown(text)}' is not a size", hint=hint)
    size = round(float(match[1]) * unit) if "." in match[1] else int(match[1]) * unit
    if not 0 < size < 1 << 62:
        raise UsageError(f"'{shown(text)}' is not a size of files", hint=hint)
    return size


def show_size(value: int) -> str:
    """Format a size in the largest unit that divides it.

    >>> show_size(128_000_000), show_size(536_870_912), show_size(1001)
    ('128MB', '512MiB', '1001')
    """
    units = sorted(((unit, name) for name, unit in _SIZES.items() if name not in ("", "b")), reverse=True)
    for unit, name in units:
        if value % unit == 0:
            return f"{value // unit}{name[0].upper()}{name[1:-1]}B"
    return str(value)


def _whole(least: int | None = None) -> Callable[[str], int]:
    def read(text: str) -> int:
        if _WHOLE.fullmatch(text) is None:
            raise UsageError(f"'{shown(text)}' is not a whole number", hint="write digits only, such as 20")
        if least is not None and int(text) < least:
            raise UsageError(f"'{text}' is below {least}", hint=f"the minimum is {least}")
        return int(text)

    return read


def _number(least: float, most: float | None = None, *, above: bool = False) -> Callable[[str], float]:
    """Read a number from *least*, or from *above* it, to *most*."""
    start = f"above {least:g}" if above else f"{least:g} or more"
    span = start if most is None else f"{start} and at most {most:g}" if above else f"{least:g} to {most:g}"

    def read(text: str) -> float:
        if _DECIMAL.fullmatch(text) is None:
            raise UsageError(f"'{shown(text)}' is not a number", hint=f"write a number, {span}")
        value = float(text)
        if value < least or (above and value == least) or (most is not None and value > most):
            raise UsageError(f"'{shown(text)}' is out of range", hint=f"the range is {span}")
        return value

    return read


def _yes_no(text: str) -> bool:
    if text.lower() not in _YES_NO:
        raise UsageError(f"'{shown(text)}' is neither true nor false", hint="write true or false")
    return _YES_NO[text.lower()]


def _one_of(kind: type[StrEnum]) -> Callable[[str], StrEnum]:
    def read(text: str) -> StrEnum:
        if text not in list(kind):
            raise UsageError(f"'{shown(text)}' is not known", hint=f"it is one of {', '.join(kind)}")
        return kind(text)

    return read


def _name(text: str) -> str:
    if not text.strip():
        raise UsageError("a name is empty", hint="name a column; one in a struct as a.b")
    return text.strip()


def _index(text: str) -> WantedIndex:
    match = _INDEX.fullmatch(text.strip())
    if match is None or not match[2]:
        raise UsageError(f"'{shown(text)}' is not an index", hint=f"write KIND(column); {_kinds()}")
    if match[1] not in KINDS:
        raise UsageError(f"'{shown(text)}' is not a known kind of index", hint=_kinds())
    return WantedIndex(match[1], match[2])


def _kinds() -> str:
    return f"the kinds are {kind_names()}"


def _orphan_age(text: str) -> timedelta:
    age = parse_duration(text)
    if age < LEAST_ORPHAN_AGE:
        raise UsageError(
            f"'{text}' is below 24h, which Iceberg refuses", hint="a writer may still be running; write 3d"
        )
    return age


def trash_folder(text: str) -> str:
    """Read the folder that orphan files are moved to: a path from the root, or a URL.

    >>> trash_folder("/mnt/trash/"), trash_folder("s3://bucket/trash")
    ('/mnt/trash', 's3://bucket/trash')
    """
    folder = text.strip().rstrip("/")
    if not folder or (scheme_of(folder) is None and not local_path(folder).startswith("/")):
        raise UsageError(f"'{shown(text)}' is not a folder for the trash", hint="write a full path, or a URL")
    return folder


_NEVER: Mapping[str, Any] = {"never": None}
_NONE: Mapping[str, Any] = {"none": ()}
_COLUMNS: Mapping[str, Any] = {"all": (), FROM_QUERIES: (FROM_QUERIES,)}
SETTINGS = (
    Setting("statistics.health", _number(0, 1), "{:g}".format),
    Setting("statistics.snapshots", _whole(1), words=_NEVER),
    Setting("statistics.every", parse_schedule, show_schedule, words=_NEVER),
    Setting("statistics.after-compaction", _yes_no, lambda value: str(value).lower()),
    Setting("statistics.columns", _name, many=True, words=_COLUMNS, some=True),
    Setting("statistics.queries", _name, many=True, words=_NONE),
    Setting("indexes", _index, lambda index: f"{index.kind}({index.column})", many=True, words=_NONE),
    Setting("compaction.strategy", _one_of(Strategy)),
    Setting("compaction.columns", _name, many=True, words=_NONE),
    Setting("compaction.target-size", parse_size, show_size, words={"table": None}),
    Setting("compaction.small-size", parse_size, show_size, words={"auto": None}),
    Setting("compaction.min-files", _whole(1)),
    Setting("compaction.delete-ratio", _number(0, 1, above=True), "{:g}".format),
    Setting("compaction.most-overlap", _number(1), "{:g}".format),
    Setting("deletes.min-files", _whole(1)),
    Setting("deletes.dangling", _yes_no, lambda value: str(value).lower()),
    Setting("manifests.most-small", _whole(0)),
    Setting("snapshots.keep-for", parse_duration, show_duration, words={"forever": None}),
    Setting("snapshots.keep-last", _whole()),
    Setting("orphans.older-than", _orphan_age, show_duration, words=_NEVER),
    Setting("orphans.max-share", _number(0, 1, above=True), "{:g}".format),
    Setting("orphans.trash", trash_folder, shown_location, words={"none": None}),
    Setting("orphans.trash-keep", parse_duration, show_duration),
    Setting("orphans.outside", _yes_no, lambda value: str(value).lower()),
    Setting("statistics-files.older-than", parse_duration, show_duration, words=_NEVER),
    Setting("quiet-hours", parse_quiet_hours, show_quiet_hours, many=True, words=_NONE),
    Setting("limits.bytes", parse_size, show_size, words={"none": None}),
    Setting("verify", _one_of(Verify)),
)
BY_KEY: Mapping[str, Setting] = {setting.key: setting for setting in SETTINGS}
SECTIONS: tuple[str, ...] = tuple(dict.fromkeys(each.section for each in SETTINGS if each.section))
ALONE: tuple[str, ...] = tuple(each.key for each in SETTINGS if not each.section)


def hint_for(key: str, known: Iterable[str]) -> str:
    """Return what to do about a key that is not known, *known* being those that are valid there."""
    if is_secret(key) or "webhook" in key.lower():
        return "secrets do not belong in this file; use the environment"
    known = list(known)
    if close := difflib.get_close_matches(key.lower().replace("_", "-"), known, n=1):
        return f"did you mean {close[0]}?"
    last = key.lower().replace("_", "-").rpartition(".")[2]
    if places := [each.key for each in SETTINGS if each.key.rpartition(".")[2] == last]:
        return f"it belongs elsewhere: {' or '.join(places)}"
    return f"there are {', '.join(known)}"


def policy_from(values: Mapping[str, Any]) -> Policy:
    """Return the policy that *values* make, by key; others have their defaults.

    Settings overridden by another are omitted: files of queries where columns are not taken from them,
    and columns to sort by where nothing is sorted.
    """
    values = {setting.key: setting.of(DEFAULT) for setting in SETTINGS} | dict(values)
    if values["statistics.columns"] == (FROM_QUERIES,):
        values["statistics.columns"] = ()
    else:
        values["statistics.queries"] = ()
    if values["compaction.strategy"] not in (Strategy.SORT, Strategy.Z_ORDER):
        values["compaction.columns"] = ()
    top: dict[str, Any] = {}
    for section in SECTIONS:
        in_section = {each.path[1]: values[each.key] for each in SETTINGS if each.section == section}
        name = section.replace("-", "_")
        top[name] = replace(getattr(DEFAULT, name), **in_section)
    return replace(DEFAULT, **top, **{BY_KEY[key].path[0]: values[key] for key in ALONE})


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Contradictory settings: a text with placeholders, and the keys that fill them."""

    text: str
    keys: tuple[str, ...]
    hint: str

    def message(self, show: Callable[[str], str]) -> str:
        """Return the text, each key as *show* shows it."""
        return self.text.format(*map(show, self.keys))


def contradictions(values: Mapping[str, Any]) -> Iterator[Contradiction]:
    """Find contradictions among values where both sides are set."""
    small, target = values.get("compaction.small-size"), values.get("compaction.target-size")
    if small is not None and target is not None and small >= target:
        keys = ("compaction.small-size", "compaction.target-size")
        yield Contradiction("{} is not below {}", keys, "a file of the target size must not count as small")
    strategy, columns = values.get("compaction.strategy"), values.get("compaction.columns")
    if strategy in (Strategy.NONE, Strategy.BIN_PACK) and columns:
        keys = ("compaction.columns", "compaction.strategy")
        yield Contradiction("{} cannot be used with {}", keys, "columns are those of sort and z-order")
    if strategy is Strategy.Z_ORDER and columns == ():
        keys = ("compaction.strategy", "compaction.columns")
        yield Contradiction("{} needs columns, and there is {}", keys, "name the columns to order by")
    if values.get("statistics.columns") == (FROM_QUERIES,) and values.get("statistics.queries") == ():
        keys = ("statistics.columns", "statistics.queries")
        yield Contradiction("{} needs files of SQL, and there is {}", keys, "name some: queries: [sql/*.sql]")
