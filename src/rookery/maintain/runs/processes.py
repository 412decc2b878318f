"""Which machine and process this is, and whether another one is still running."""

from __future__ import annotations

import hashlib
import os
import socket
import uuid
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

# Seconds that a machine's clock may be set back without a running process being taken for ended.
_CLOCK_MARGIN = 5.0
_ENDED = "ZX"  # states of a process that is only waited for by its parent


@cache
def machine() -> str:
    """This machine's name, with a mark that distinguishes machines of the same name.

    The mark is of the boot and of the process namespace: a process number means the same only where both are.
    """
    return f"{socket.gethostname()}#{hashlib.sha256('|'.join(_marks()).encode()).hexdigest()[:8]}"


def _marks() -> list[str]:
    marks = [socket.gethostname()]
    with suppress(OSError):
        marks.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        marks.append(os.readlink("/proc/self/ns/pid"))
    return marks if len(marks) > 1 else [*marks, f"{uuid.getnode():x}"]


def is_gone(host: str, pid: int, since: float | None = None) -> bool:
    """Whether a process is known to have ended; of one on another machine this is not known.

    With *since*, a time by this machine's clock at which it ran, a reused process number is detected.
    """
    if host != machine():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False  # it belongs to another user
    if (fields := _fields_of(pid)) and fields[0] in _ENDED:
        return True
    start = _start_of(fields)
    return since is not None and start is not None and start > since + _CLOCK_MARGIN


def _fields_of(pid: int) -> list[str]:
    """What the system states of a process: its state first; nothing, where it does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _start_of(fields: Sequence[str]) -> float | None:
    """When a process began, in seconds since 1970, where the system states it."""
    try:
        lines = Path("/proc/stat").read_text().splitlines()
        booted = next(float(line.split()[1]) for line in lines if line.startswith("btime "))
        return booted + int(fields[19]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, StopIteration):
        return None
