"""Modules that need pyspark, which is an extra and slow to import."""

from importlib import import_module
from types import ModuleType

from rookery.model import MachineError
from rookery.spark.versions import check_installed


def with_pyspark(module: str) -> ModuleType:
    """Import a module that needs pyspark, or raise an error that states how to install it."""
    check_installed()
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise MachineError(
            f"the package {error.name} is not installed", hint="pip install 'rookery[spark]'"
        ) from error
