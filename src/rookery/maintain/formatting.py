"""How things are said: numbers of them, and errors of others, in one line with no secrets."""

from __future__ import annotations

import re

from rookery.io import without_secrets
from rookery.tables import redact

_LONGEST = 2000  # characters; an error of Spark may hold a plan
_SEARCHED = 4 * _LONGEST
_ASSIGNED = re.compile(
    r"((?:password|passwd|pwd|secret|token|credential|(?:access|account|api)[-_.]?key)[\w.\-]*[\"']?\s*[=:]\s*)"
    r"(\"[^\"]*\"|'[^']*'|[^\s,;&)}\]]+)",
    re.I,
)


def one_line(text: str) -> str:
    """Return a text in one line of bounded length, with no passwords and no signed addresses.

    >>> one_line("refused:\\n postgresql://me:pw@host/db?sslkey=k password=pw")
    'refused: postgresql://host/db password=***'
    """
    whole = " ".join(text.split())
    # What is searched is bounded too, and ends with a whole word: half a secret would not be known as one.
    text = whole if len(whole) <= _SEARCHED else whole[:_SEARCHED].rpartition(" ")[0]
    text = _ASSIGNED.sub(r"\1***", without_secrets(redact(text), ""))
    return text if len(text) < _LONGEST and len(whole) <= _SEARCHED else text[: _LONGEST - 1] + "…"
