"""Types of the reply about a segment; the OpenAPI document is derived from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypedDict

from ragwatch.web.figure_replies import Count, Share, StageName, Time
from ragwatch.web.json_schema import Also


class SegmentFigure(TypedDict):
    """A mean or a change; `own` is what the answers of the value alone say, where it is drawn toward the route's."""

    value: float
    low: float
    high: float
    own: float | None


class SegmentPoint(TypedDict):
    """A step of the trend of a value."""

    start: Time
    mean: float | None
    n: Count


class SegmentValue(TypedDict):
    """The figures of a value of a segment; `answers` is how many there were before sampling, as far as known."""

    value: str
    level: SegmentFigure | None
    bad: bool
    change: SegmentFigure | None
    moved: Annotated[str, Also(enum=["worse", "better"])] | None
    n: Count
    n_before: Count
    judged: Count
    answers: float
    failing: Share | None
    failed: Count
    stage: StageName | None
    of_stage: Count
    alarm: bool
    samples: str | None
    points: Sequence[SegmentPoint]


class SegmentAlarm(TypedDict):
    """An active drift alarm about a value of the segment."""

    quantity: str
    value: str


class SegmentNames(TypedDict):
    """What a request about a segment selects, and what there is; `known` is false if there is none of this key."""

    version: str
    known: bool
    segment: str
    segments: Sequence[str]
    route: str
    routes: Sequence[str]
    window: str
    windows: Sequence[str]
    judge: str
    judges: Sequence[str]
    quantity: str
    quantities: Sequence[str]
    since: Time
    begin: Time
    until: Time
    alarms: Sequence[SegmentAlarm]


class Segment(SegmentNames):
    """The page of a segment; `mean` is that of the whole route."""

    error: str | None
    at: Time | None
    now: Time
    lower_is_better: bool | None
    threshold: float | None
    sort: str
    mean: SegmentFigure | None
    complete: bool
    count: Count
    page: Count
    pages: Count
    values: Sequence[SegmentValue]
