"""The chart of a route: level, what was broken, alarms of detectors, tickets and pages, over the days of the month."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from month.record import Course, Points

_WIDTH, _LEFT, _RIGHT, _TOP, _PLOT, _LANE, _FOOT = 1180, 150, 24, 64, 170, 24, 40
_INK = (
    "text{font:12px system-ui,sans-serif;fill:#333c4d}.title{font-size:15px;font-weight:600}.quiet{fill:#5d6778}"
    ".end{text-anchor:end}.middle{text-anchor:middle}.paper{fill:#fff}.grid{stroke:#e3e7ee}"
    ".broken{fill:#c2410c;opacity:.13}.bar{fill:#c2410c}.deploy{stroke:#7a8599;stroke-dasharray:2 4}"
    "polyline{fill:none;stroke-width:1.8}.level{stroke:#6b7688;stroke-dasharray:5 4}"
    ".levelband{fill:#6b7688;opacity:.13}.levelbox{fill:#9aa3b2}.faith{stroke:#1d5fb4}.faithband{fill:#1d5fb4;opacity:.2}.faithbox{fill:#1d5fb4}"
    ".prec{stroke:#0f7f6b}.precband{fill:#0f7f6b;opacity:.18}.precbox{fill:#0f7f6b}"
    ".alarm{fill:#8b6cc9}.ticket{fill:#c99700}.page{fill:#cf222e}.false{fill:none;stroke:#cf222e;stroke-width:2}"
)
_DARK = (
    "text{fill:#d5dae3}.quiet{fill:#9aa5b8}.paper{fill:#12161d}.grid{stroke:#2a313d}.broken{fill:#fb923c;opacity:.16}"
    ".bar{fill:#fb923c}.deploy{stroke:#8590a5}.level{stroke:#98a3b8}.levelband,.levelbox{fill:#98a3b8}"
    ".faith{stroke:#6aa8ff}.faithband,.faithbox{fill:#6aa8ff}.prec{stroke:#4fd1b5}.precband,.precbox{fill:#4fd1b5}.alarm{fill:#b49af0}.ticket{fill:#e3b341}"
    ".page{fill:#ff7b72}.false{stroke:#ff7b72}"
)


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of a lane."""

    begin: float  # where it begins, in days
    end: float  # where it ends
    kind: str  # class of its style
    text: str = ""  # written behind it


Lane = tuple[str, Sequence[Bar]]


@dataclass(frozen=True, slots=True)
class Chart:
    """What is drawn of a route."""

    title: str  # its title
    days: float  # length of the month
    course: Course  # its level
    broken: Sequence[tuple[float, float]]  # times in which something was broken
    deploys: Sequence[float]  # times of deploys
    lanes: Sequence[Lane]  # names and bars of the lanes below the level


def draw(chart: Chart) -> str:
    """The chart as an SVG, for light and dark pages.

    Bars of a lane whose texts would overlap are drawn in rows of their own.
    """
    below = float(_TOP + _PLOT + 14)
    lanes, bottom = [], below
    for name, bars in chart.lanes:
        rows = list(_rows(chart, bars))
        lanes.append(f'<text class="end" x="{_LEFT - 10}" y="{bottom + 16:.0f}">{escape(name)}</text>')
        lanes.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{bottom:.0f}" y2="{bottom:.0f}"/>')
        for row in rows:
            lanes += [_bar(chart, bar, bottom) for bar in row]
            bottom += _LANE
    height = round(bottom + _FOOT)
    shades = "".join(
        f'<rect class="broken" x="{_x(chart, begin):.1f}" y="{_TOP}" '
        f'width="{_x(chart, end) - _x(chart, begin):.1f}" height="{bottom - _TOP:.0f}"/>'
        for begin, end in chart.broken
    )
    deploys = "".join(
        f'<line class="deploy" x1="{_x(chart, at):.1f}" x2="{_x(chart, at):.1f}" y1="{_TOP}" y2="{bottom:.0f}"/>'
        for at in chart.deploys
    )
    course = (("level", chart.course.level), ("prec", chart.course.precision), ("faith", chart.course.faithfulness))
    lines = "".join(_line(chart, points, kind) for kind, points in course)
    title = escape(chart.title)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        f'role="img" aria-label="{title}"><style>{_INK}@media(prefers-color-scheme:dark){{{_DARK}}}</style>'
        f'<rect class="paper" width="{_WIDTH}" height="{height}"/><text class="title" x="16" y="26">{title}</text>'
        f"{_legend()}{shades}{_axes(chart, bottom)}{deploys}{lines}{''.join(lanes)}</svg>\n"
    )


def _x(chart: Chart, day: float) -> float:
    return _LEFT + min(max(day / chart.days, 0.0), 1.0) * (_WIDTH - _LEFT - _RIGHT)


def _y(value: float) -> float:
    return _TOP + (1.0 - value) * _PLOT


def _legend() -> str:
    entries = (
        ("faithbox", "faithfulness, as judged"),
        ("levelbox", "its level in people's terms"),
        ("precbox", "context precision, as judged"),
        ("broken", "broken"),
        ("deploy", "deploy"),
    )
    parts, x = [], float(_LEFT)
    for kind, text in entries:
        mark = (
            f'<line class="deploy" x1="{x + 6:.0f}" x2="{x + 6:.0f}" y1="38" y2="54"/>'
            if kind == "deploy"
            else f'<rect class="{kind}" x="{x:.0f}" y="41" width="12" height="10" rx="2"/>'
        )
        parts.append(f'{mark}<text class="quiet" x="{x + 18:.0f}" y="50">{escape(text)}</text>')
        x += 44 + 6.4 * len(text)
    return "".join(parts)


def _axes(chart: Chart, bottom: float) -> str:
    parts = [
        f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{_y(value):.1f}" y2="{_y(value):.1f}"/>'
        f'<text class="end quiet" x="{_LEFT - 10}" y="{_y(value) + 4:.1f}">{value:g}</text>'
        for value in (0.0, 0.25, 0.5, 0.75, 1.0)
    ]
    step = 1 if chart.days <= 15 else 2
    parts += [
        f'<text class="middle quiet" x="{_x(chart, day):.1f}" y="{bottom + 20:.0f}">{day}</text>'
        for day in range(0, int(chart.days) + 1, step)
    ]
    parts.append(f'<text class="end quiet" x="{_LEFT - 10}" y="{bottom + 20:.0f}">day</text>')
    return "".join(parts)


def _line(chart: Chart, points: Points, kind: str) -> str:
    """A line with its interval; days without a figure are a gap."""
    runs: list[list[Sequence[float]]] = []
    for point in points:
        if not runs or point[0] - runs[-1][-1][0] > 0.3:
            runs.append([])
        runs[-1].append(point)
    parts = []
    for run in runs:
        low = " ".join(f"{_x(chart, day):.1f},{_y(low):.1f}" for day, _, low, _ in run)
        high = " ".join(f"{_x(chart, day):.1f},{_y(high):.1f}" for day, _, _, high in reversed(run))
        mean = " ".join(f"{_x(chart, day):.1f},{_y(mean):.1f}" for day, mean, _, _ in run)
        parts.append(f'<polygon class="{kind}band" points="{low} {high}"/><polyline class="{kind}" points="{mean}"/>')
    return "".join(parts)


def _place(chart: Chart, bar: Bar) -> tuple[float, float, bool]:
    """Left and right end of a bar with its text, and whether the text stands on its left side."""
    begin, end = _x(chart, bar.begin), max(_x(chart, bar.end), _x(chart, bar.begin) + 4.0)
    text = 8.0 + 6.3 * len(bar.text)
    if end + text > _WIDTH - _RIGHT:
        return begin - text, end, True
    return begin, end + text, False


def _rows(chart: Chart, bars: Sequence[Bar]) -> Iterator[list[Bar]]:
    """Bars in as many rows as it takes that none covers another; one empty row for none."""
    rows: list[tuple[float, list[Bar]]] = []
    for bar in sorted(bars, key=lambda one: one.begin):
        left, right, _ = _place(chart, bar)
        for index, (end, row) in enumerate(rows):
            if end < left:
                row.append(bar)
                rows[index] = (right, row)
                break
        else:
            rows.append((right, [bar]))
    yield from (row for _, row in rows or [(0.0, [])])


def _bar(chart: Chart, bar: Bar, top: float) -> str:
    begin, end = _x(chart, bar.begin), max(_x(chart, bar.end), _x(chart, bar.begin) + 4.0)
    before = _place(chart, bar)[2]
    where = f'class="end" x="{begin - 5:.1f}"' if before else f'x="{end + 5:.1f}"'
    return (
        f'<rect class="{bar.kind}" x="{begin:.1f}" y="{top + 6:.0f}" width="{end - begin:.1f}" height="12" rx="2"/>'
        f'<text {where} y="{top + 16:.0f}">{escape(bar.text)}</text>'
    )
