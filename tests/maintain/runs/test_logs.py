"""Logs are one line each, whole JSON, and hold no secrets."""

from __future__ import annotations

import io
import json
import logging
import os
import sys
from datetime import datetime
from pathlib import Path

import pytest

from rookery.io.redaction import one_line
from rookery.maintain.runs.logs import LogFormat, logging_to

LOG = logging.getLogger("rookery.maintain.test")


def lines(form: LogFormat) -> list[str]:
    """What is written of one odd event and one error."""
    stream = io.StringIO()
    with logging_to(stream, form):
        LOG.info(
            "done\nwith %s", "jdbc://me:hunter2@host/db\x1b[31m", extra={"table": "lake.db.o", "seconds": 1.5}
        )
        try:
            raise ValueError("token=hunter2\nin two lines")
        except ValueError:
            LOG.exception("failed", extra={"step": "expire-snapshots", "run": 7})
        LOG.debug("not wanted")
    return stream.getvalue().splitlines()


def test_json() -> None:
    first, second = map(json.loads, lines(LogFormat.JSON))
    assert datetime.fromisoformat(first.pop("time")).tzinfo is not None
    assert first == {
        "level": "info",
        "message": "done with jdbc://host/db\x1b[31m",
        "table": "lake.db.o",
        "seconds": 1.5,
    }
    assert (second["level"], second["step"], second["run"]) == ("error", "expire-snapshots", 7)
    assert second["error"] == "ValueError: token=*** in two lines"


def test_text() -> None:
    first, second = lines(LogFormat.TEXT)
    assert first.endswith(" done with jdbc://host/db\\x1b[31m")
    assert second.endswith(" error: failed")


def test_nested_values_are_cleaned() -> None:
    stream = io.StringIO()
    with logging_to(stream, LogFormat.JSON):
        LOG.info("x", extra={"breaches": ("password: hunter2", "b\nc"), "cause": Path("/a")})
    said = json.loads(stream.getvalue())
    assert (said["breaches"], said["cause"]) == (["password: ***", "b c"], "/a")


def test_what_was_there_comes_back() -> None:
    log = logging.getLogger("rookery")
    before = log.handlers[:], log.level, log.propagate
    stream = io.StringIO()
    with pytest.raises(ZeroDivisionError), logging_to(stream, LogFormat.TEXT):
        LOG.info("%s", 1 / len(stream.getvalue()))
    assert (log.handlers, log.level, log.propagate) == before


def test_goes_on_while_standard_error_is_taken_away(tmp_path: Path) -> None:
    """Spark's start puts a file in the place of standard error."""
    target, other = tmp_path / "err", tmp_path / "other"
    with target.open("w") as stream, logging_to(stream, LogFormat.TEXT):
        saved = os.dup(stream.fileno())
        with other.open("w") as away:
            os.dup2(away.fileno(), stream.fileno())
        LOG.info("meanwhile")
        os.dup2(saved, stream.fileno())
        os.close(saved)
    assert target.read_text().endswith("meanwhile\n")
    assert other.read_text() == ""


def test_standard_error_by_default(capfd: pytest.CaptureFixture[str]) -> None:
    with logging_to(None, LogFormat.TEXT):
        LOG.warning("look")
    sys.stderr.flush()
    assert capfd.readouterr().err.endswith("warning: look\n")


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://me:hunter2@host/db",
        "s3.secret-access-key=hunter2",
        "'password': 'hunter2'",
        'api_key: "hunter2 and more"',
        "https://host/path?X-Amz-Signature=hunter2",
        "Token=hunter2,x",
    ],
)
def test_no_secrets(text: str) -> None:
    said = one_line(f"before {text} after")
    assert "hunter2" not in said
    assert (said.split()[0], said.split()[-1]) == ("before", "after")


@pytest.mark.parametrize("text", ["x" * 100_000, "x " * 50_000, "x" * 2000 + " y"])
def test_bounded(text: str) -> None:
    said = one_line(text)
    assert len(said) <= 2000
    assert said.endswith("…")


def test_short_texts_are_whole() -> None:
    assert one_line("x" * 1999) == "x" * 1999


def test_the_half_of_a_secret_is_not_left() -> None:
    """Hiding makes the text short, so that its end would be shown."""
    text = "https://h/?sig=" + "s" * 7000 + " https://me:" + "p" * 3000 + "@host/"
    assert one_line(text) == "https://h/…"
