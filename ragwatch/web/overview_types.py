"""Types of the data of the overview page, which is served as JSON as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict


class Figure(TypedDict):
    """One quantity of a route by one judge; what an estimate consists of is absent where there is none."""

    quantity: str
    lower_is_better: bool
    threshold: float | None
    last_sample_at: float | None
    age_seconds: float | None
    state: str
    why: str | None
    value: NotRequired[float]
    low: NotRequired[float]
    high: NotRequired[float]
    bound_low: NotRequired[float]
    bound_high: NotRequired[float]
    n: NotRequired[int]
    n_eff: NotRequired[float]
    interval: NotRequired[str]
    corrected: NotRequired[Mapping[str, object] | None]


class JudgeFigures(TypedDict):
    """The figures of a route by one judge."""

    judge: str
    why: str | None
    coverage: float | None
    judged: float
    figures: list[Figure]


class StageShare(TypedDict):
    """The share of the judged answers with one stage at fault, and where it begins in a stacked bar."""

    stage: str
    count: float
    share: float
    start: float


class RouteFigures(TypedDict):
    """One route of the service."""

    route: str
    state: str
    threshold_state: str
    drift: list[str]
    drawn: float
    probability: float | None
    stages: list[StageShare]
    judges: list[JudgeFigures]
    user_score: Mapping[str, object] | None


class Overview(TypedDict):
    """The whole page."""

    at: float | None
    now: float
    window: str
    windows: list[str]
    state: str
    headline: str
    drift: list[dict[str, str]]
    bad: int
    unsure: int
    judged_figures: int
    problems: list[str]
    routes: list[RouteFigures]
    sources: Sequence[Mapping[str, object]]
    judges: Sequence[Mapping[str, object]]
    failing: Sequence[Mapping[str, object]]
    unpaged: list[str]
