"""A program that even root runs under the bits of its files: `… PROGRAM WORD…`."""

from __future__ import annotations

import ctypes
import os
import sys

_PR_CAPBSET_DROP = 24
_CAP_DAC_OVERRIDE = 1


def main(*words: str) -> None:
    if os.geteuid() == 0:  # to whom bits mean nothing, by a capability that is not handed on
        system = ctypes.CDLL(None, use_errno=True)
        if system.prctl(_PR_CAPBSET_DROP, _CAP_DAC_OVERRIDE, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "a capability cannot be dropped")
    os.execv(words[0], words)


if __name__ == "__main__":
    main(*sys.argv[1:])
