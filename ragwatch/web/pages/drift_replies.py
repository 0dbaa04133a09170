"""Types of the replies about drift, segments, canaries and causes; the OpenAPI document is derived from them."""

from collections.abc import Sequence
from typing import Annotated, NotRequired, TypedDict

from ragwatch.statistics.canary.answer import AnswersLine
from ragwatch.statistics.causes.line import FindingsLine
from ragwatch.web.json_values import Also
from ragwatch.web.pages.figure_replies import Anything, Count, Event, Share, StageName, State, Time


class Alarmed(TypedDict):
    """A row with or without an alarm, and the command that acknowledges it."""

    alarm: bool
    acknowledge: str | None


class Band(TypedDict):
    """The mean of a day, with bounds that hold at every look."""

    value: float
    low: float
    high: float
    scores: float
    since: float


class PastAlarm(TypedDict):
    """An alarm of the past; `back` is when the answers were at the baseline again."""

    at: Time
    evidence: float | None
    back: Time | None


class DatedAlarm(Alarmed):
    """A row that says since when its alarm stands, or since when the answers are at the baseline again."""

    since: Time | None
    since_seconds: float | None
    back: Time | None
    past: Sequence[PastAlarm]


class ChangedStage(TypedDict):
    """A stage at fault that became more frequent: its shares before and since."""

    stage: str
    before: Share
    share: Share


class AnswerDrift(DatedAlarm):
    """A quantity on a route."""

    quantity: str
    route: str
    lower_is_better: bool
    evidence: float | None
    threshold: float | None
    share: Share | None
    words: str | None
    baseline: float | None
    learning: bool
    paused: str | None
    changed_stage: ChangedStage | None
    band: Band | None
    judge_moved: bool
    samples: str


class SegmentDrift(TypedDict):
    """An active alarm about a value of a segment."""

    quantity: str
    route: str
    segment: str
    value: str
    acknowledge: str
    began: Time | None
    before: Share | None
    mean: Share | None
    answers: float | None


class TrafficDrift(DatedAlarm):
    """A traffic signal on a route."""

    signal: str
    route: str
    cut: Annotated[object, Also(description="above which value requests are counted: a number, or a text such as yes")]
    direction: str | None
    evidence: float | None
    threshold: float | None
    words: str | None


class PausedSignal(TypedDict):
    """A traffic signal whose baseline is not being learnt, and why."""

    signal: str
    route: str
    paused: str


class JudgeDrift(Alarmed):
    """A judge on its anchor samples."""

    judge: str
    flips: float | None
    read_at: Time | None
    read: float | None
    version: str | None
    since_version: str | None


class Drift(TypedDict):
    """Drift evidence and alarms."""

    at: Time | None
    now: Time
    error: str | None
    state: State
    headline: str
    alarms: Count
    watched: Count
    answers: Sequence[AnswerDrift]
    segments: Sequence[SegmentDrift]
    segments_watched: Count
    traffic: Sequence[TrafficDrift]
    traffic_paused: Sequence[PausedSignal]
    judges: Sequence[JudgeDrift]
    events: Sequence[Event]
    event_routes: Sequence[str]


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


class RankedHit(TypedDict):
    """A context that was retrieved."""

    rank: Count
    context: str
    score: float | None


class RankMove(TypedDict):
    """A context that vanished, or has another rank."""

    context: str
    before: Count | None
    after: Count | None
    instead: str | None


class CanaryChange(TypedDict):
    """What changed since the last run in which a canary was healthy."""

    vanished: Sequence[RankMove]
    moved: Sequence[RankMove]
    newcomers: Sequence[RankedHit]
    score_shift: float | None


class DegradedCanary(TypedDict):
    """A canary whose expected contexts are missing or ranked too low."""

    canary: str
    query: str
    category: str
    reason: str | None
    wanted_score: float | None
    missing: Sequence[str]
    came: Sequence[RankedHit]
    change: CanaryChange | None


class FailedCanary(TypedDict):
    """A canary without a usable reply."""

    canary: str
    reason: str
    detail: str


class PastRun(TypedDict):
    """A run of a suite."""

    at: Time
    state: State
    canaries: Count
    degraded: Count
    failed: Count
    recall: float | None
    mrr: float | None


class RankingAtK(TypedDict):
    """Ranking figures within the first k contexts."""

    k: Count
    recall: float | None
    precision: float | None
    f1: float | None
    ndcg: float | None


class WrongAnswer(TypedDict):
    """A canary whose answer is wrong, with both answers and the reference."""

    canary: str
    query: str
    fault: str
    reference: str | None
    gold: str | None
    retrieved: str | None


class Suite(TypedDict):
    """A suite. What its last run consists of is absent before the first one."""

    suite: str
    state: State
    at: Time | None
    canaries: Count
    degraded: Sequence[DegradedCanary]
    failed: Sequence[FailedCanary]
    history: Sequence[PastRun]
    age_seconds: NotRequired[float]
    cutoff: NotRequired[Count]
    recall: NotRequired[float | None]
    mrr: NotRequired[float | None]
    coverage: NotRequired[float | None]
    health: NotRequired[float | None]
    by_k: NotRequired[Sequence[RankingAtK]]
    categories: NotRequired[Sequence[Anything]]
    scores_fell: NotRequired[bool]
    answers: NotRequired[AnswersLine | None]
    wrong: NotRequired[Sequence[WrongAnswer]]
    listed: NotRequired[Count]


class Canaries(TypedDict):
    """The canary suites."""

    version: str
    now: Time
    state: State
    headline: str
    degraded: Count
    asked: Count
    suites: Sequence[Suite]


class CausesLine(FindingsLine):
    """What failing answers have in common, and of which answers."""

    route: str | None
    judge: str | None
    quantity: str | None
    limit: float | None
    since: Time
    until: Time | None
    unknown: Count
    without_traits: Count
    complete: bool
    texts: str
    false_discovery_rate: Share
    samples: str


class Causes(CausesLine):
    """The reply about causes, and when they were sought."""

    version: str
    error: None
    at: Time
