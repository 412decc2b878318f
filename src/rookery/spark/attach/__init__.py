"""Sessions that are attached: their queries are planned with what Rookery knows."""

from rookery.model import MachineError

try:
    from rookery.spark.attach.session import Attachment, attach, detach
except ModuleNotFoundError as error:  # pyspark is an extra
    raise MachineError(
        f"the package {error.name} is not installed", hint="pip install 'rookery[spark]'"
    ) from error

__all__ = ["Attachment", "attach", "detach"]
