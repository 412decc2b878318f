"""The text view of `rookery doctor`; apart from the others, as its report brings PyIceberg along."""

from __future__ import annotations

from rich.console import RenderableType

from rookery.api.doctor import DoctorReport
from rookery.cli.render import as_text
from rookery.cli.views import check_lines


@as_text.register
def doctor_text(report: DoctorReport) -> RenderableType:
    """A line a check, with a hint where something is to be done."""
    return check_lines(report.checks)
