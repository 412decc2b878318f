"""The public names: those of `rookery`, those that modules of `rookery.api` list, and the calls they give."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import rookery
import rookery.api
from rookery.api.lake import Lake
from rookery.api.table import TableHandle
from rookery.model import Report

HANDLES = (Lake, TableHandle)  # whose methods are calls too


def api_modules() -> list[ModuleType]:
    return [
        importlib.import_module(f"{rookery.api.__name__}.{module.name}")
        for module in pkgutil.iter_modules(rookery.api.__path__)
    ]


def public_names() -> dict[str, Any]:
    """What users import, by its full name."""
    of_root = {f"rookery.{name}": getattr(rookery, name) for name in rookery.__all__}
    return of_root | {
        f"{module.__name__}.{name}": getattr(module, name)
        for module in api_modules()
        for name in getattr(module, "__all__", ())
    }


def public_calls() -> dict[str, Callable[..., Any]]:
    """Every function that is public, and every public method of a handle."""
    functions = {name: found for name, found in public_names().items() if inspect.isfunction(found)}
    methods = {
        f"{handle.__name__}.{name}": found
        for handle in HANDLES
        for name, found in vars(handle).items()
        if name[0] != "_" and inspect.isfunction(found)
    }
    return functions | methods


def reports() -> list[type[Report]]:
    """Every class of report."""
    api_modules()
    return list(_below(Report))


def _below(parent: type[Report]) -> Iterator[type[Report]]:
    for child in parent.__subclasses__():
        module = sys.modules[child.__module__]
        if module.__name__.startswith("rookery.") and getattr(module, child.__name__, None) is child:
            yield child  # and not what `dataclass` has replaced by a class with slots
        yield from _below(child)
