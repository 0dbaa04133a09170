"""Computes the shapes of a chart in SVG: steps with an interval band, a threshold, events and counts.

A step spans the time of its bucket. Where there is no data there is no step: a gap, never 0. What the shapes mean is
written beside them, in HTML, so that it stays readable at any width.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlencode

from ragwatch.ports import RecordedEvent
from ragwatch.statistics.trends import DAY, Point, log_height, stretches

WIDTH, COUNTS_HEIGHT = 600.0, 16.0
_TOP, _BOTTOM = 3.0, 97.0  # so that a line at an end of the scale is not cut
_MARK = 8.0  # width of the place of an event that can be clicked
MAX_EVENTS = 50  # on one chart, the newest ones
NO_EVIDENCE, ABOVE_ALARM = 1.0, 10.0  # ends of the scale of evidence; the upper one is a factor on the threshold


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """The time that a chart shows, in seconds since the epoch."""

    since: int
    until: int
    step: int

    @property
    def starts(self) -> range:
        """The starts of its steps."""
        return range(self.since, self.until, self.step)

    def x(self, at: float) -> float:
        """Horizontal position of an instant, at most that of the end: the last step is still going on."""
        return round(WIDTH * (min(at, self.until) - self.since) / (self.until - self.since), 1)

    def labels(self) -> list[str]:
        """Texts below the chart: where it begins, its middle and its end, in UTC."""
        form = "%H:%M" if self.until - self.since <= DAY else "%b %d"
        times = (self.since, (self.since + self.until) / 2, self.until)
        return [datetime.fromtimestamp(at, UTC).strftime(form) for at in times]


@dataclass(frozen=True, slots=True)
class Scale:
    """A linear scale of values."""

    low: float
    high: float

    @classmethod
    def around(cls, values: Iterable[float]) -> Scale:
        """The scale in tenths that contains all values in [0, 1].

        >>> Scale.around([0.82, 0.91]), Scale.around([0.5]), Scale.around([])
        (Scale(low=0.8, high=1.0), Scale(low=0.5, high=0.6), Scale(low=0.0, high=1.0))
        """
        known = list(values)
        if not known:
            return cls(0.0, 1.0)
        low, high = math.floor(min(known) * 10 + 1e-9), math.ceil(max(known) * 10 - 1e-9)
        if low >= high:
            low, high = (low, low + 1) if low < 10 else (9, 10)
        return cls(low / 10, high / 10)

    def height(self, value: float) -> float:
        """Height of a value, in [0, 1]."""
        return min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))


def _y(height: float) -> float:
    return round(_BOTTOM - (_BOTTOM - _TOP) * height, 1)


def step_path(axis: TimeAxis, heights: Sequence[float | None]) -> str:
    """Returns the path of a line in steps; None is a gap.

    >>> step_path(TimeAxis(0, 300, 100), (0.0, 1.0, None))
    'M0,97H200V3H400'
    """
    parts = []
    for stretch in stretches([height is not None for height in heights]):
        for index in stretch:
            y = f"{_y(heights[index] or 0.0):g}"
            start, end = axis.x(axis.starts[index]), axis.x(axis.starts[index] + axis.step)
            parts.append(f"{f'M{start:g},{y}' if index == stretch.start else f'V{y}'}H{end:g}")
    return "".join(parts)


def band_path(axis: TimeAxis, lows: Sequence[float | None], highs: Sequence[float | None]) -> str:
    """Returns the path of the area between two lines in steps, which have the same gaps.

    >>> band_path(TimeAxis(0, 200, 100), (0.0, None), (1.0, None))
    'M0,3H300V97H0Z'
    """
    parts = []
    for stretch in stretches([high is not None for high in highs]):
        there = step_path(axis, [high if index in stretch else None for index, high in enumerate(highs)])
        back = "".join(f"V{_y(lows[index] or 0.0):g}H{axis.x(axis.starts[index]):g}" for index in reversed(stretch))
        parts.append(f"{there}{back}Z")
    return "".join(parts)


def bars(axis: TimeAxis, counts: Sequence[tuple[int, str]]) -> list[dict[str, object]]:
    """Returns columns of (count, text), a step each: a bar as high as the count, and a text for the whole column."""
    most = max((count for count, _ in counts), default=0) or 1
    columns = []
    for start, (count, text) in zip(axis.starts, counts, strict=True):
        height = round(COUNTS_HEIGHT * count / most, 1)
        x = axis.x(start)
        width = round(axis.x(start + axis.step) - x, 1)
        columns.append({"x": x, "width": width, "y": round(COUNTS_HEIGHT - height, 1), "height": height, "text": text})
    return columns


def marks(axis: TimeAxis, events: Iterable[RecordedEvent], parameters: Mapping[str, str]) -> list[dict[str, object]]:
    """Returns the events of a chart, each with the address of the comparison of before and after."""
    shown = [event for event in events if axis.since <= event.at < axis.until][-MAX_EVENTS:]
    return [
        {
            "x": axis.x(event.at),
            "left": round(axis.x(event.at) - _MARK / 2, 1),
            "width": _MARK,
            "at": event.at,
            "kind": event.kind,
            "detail": event.detail,
            "href": f"changes?{urlencode({**parameters, 'at': f'{event.at:.3f}'})}",
        }
        for event in shown
    ]


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a chart: estimates under one version of a judge, a point for each start of the chart."""

    name: str
    points: Sequence[Point]
    is_current: bool = True


def score_chart(axis: TimeAxis, lines: Sequence[Line], threshold: float | None, *, band: bool) -> dict[str, object]:
    """Returns the shapes of scores in [0, 1]. Figures of canary runs have no intervals, and no band."""
    estimates = [point.estimate for line in lines for point in line.points if point.estimate is not None]
    ends = [end for one in estimates for end in ((one.low, one.high) if band else (one.value,))]
    scale = Scale.around([*ends, *([] if threshold is None else [threshold])])
    return {
        "top": f"{scale.high:.1f}",
        "bottom": f"{scale.low:.1f}",
        "threshold_y": None if threshold is None else _y(scale.height(threshold)),
        "lines": [_line(axis, line, scale, band=band) for line in lines],
    }


def _line(axis: TimeAxis, line: Line, scale: Scale, *, band: bool) -> dict[str, object]:
    def heights(name: str) -> list[float | None]:
        estimates = (point.estimate for point in line.points)
        return [None if one is None else scale.height(getattr(one, name)) for one in estimates]

    return {
        "name": line.name,
        "current": line.is_current,
        "path": step_path(axis, heights("value")),
        "band": band_path(axis, heights("low"), heights("high")) if band else "",
    }


def evidence_chart(axis: TimeAxis, values: Mapping[int, float], threshold: float) -> dict[str, object]:
    """Returns the shapes of evidence on a log scale, from none at all to ten times what raises the alarm."""
    high = ABOVE_ALARM * max(threshold, NO_EVIDENCE)
    heights = [log_height(values[start], NO_EVIDENCE, high) if start in values else None for start in axis.starts]
    return {
        "path": step_path(axis, heights),
        "threshold_y": _y(log_height(threshold, NO_EVIDENCE, high)),
        "top": f"{high:,.3g}" if high < 1000 else f"{high:,.0f}",
        "bottom": f"{NO_EVIDENCE:g}",
    }
