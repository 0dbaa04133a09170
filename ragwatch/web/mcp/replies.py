"""Types of what tools return; their schemas are derived from them. Texts that others wrote stand in the fence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

from ragwatch.web.drift_replies import ChangedStage
from ragwatch.web.figure_replies import Difference, Interval, Mean, SideMean

Foreign = str | None


class Reply(TypedDict):
    """What every reply has: the name of its fence, the page that shows the same, and the cursor of the rest."""

    fence: str
    page: str | None
    more: str | None


class LevelLine(Interval):
    """A level, the labels behind it, and whether they have made it narrow."""

    labels: int
    calibrated: bool


class FigureLine(TypedDict):
    """A quantity of a route by one judge; no quantity where the judge has no figure at all."""

    route: Foreign
    judge: Foreign
    quantity: Foreign
    state: str
    value: float | None
    low: float | None
    high: float | None
    n: int
    level: LevelLine | None
    change: Difference | None
    threshold: float | None
    lower_is_better: bool | None
    why: str | None


class StageLine(TypedDict):
    """The share of answers with one stage at fault, and the usual one."""

    stage: str
    share: float
    usual: float | None


class RouteLine(TypedDict):
    """A route of the service."""

    route: Foreign
    state: str
    drift: Sequence[Foreign]
    sampled: float
    stages: Sequence[StageLine]


class JudgeLine(TypedDict):
    """What a judge has read, and why it has not read the rest."""

    judge: Foreign
    judged: float
    waiting: float
    unjudged: Mapping[str, float]


class SourceLine(TypedDict):
    """What a source has read, and what it could not read, by reason."""

    source: Foreign
    seen: float
    rejected: Mapping[str, float]
    lag_seconds: float | None
    unreadable_files: float | None


class Status(Reply):
    """How answers are now."""

    at: str | None
    window: str
    windows: Sequence[str]
    state: str
    headline: Foreign
    alarms: int
    problems: Sequence[Foreign]
    routes: Sequence[RouteLine]
    judges: Sequence[JudgeLine]
    sources: Sequence[SourceLine]
    figures: Sequence[FigureLine]


class AlarmLine(TypedDict):
    """Something that alarms: what it was before, what it is since, and which stage became more frequent."""

    kind: str
    name: Foreign
    route: Foreign
    segment: Foreign
    value: Foreign
    since: str | None
    before: float | None
    now: float | None
    low: float | None
    high: float | None
    n: float | None
    stage: ChangedStage | None
    words: Foreign
    judge_moved: bool


class EventLine(TypedDict):
    """A deployment, an index update, or what ragwatch recorded itself."""

    at: str | None
    kind: Foreign
    detail: Foreign


class Alarms(Reply):
    """What alarms now, and events of the last week, the newest first."""

    at: str | None
    headline: Foreign
    alarms: Sequence[AlarmLine]
    events: Sequence[EventLine]


class PointLine(TypedDict):
    """A step of a trend."""

    at: str | None
    value: float | None
    low: float | None
    high: float | None
    n: int | None


class TrendLine(TypedDict):
    """A quantity over the range, and its last step."""

    name: Foreign
    kind: str
    mean: Mean | None
    threshold: float | None
    lower_is_better: bool | None
    last: PointLine | None


class Trend(Reply):
    """Quantities over time; the steps of one, the newest first, if it is named."""

    route: Foreign
    suite: Foreign
    range: str
    since: str | None
    until: str | None
    step_seconds: int
    trends: Sequence[TrendLine]
    points: Sequence[PointLine]
    events: Sequence[EventLine]


class ComparedLine(TypedDict):
    """A quantity before and after an instant."""

    name: Foreign
    lower_is_better: bool
    before: SideMean | None
    after: SideMean | None
    difference: Difference | None
    conclusion: str | None
    why: str | None


class Compared(Reply):
    """Before and after an instant."""

    at: str | None
    route: Foreign
    span: str
    begin: str | None
    end: str | None
    state: str
    headline: str
    rows: Sequence[ComparedLine]
    events: Sequence[EventLine]


class SilentLine(TypedDict):
    """A quantity or a signal that cannot alarm yet, and why."""

    name: Foreign
    route: Foreign
    why: str


class CannotPage(Reply):
    """Failures that page nobody, each with the key that changes it; quantities whose baseline is not learnt."""

    failures: Sequence[Foreign]
    unwatched: Sequence[SilentLine]


class CauseLine(TypedDict):
    """A slice of answers that fails more than the rest: its failing share with the interval, and that of the others."""

    attribute: Foreign
    value: Foreign
    text: Foreign
    failing: float | None
    low: float | None
    high: float | None
    others: float | None
    n: int
    explains: float | None
    since: str | None
    until: str | None
    ended: str | None
    examples: Sequence[str]
    explains_too: Sequence[Foreign]


class Causes(Reply):
    """What failing answers have in common, at a false discovery rate of 5 %."""

    route: Foreign
    quantity: Foreign
    judge: Foreign
    since: str | None
    until: str | None
    answers: int
    failing: int
    share: float | None
    slices: int
    complete: bool
    why: str | None
    causes: Sequence[CauseLine]


class AnswerLine(TypedDict):
    """A judged answer and the beginning of its texts."""

    key: str
    at: str | None
    route: Foreign
    judge: Foreign
    stage: str | None
    fault: str | None
    score: float | None
    question: Foreign
    answer: Foreign
    page: str | None


class WorstAnswers(Reply):
    """The answers with the worst scores of a quantity."""

    quantity: Foreign
    answers: Sequence[AnswerLine]


class ClaimLine(TypedDict):
    """A claim of the answer, the verdict on it, and the contexts that support it, from 0."""

    text: Foreign
    verdict: str
    support: float | None
    contexts: Sequence[int]


class ContextLine(TypedDict):
    """A context that was retrieved, by rank from 0."""

    rank: int
    id: Foreign
    text: Foreign
    score: float | None
    relevant: bool | None
    used: bool | None


class PairLine(TypedDict):
    """A key and its value."""

    name: Foreign
    value: Foreign


class AnswerInFull(Reply):
    """One answer; its texts are on the first page of the reply alone."""

    key: str
    at: str | None
    route: Foreign
    judge: Foreign
    outcome: str
    reason: str | None
    stage: str | None
    fault: str | None
    user_score: float | None
    scores: Mapping[str, float | None]
    question: Foreign
    answer: Foreign
    why: str | None
    missing: Sequence[Foreign]
    metadata: Sequence[PairLine]
    claims: Sequence[ClaimLine]
    contexts: Sequence[ContextLine]


class SuiteLine(TypedDict):
    """The last run of a suite of canaries."""

    suite: Foreign
    state: str
    at: str | None
    n: int
    degraded: int
    failed: int
    wrong: int
    recall: float | None
    mrr: float | None
    health: float | None


class CanaryLine(TypedDict):
    """A canary that is degraded, failed, or was answered wrongly."""

    suite: Foreign
    canary: Foreign
    problem: str
    query: Foreign
    detail: Foreign
    missing: Sequence[Foreign]
    came: Sequence[Foreign]


class Canaries(Reply):
    """The suites, and canaries with a problem."""

    state: str
    headline: str
    suites: Sequence[SuiteLine]
    canaries: Sequence[CanaryLine]
