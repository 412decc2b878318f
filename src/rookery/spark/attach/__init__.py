"""Sessions that are attached: their queries are planned with what Rookery knows."""

from typing import TYPE_CHECKING, Any

from rookery.spark.extra import with_pyspark

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
    """Import pyspark only when a session is attached."""
    if name in __all__:
        return getattr(with_pyspark("rookery.spark.attach.session"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
