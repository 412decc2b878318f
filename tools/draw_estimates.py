"""Draw the figure of the docs that compares estimates: q-error by percentile, a line for each estimator.

python tools/draw_estimates.py    read benchmarks/results/estimate.json, write docs/estimates.svg
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "estimate.json"
FIGURE = ROOT / "docs" / "estimates.svg"

BY_PERCENTILE = "q-error by percentile, "
COLOURS = {  # readable on white and on black; lines that lie on each other differ by their dashes
    "Spark with compute_table_stats": ("#d9534f", ""),
    "Spark attached": ("#2f8fd0", ""),
    "table.estimate": ("#9a7d0a", "5 4"),
}
WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 88, 16, 64, 48
MARGIN = 1.02  # above the greatest error, as a factor of its logarithm
TICKS = (1, 25, 50, 75, 90, 99)


def main() -> int:
    if not RESULTS.exists():
        print(
            f"error: there is no {RESULTS.relative_to(ROOT)}; run make bench-estimate first", file=sys.stderr
        )
        return 2
    FIGURE.write_text(drawn(json.loads(RESULTS.read_text())["rows"]), encoding="utf-8")
    return 0


def drawn(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the figure as SVG."""
    found = {
        row["what"].removeprefix(BY_PERCENTILE).partition(":")[0]: row["series"]
        for row in rows
        if row["what"].startswith(BY_PERCENTILE)
    }
    curves = {name: found[name] for name in COLOURS}
    powers = max(math.log10(max(max(values) for values in curves.values())) * MARGIN, 1.0)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'font-family="sans-serif" font-size="12">',
        "<title>q-error of estimated rows, by percentile of the filters</title>",
        # As an image, a figure does not take over the colour of the page's text.
        "<style>svg { color: #555 } @media (prefers-color-scheme: dark) { svg { color: #aaa } }</style>",
        *_axes(powers),
        *_legend(curves),
        *(_curve(name, values, powers) for name, values in curves.items()),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _x(percent: float) -> float:
    return round(LEFT + (percent - 1) / 98 * (WIDTH - LEFT - RIGHT), 1)


def _y(error: float, powers: float) -> float:
    return round(HEIGHT - BOTTOM - math.log10(error) / powers * (HEIGHT - TOP - BOTTOM), 1)


def _axes(powers: float) -> Iterator[str]:
    for power in range(int(powers) + 1):
        y = _y(10**power, powers)
        yield _line(LEFT, y, WIDTH - RIGHT, y)
        yield _text(LEFT - 8, y + 4, f"{10**power:,}", "end")
    for percent in TICKS:
        yield _line(_x(percent), HEIGHT - BOTTOM, _x(percent), HEIGHT - BOTTOM + 5)
        yield _text(_x(percent), HEIGHT - BOTTOM + 19, str(percent), "middle")
    middle = (LEFT + WIDTH - RIGHT) / 2
    yield _text(middle, HEIGHT - 8, "percentile of the filters", "middle")
    yield _text(8, 16, "q-error: the factor by which an estimate is off", "start")


def _legend(curves: Mapping[str, object]) -> Iterator[str]:
    x = LEFT
    for name in curves:
        colour, dashes = COLOURS[name]
        yield (
            f'<line x1="{x}" y1="36" x2="{x + 28}" y2="36" stroke="{colour}" stroke-width="2.5" '
            f'stroke-dasharray="{dashes}"/>'
        )
        yield _text(x + 34, 40, name, "start")
        x += 64 + 7 * len(name)


def _curve(name: str, values: Sequence[float], powers: float) -> str:
    points = " ".join(f"{_x(percent)},{_y(error, powers)}" for percent, error in enumerate(values, 1))
    colour, dashes = COLOURS[name]
    return (
        f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2.5" '
        f'stroke-dasharray="{dashes}"/>'
    )


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="currentColor" stroke-opacity="0.35"/>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x}" y="{y}" fill="currentColor" text-anchor="{anchor}">{escape(text)}</text>'


if __name__ == "__main__":
    sys.exit(main())
