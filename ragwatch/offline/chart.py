"""Draws detector traces as SVG: the mean with its interval above, evidence relative to its threshold below."""

import math
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from html import escape

from ragwatch.model.estimate import Addends, Estimate
from ragwatch.model.quantities import quantity_of
from ragwatch.offline.replay import DAY, DetectorTrace
from ragwatch.statistics.estimators import hajek
from ragwatch.web.pages.charts import Scale

WIDTH, LEFT, RIGHT = 960, 64, 16
_TITLE, _VALUE, _GAP, _EVIDENCE, _FOOT = 34, 150, 14, 80, 46
BLOCK = _TITLE + _VALUE + _GAP + _EVIDENCE + _FOOT
_TICKS, _MAX_STEPS = 6, 6
_SCORES_PER_BIN, _MIN_BINS, _MAX_BINS = 30, 8, 120
_MIN_POWER, _MAX_POWER = -4.0, 1.0  # of evidence / threshold, as a power of ten
_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#3b4252}.title{font-weight:600;font-size:14px}"
    ".frame{fill:none;stroke:#c8ced8}.grid{stroke:#e6e9ef}.band{fill:#9ec5f4;opacity:.55}"
    ".value{fill:none;stroke:#1d5fb4;stroke-width:1.6}.baseline{stroke:#5d6778;stroke-dasharray:5 4}"
    ".evidence{fill:none;stroke:#a05a00;stroke-width:1.3}.threshold{stroke:#b3261e;stroke-dasharray:5 4}"
    ".halo{paint-order:stroke;stroke:#fff;stroke-width:4px}"
    ".alarm{stroke:#b3261e;stroke-width:1.5}.red{fill:#b3261e}.end{text-anchor:end}.middle{text-anchor:middle}"
)
_LEGEND = "mean with 95 % interval; below: evidence / threshold"
Position = Callable[[float], float]
Span = tuple[float, float]


def chart(traces: Sequence[DetectorTrace]) -> str:
    """Draw all traces, one below the other, on one time axis."""
    times = [answer.at for trace in traces for answer in trace.answers]
    start, end = min(times), max(times)
    span = (start, max(end, start + 1.0))
    blocks = "".join(_block(trace, span, index * BLOCK) for index, trace in enumerate(traces))
    height = BLOCK * len(traces)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img" aria-label="Backtest"><style>{_STYLE}</style>'
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>{blocks}</svg>\n'
    )


def _block(trace: DetectorTrace, span: Span, top: float) -> str:
    x = _scale(span, (LEFT, WIDTH - RIGHT))
    above = (top + _TITLE, top + _TITLE + _VALUE)
    below = (above[1] + _GAP, above[1] + _GAP + _EVIDENCE)
    alarms = len(trace.alarms)
    title = f"{trace.name}: {len(trace.answers)} scores, {alarms} alarm{'' if alarms == 1 else 's'}"
    return "".join(
        (
            f'<text class="title" x="{LEFT}" y="{top + 22:.0f}">{escape(title)}</text>',
            f'<text class="end" x="{WIDTH - RIGHT}" y="{top + 22:.0f}">{_LEGEND}</text>',
            _values(trace, x, above),
            _evidence(trace, x, below),
            *(_alarm(answer.at, x, (above[0], below[1])) for answer, _ in trace.alarms),
            _times(span, x, below[1]),
        )
    )


def _values(trace: DetectorTrace, x: Position, area: Span) -> str:
    bins = binned(trace)
    edges = [edge for _, one in bins if one is not None for edge in (one.low, one.high)]
    scale = Scale.around(edges if trace.baseline is None else [*edges, trace.baseline])
    low, high = scale.low, scale.high
    y = _scale((low, high), (area[1], area[0]))
    step = next(step for step in (0.05, 0.1, 0.2) if (high - low) / step <= _MAX_STEPS)
    ticks = [low + step * part for part in range(round((high - low) / step) + 1)]
    parts = [_frame(area), *(_grid(y(tick), f"{tick:.2f}") for tick in ticks if tick <= high + step / 2)]
    for run in _runs(bins):
        upper = [(x(at), y(estimate.high)) for at, estimate in run]
        lower = [(x(at), y(estimate.low)) for at, estimate in reversed(run)]
        parts.append(f'<polygon class="band" points="{_points([*upper, *lower])}"/>')
        parts.append(f'<polyline class="value" points="{_points((x(at), y(mean.value)) for at, mean in run)}"/>')
    if trace.baseline is not None:
        parts.append(_horizontal("baseline", y(trace.baseline)))
        parts.append(
            f'<text class="end halo" x="{WIDTH - RIGHT - 4}" y="{y(trace.baseline) - 4:.1f}">'
            f"baseline {trace.baseline:.3f}</text>"
        )
    return "".join(parts)


def _evidence(trace: DetectorTrace, x: Position, area: Span) -> str:
    y = _scale((_MIN_POWER, _MAX_POWER), (area[1], area[0]))
    parts = [_frame(area), *(_grid(y(power), f"1e{power:+d}" if power else "alarm") for power in (-4, -2, 0))]
    highest: dict[int, float] = {}
    for at, share in trace.points:
        power = min(_MAX_POWER, max(_MIN_POWER, math.log10(share))) if share > 0.0 else _MIN_POWER
        column = round(x(at))
        highest[column] = max(power, highest.get(column, _MIN_POWER))
    if highest:
        parts.append(
            f'<polyline class="evidence" points="{_points((column, y(power)) for column, power in highest.items())}"/>'
        )
    else:
        parts.append(
            f'<text class="middle" x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{sum(area) / 2 + 4:.0f}">'
            "no baseline yet: too few scores to learn from</text>"
        )
    return "".join((*parts, _horizontal("threshold", y(0.0))))


def binned(trace: DetectorTrace) -> list[tuple[float, Estimate | None]]:
    """Estimates over equal intervals of time, each at its middle; None where nothing was scored."""
    count = max(_MIN_BINS, min(_MAX_BINS, len(trace.answers) // _SCORES_PER_BIN))
    times = [answer.at for answer in trace.answers]
    start = min(times)
    width = max(max(times) - start, 1.0) / count
    bins: list[list[tuple[float, float]]] = [[] for _ in range(count)]
    quantity = quantity_of(trace.cell[0])
    for answer in trace.answers:
        if (score := answer.scores[quantity]) is not None:
            bins[min(count - 1, int((answer.at - start) / width))].append((score, answer.probability))
    estimates = (hajek.estimate(Addends.of(scores)) for scores in bins)
    return [(start + (index + 0.5) * width, estimate) for index, estimate in enumerate(estimates)]


def _runs(bins: Sequence[tuple[float, Estimate | None]]) -> list[list[tuple[float, Estimate]]]:
    """Split the bins at gaps: nothing is drawn where nothing was scored."""
    runs: list[list[tuple[float, Estimate]]] = [[]]
    for at, estimate in bins:
        if estimate is None:
            runs.append([])
        else:
            runs[-1].append((at, estimate))
    return [run for run in runs if run]


def _scale(domain: Span, pixels: Span) -> Position:
    slope = (pixels[1] - pixels[0]) / (domain[1] - domain[0])
    return lambda value: pixels[0] + (value - domain[0]) * slope


def _points(points: Iterable[Span]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _frame(area: Span) -> str:
    return (
        f'<rect class="frame" x="{LEFT}" y="{area[0]:.0f}" width="{WIDTH - LEFT - RIGHT}" '
        f'height="{area[1] - area[0]:.0f}"/>'
    )


def _horizontal(kind: str, y: float) -> str:
    return f'<line class="{kind}" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'


def _grid(y: float, label: str) -> str:
    return f'{_horizontal("grid", y)}<text class="end" x="{LEFT - 6}" y="{y + 4:.1f}">{label}</text>'


def _alarm(at: float, x: Position, area: Span) -> str:
    title = f"<title>alarm at {datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC</title>"
    return (
        f'<line class="alarm" x1="{x(at):.1f}" x2="{x(at):.1f}" y1="{area[0]:.0f}" y2="{area[1]:.0f}"/>'
        f'<circle class="red" cx="{x(at):.1f}" cy="{area[0]:.0f}" r="4">{title}</circle>'
    )


def _times(span: Span, x: Position, bottom: float) -> str:
    time_format = "%d %b" if span[1] - span[0] > _TICKS * 2 * DAY else "%d %b %H:%M"
    ticks = [span[0] + (span[1] - span[0]) * part / _TICKS for part in range(_TICKS + 1)]
    return "".join(
        f'<text class="{"end" if part == _TICKS else "middle" if part else ""}" x="{x(at):.0f}" y="{bottom + 18:.0f}">'
        f"{datetime.fromtimestamp(at, UTC).strftime(time_format)}</text>"
        for part, at in enumerate(ticks)
    )
