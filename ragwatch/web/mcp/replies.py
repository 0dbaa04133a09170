"""Types of what tools return. Their schemas and rows are derived from them: a type says what stands in the fence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, TypedDict

from ragwatch.web.json_values import Also
from ragwatch.web.pages.drift_replies import ChangedStage
from ragwatch.web.pages.figure_replies import Difference, Interval, Mean, SideMean

NAME_CHARS, EXCERPT_CHARS = 80, 160


class Fenced(Also):
    """A text that others wrote: it stands in the fence, cut to so many characters."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit


class Named(Also):
    """A name of a quantity: our own ones stand as they are, those of configured criteria in the fence."""


class Dated(Also):
    """An instant in UTC as ISO 8601, of seconds since the epoch."""


Foreign = Annotated[str | None, Fenced(NAME_CHARS)]
Sentence = Annotated[str | None, Fenced(200)]
Excerpt = Annotated[str | None, Fenced(EXCERPT_CHARS)]
Passage = Annotated[str | None, Fenced(300)]
Name = Annotated[str | None, Named()]
Instant = Annotated[str | None, Dated()]


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
    quantity: Name
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
    drift: Sequence[Name]
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

    at: Instant
    window: str
    windows: Sequence[str]
    state: str
    headline: Sentence
    alarms: int
    problems: Sequence[Sentence]
    routes: Sequence[RouteLine]
    judges: Sequence[JudgeLine]
    sources: Sequence[SourceLine]
    figures: Sequence[FigureLine]


class AlarmLine(TypedDict):
    """Something that alarms: what it was before, what it is since, and which stage became more frequent."""

    kind: str
    name: Name
    route: Foreign
    segment: Foreign
    value: Foreign
    since: Instant
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

    at: Instant
    kind: Foreign
    detail: Sentence


class Alarms(Reply):
    """What alarms now, and events of the last week, the newest first."""

    at: Instant
    headline: Sentence
    alarms: Sequence[AlarmLine]
    events: Sequence[EventLine]


class PointLine(TypedDict):
    """A step of a trend."""

    at: Instant
    value: float | None
    low: float | None
    high: float | None
    n: int | None


class TrendLine(TypedDict):
    """A quantity over the range, and its last step."""

    name: Name
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
    since: Instant
    until: Instant
    step_seconds: int
    trends: Sequence[TrendLine]
    points: Sequence[PointLine]
    events: Sequence[EventLine]


class ComparedLine(TypedDict):
    """A quantity before and after an instant."""

    name: Name
    lower_is_better: bool
    before: SideMean | None
    after: SideMean | None
    difference: Difference | None
    conclusion: str | None
    why: str | None


class Compared(Reply):
    """Before and after an instant."""

    at: Instant
    route: Foreign
    span: str
    begin: Instant
    end: Instant
    state: str
    headline: str
    rows: Sequence[ComparedLine]
    events: Sequence[EventLine]


class SilentLine(TypedDict):
    """A quantity or a signal that cannot alarm yet, and why."""

    name: Name
    route: Foreign
    why: str


class CannotPage(Reply):
    """Failures that page nobody, each with the key that changes it; quantities whose baseline is not learnt."""

    failures: Sequence[Foreign]
    unwatched: Sequence[SilentLine]


class CauseLine(TypedDict):
    """A slice of answers that fails more than the rest: its failing share with the interval, and that of the others."""

    attribute: str | None
    value: Foreign
    text: Passage
    failing: float | None
    low: float | None
    high: float | None
    others: float | None
    n: int
    explains: float | None
    since: Instant
    until: Instant
    ended: Instant
    examples: Sequence[str]
    explains_too: Sequence[Foreign]


class Causes(Reply):
    """What failing answers have in common, at a false discovery rate of 5 %."""

    route: Foreign
    quantity: Name
    judge: Foreign
    since: Instant
    until: Instant
    answers: int
    failing: int
    share: float | None
    slices: int
    complete: bool
    why: str | None
    causes: Sequence[CauseLine]


class Place(TypedDict):
    """Where a judged answer stands, and what is wrong with it."""

    key: str
    at: Instant
    route: Foreign
    judge: Foreign
    stage: str | None
    fault: str | None
    page: str | None


class AnswerLine(Place):
    """A judged answer and the beginning of its texts."""

    score: float | None
    question: Excerpt
    answer: Excerpt


class WorstAnswers(Reply):
    """The answers with the worst scores of a quantity."""

    quantity: Name
    answers: Sequence[AnswerLine]


class ClaimLine(TypedDict):
    """A claim of the answer, the verdict on it, and the contexts that support it, from 0."""

    text: Annotated[str | None, Fenced(240)]
    verdict: str
    support: float | None
    contexts: Sequence[int]


class ContextLine(TypedDict):
    """A context that was retrieved, by rank from 0."""

    rank: int
    id: Foreign
    text: Passage
    score: float | None
    relevant: bool | None
    used: bool | None


class PairLine(TypedDict):
    """A key and its value."""

    name: Foreign
    value: Foreign


class AnswerInFull(Reply, Place):
    """One answer; its texts are on the first page of the reply alone."""

    outcome: str
    reason: str | None
    user_score: float | None
    scores: Mapping[str, float | None]
    question: Annotated[str | None, Fenced(400)]
    answer: Annotated[str | None, Fenced(1000)]
    why: str | None
    missing: Sequence[Excerpt]
    metadata: Sequence[PairLine]
    claims: Sequence[ClaimLine]
    contexts: Sequence[ContextLine]


class SuiteLine(TypedDict):
    """The last run of a suite of canaries."""

    suite: Foreign
    state: str
    at: Instant
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
    query: Excerpt
    detail: str | None
    missing: Sequence[Foreign]
    came: Sequence[Foreign]


class Canaries(Reply):
    """The suites, and canaries with a problem."""

    state: str
    headline: str
    suites: Sequence[SuiteLine]
    canaries: Sequence[CanaryLine]
