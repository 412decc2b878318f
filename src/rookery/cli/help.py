"""Help of commands: shared options under a heading of their own, plain words for values, and examples."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, get_args

import typer
from rich.markup import escape
from typer.core import TyperCommand, TyperGroup

from rookery.cli.examples import EXAMPLES

if TYPE_CHECKING:
    _Base = TyperCommand
else:
    _Base = object

SHARED = "Shared options"
_WORDS = {int: "NUMBER", float: "NUMBER", str: "TEXT"}


def value_word(param: Any) -> str:
    """Return the word for the value of an option; a flag has none."""
    if param.metavar:
        return str(param.metavar)
    if param.is_flag:
        return ""
    kind = param.type_descriptor.annotation
    kind = next(iter(get_args(kind)), kind)  # of a list, what it holds
    if isinstance(kind, type) and issubclass(kind, Enum):
        return "|".join(str(choice.value) for choice in kind)
    return _WORDS.get(kind, "VALUE")


def argument_word(param: Any) -> str:
    """Return an argument as the usage line shows it: brackets if it may be omitted."""
    return str(param.metavar or (param.name.upper() if param.required else f"[{param.name.upper()}]"))


def examples_of(words: Sequence[str]) -> tuple[str, ...]:
    """Return the examples of a command, by its words without `rookery`."""
    return EXAMPLES.get(" ".join(words), ())


class _Helpful(_Base):
    """The help of a command or a group."""

    _shared: tuple[Any, ...] = ()

    def get_params(self, ctx: typer.Context) -> list[Any]:  # type: ignore[override]
        """Return the parameters, with the shared options, which the root command has parsed by now."""
        root = ctx.find_root().command
        if not self._shared and root is not self:
            self._shared = tuple(map(_without_value, shared_options(root)))
        return [*super().get_params(ctx), *self._shared]

    def collect_usage_pieces(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        """Return the words of the usage line behind the command."""
        if isinstance(self, TyperGroup):
            return [f"[OPTIONS] {self.subcommand_metavar}"]
        arguments = [param for param in self.params if param.param_type_name == "argument"]
        return [*map(argument_word, arguments), "[OPTIONS]"]

    def get_help(self, ctx: typer.Context) -> str:  # type: ignore[override]
        """Return the help, with examples at its end."""
        for param in self.get_params(ctx):
            shown = None if param.param_type_name == "argument" else value_word(param)
            param.display_type_rich = _constant(shown)
        paragraphs = (" ".join(part.split()) for part in (self.help or "").split("\n\n"))
        self.help = "\n\n".join(paragraphs)  # lines are broken by the terminal's width
        examples = examples_of(ctx.command_path.split()[1:])
        commands = "\n".join(escape(f"$ {line}") for line in examples)
        self.epilog = "\n\n".join([*self.notes(), *([f"Examples:\n{commands}"] if examples else [])])
        return super().get_help(ctx)

    def notes(self) -> Sequence[str]:
        """Return paragraphs to show below the options."""
        return ()


class HelpfulCommand(_Helpful, TyperCommand):
    """A command."""


class TableCommand(HelpfulCommand):
    """A command that needs pyarrow."""

    def invoke(self, ctx: typer.Context) -> object:  # type: ignore[override]
        """Run the command."""
        without_pandas()
        return super().invoke(ctx)


class HelpfulGroup(_Helpful, TyperGroup):  # type: ignore[misc]
    """A group of commands."""


class HelpfulTyper(typer.Typer):
    """An application whose commands are helpful ones."""

    def command(  # type: ignore[override]
        self, name: str | None = None, *, cls: type[TyperCommand] = TableCommand, **settings: Any
    ) -> Callable[[Any], Any]:
        """Register a command."""
        return super().command(name, cls=cls, **settings)


def group(**settings: Any) -> HelpfulTyper:
    """Return a group of commands, whose help is shown if none is named."""
    return HelpfulTyper(cls=HelpfulGroup, no_args_is_help=True, **settings)


def without_pandas() -> None:
    """Let pyarrow do without pandas: its first array would import it, in 0.2 s and 40 MB.

    Conversions to pandas import it still.
    """
    if "pandas" in sys.modules or "pyarrow" in sys.modules:
        return
    sys.meta_path.insert(0, _NoPandas)
    try:
        import pyarrow as pa  # which help and files do without

        pa.array([0])  # it looks for pandas once
    finally:
        sys.meta_path.remove(_NoPandas)


class _NoPandas:
    """Finds that pandas is not installed."""

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name)


def shared_options(root: Any) -> list[Any]:
    """Return the options of the root command that every command has."""
    return [param for param in root.params if getattr(param, "rich_help_panel", None) == SHARED]


def _without_value(param: Any) -> Any:
    """Return an option of the root command for another one, which only shows it."""
    param = copy.copy(param)
    param.expose_value = False
    return param


def _constant(text: str | None) -> Callable[..., str | None]:
    return lambda ctx: text
