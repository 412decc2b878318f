"""Sessions that are attached: their queries are planned with what Rookery knows."""

from rookery.spark.attach.session import Attachment, attach, detach

__all__ = ["Attachment", "attach", "detach"]
