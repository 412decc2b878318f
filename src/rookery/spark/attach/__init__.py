"""Sessions that are attached: their queries are planned with what Rookery knows."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rookery.spark.attach.session import (
        Attachment,
        attach,
        attach_unless_attached,
        attached_queries,
        detach,
        plan_nodes,
    )

__all__ = ["Attachment", "attach", "attach_unless_attached", "attached_queries", "detach", "plan_nodes"]


def __getattr__(name: str) -> Any:
    """Import the planner of queries only when it is needed; pyspark only when a session is attached."""
    if name in __all__:
        return getattr(import_module("rookery.spark.attach.session"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
