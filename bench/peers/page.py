"""Tables and charts of the bench against other tools, as they stand in docs/bench_peers.md.

Charts are SVG written by hand, as that of `bench/accuracy/plot.py` is: groups of bars on a logarithmic axis, ours in
blue.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, LEFT, RIGHT, TOP, LINE, GAP, FOOT = 960, 330, 90, 48, 22, 26, 34
OURS = "ragwatch"
_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#3b4252}.title{font-weight:600;font-size:14px}.end{text-anchor:end}"
    ".middle{text-anchor:middle}.group{font-weight:600}.grid{stroke:#e6e9ef}.one{stroke:#5d6778;stroke-dasharray:5 4}"
    ".ours{fill:#1d5fb4}.peer{fill:#c8ced8}"
)


@dataclass(frozen=True, slots=True)
class Bar:
    """A figure of one tool; None where it could not be measured."""

    name: str
    value: float | None


@dataclass(frozen=True, slots=True)
class Chart:
    """Groups of bars."""

    title: str  # what is shown
    groups: Sequence[tuple[str, Sequence[Bar]]]  # name and bars of each group
    unit: str  # written behind each figure


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the page: its table in Markdown, and its chart."""

    table: str
    chart: Chart


def figure(value: float) -> str:
    """A number with two or three digits that count.

    >>> figure(1234.5), figure(12.34), figure(1.234), figure(0.0123), figure(0.0)
    ('1,234', '12.3', '1.23', '0.012', '0')
    """
    if value == 0 or value >= 100:
        return f"{value:,.0f}"
    if value >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


def draw(chart: Chart) -> str:
    """The chart as an SVG."""
    values = [bar.value for _, bars in chart.groups for bar in bars if bar.value]
    low = min(0, math.floor(math.log10(min(values, default=1.0)) * 2) / 2)
    high = max(1, math.ceil(math.log10(max(values, default=10.0)) * 2) / 2)

    def x(value: float) -> float:
        share = (math.log10(max(value, 10**low)) - low) / (high - low)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    parts, y = [], float(TOP)
    for name, bars in chart.groups:
        parts.append(f'<text class="group" x="16" y="{y + 14:.0f}">{escape(name)}</text>')
        y += LINE if name else 0
        for bar in bars:
            parts.append(_bar(bar, x, y, chart.unit))
            y += LINE
        y += GAP - LINE / 2
    height = round(y + FOOT)
    title = escape(chart.title)
    grid = "".join(
        f'<line class="{"one" if power == 0 else "grid"}" x1="{x(10.0**power):.1f}" x2="{x(10.0**power):.1f}" '
        f'y1="{TOP}" y2="{height - FOOT}"/>'
        f'<text class="middle" x="{x(10.0**power):.1f}" y="{height - FOOT + 18}">{10.0**power:g}</text>'
        for power in range(math.ceil(low), math.floor(high) + 1)
    )
    grid += f'<text x="16" y="{height - FOOT + 18}">logarithmic axis</text>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img" aria-label="{title}"><style>{_STYLE}</style><rect width="{WIDTH}" height="{height}" fill="#fff"/>'
        f'<text class="title" x="16" y="26">{title}</text>{grid}{"".join(parts)}</svg>\n'
    )


def _bar(bar: Bar, x: Callable[[float], float], y: float, unit: str) -> str:
    label = f'<text class="end" x="{LEFT - 10}" y="{y + 14:.0f}">{escape(bar.name)}</text>'
    if bar.value is None:
        return f'{label}<text x="{LEFT + 6}" y="{y + 14:.0f}">not measured</text>'
    kind = "ours" if bar.name.startswith(OURS) else "peer"
    width = max(2.0, x(bar.value) - LEFT)
    return (
        f'{label}<rect class="{kind}" x="{LEFT}" y="{y + 3:.0f}" width="{width:.1f}" height="{LINE - 6}"/>'
        f'<text x="{LEFT + width + 6:.1f}" y="{y + 14:.0f}">{figure(bar.value)}{escape(unit)}</text>'
    )


def placed(page: str, name: str, table: str) -> str:
    r"""The page with this table between its marks.

    >>> placed("<!-- tail -->\nold\n<!-- /tail -->", "tail", "new")
    '<!-- tail -->\nnew\n<!-- /tail -->'
    """
    pattern = re.compile(rf"(?s)(<!-- {name} -->\n).*?(\n<!-- /{name} -->)")
    if not pattern.search(page):
        raise SystemExit(
            f"docs/bench_peers.md: no place for {name!r}; it needs the lines <!-- {name} --> and <!-- /{name} -->"
        )
    return pattern.sub(lambda match: match[1] + table + match[2], page)
