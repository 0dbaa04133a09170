"""Types of the replies about figures (overview, route, trends, changes); the OpenAPI document is derived from them."""

from collections.abc import Mapping, Sequence
from typing import Annotated, NotRequired, TypedDict

from ragwatch.model.stages import Stage
from ragwatch.web.json_values import Also

Count = Annotated[int, Also(minimum=0)]
Share = Annotated[float, Also(minimum=0, maximum=1)]
Time = Annotated[float, Also(description="seconds since the epoch")]
Key = Annotated[str, Also(pattern="^[0-9a-f]{32}$", description="key of a sample")]
State = Annotated[str, Also(enum=["bad", "unsure", "good", "plain", "silent"])]
StageName = Annotated[str, Also(enum=[str(stage) for stage in Stage])]
Anything = Mapping[str, object]


class Error(TypedDict):
    """Why there is no reply."""

    error: str


class Interval(TypedDict):
    """A mean with its interval."""

    value: float
    low: float
    high: float
    n: Count


class WithoutAnnotator(TypedDict):
    """A level without the labels of one person."""

    annotator: str
    labels: Count
    value: float | None
    low: float | None
    high: float | None


class Level(Interval):
    """The level, with the labels and the people behind it."""

    labels: Count
    labels_given: Count
    calibrated: bool
    annotators: NotRequired[Count]
    stands_on: NotRequired[str | None]
    greatest_change: NotRequired[float | None]
    without: NotRequired[Sequence[WithoutAnnotator]]


class Difference(TypedDict):
    """The later mean less the earlier one; canary runs have no interval."""

    value: float
    low: float | None
    high: float | None


class Figure(TypedDict):
    """One quantity of a route by one judge; what an estimate consists of is absent where there is none."""

    quantity: str
    lower_is_better: bool
    threshold: float | None
    last_sample_at: Time | None
    age_seconds: float | None
    state: State
    why: str | None
    value: NotRequired[float]
    low: NotRequired[float]
    high: NotRequired[float]
    n: NotRequired[Count]
    bound_low: NotRequired[float]
    bound_high: NotRequired[float]
    n_eff: NotRequired[float]
    interval: NotRequired[str]
    corrected: NotRequired[Level | None]
    unmeasured: NotRequired[Share]
    change: NotRequired[Difference | None]


class JudgeFigures(TypedDict):
    """The figures of a route by one judge."""

    judge: str
    why: str | None
    coverage: Share | None
    judged: float
    figures: Sequence[Figure]


class StageShare(TypedDict):
    """The share of the judged answers of the window with one stage at fault; the usual one is of the baseline."""

    stage: StageName
    count: float
    share: Share
    start: float
    usual: Share | None


class Bounded(Interval):
    """A mean with its worst case."""

    bound_low: float
    bound_high: float
    n_eff: float


class UserScore(Bounded):
    """The mean score by users; `response` is the share of the answers that were rated."""

    response: Share
    last_sample_at: Time | None


class RouteFigures(TypedDict):
    """One route of the service on the overview."""

    route: str
    state: State
    threshold_state: State
    drift: Sequence[str]
    drawn: float
    probability: Share | None
    stages: Sequence[StageShare]
    judges: Sequence[JudgeFigures]
    user_score: UserScore | None


class Alarm(TypedDict):
    """An active drift alarm; the route is empty for a judge."""

    kind: Annotated[str, Also(enum=["answers", "traffic", "judge"])]
    name: str
    route: str


class SourceLine(TypedDict):
    """What a source has read."""

    source: str
    seen: float
    repaired: float
    rejected: Mapping[str, float]
    left_out: Mapping[str, float]
    resets: Mapping[str, float]
    lag_bytes: float | None
    lag_records: float | None
    lag_seconds: float | None
    unreadable_files: float | None
    unreadable: Mapping[str, str]
    skipped: str


class JudgeCounts(TypedDict):
    """What a judge has read."""

    judge: str
    kind: str | None
    version: str | None
    judged: float
    unjudged: Mapping[str, float]
    pending: float
    user_correlations: Mapping[str, Interval]


class FailingAnswer(TypedDict):
    """A stored answer with a stage at fault, the beginning of its texts, and its worst score about that stage."""

    key: Key
    at: Time
    route: str
    judge: str
    stage: str | None
    quantity: str | None
    score: float | None
    question: str | None
    answer: str | None
    error: NotRequired[str]


class Snapshot(TypedDict):
    """The overview."""

    version: str
    at: Time | None
    now: Time
    window: str
    windows: Sequence[str]
    state: State
    headline: str
    drift: Sequence[Alarm]
    bad: Count
    unsure: Count
    judged_figures: Count
    problems: Sequence[str]
    routes: Sequence[RouteFigures]
    sources: Sequence[SourceLine]
    judges: Sequence[JudgeCounts]
    failing: Sequence[FailingAnswer]
    unpaged: Sequence[str]
    segments: Sequence[str]


class LevelRow(TypedDict):
    """A figure at one level of a route."""

    name: str
    source: str
    value: float
    low: float | None
    high: float | None
    n: float | None
    baseline: float | None
    moved: Annotated[str, Also(enum=["worse", "not worse"])] | None
    samples: str | None
    change: Difference | None


class RouteLevel(TypedDict):
    """One of the levels: retrieval, generation, end to end, criteria."""

    level: str
    rows: Sequence[LevelRow]
    why: str | None


class SegmentRow(TypedDict):
    """A quantity for one value of a segment; bad if its whole interval is worse than the threshold."""

    quantity: str
    value: str
    mean: float
    low: float
    high: float
    n: Count
    threshold: float | None
    bad: bool


class SegmentTable(TypedDict):
    """The figures of a segment."""

    segment: str
    rows: Sequence[SegmentRow]


class Route(TypedDict):
    """The page of a route; `known` is false if there is none of this name."""

    version: str
    known: bool
    route: str
    at: Time | None
    now: Time
    window: str
    windows: Sequence[str]
    state: State
    headline: str
    levels: Sequence[RouteLevel]
    segments: Sequence[SegmentTable]
    stages: Sequence[StageShare]


class Event(TypedDict):
    """A deployment, an index update, or what ragwatch recorded itself."""

    at: Time
    kind: str
    detail: str


class Mean(TypedDict):
    """A mean; canary runs ask the same queries and have no interval."""

    value: float | None
    low: float | None
    high: float | None
    n: Count


class TrendPoint(TypedDict):
    """A step of a chart: a mean by one version of a judge, or the peak of drift evidence."""

    start: Count
    version: NotRequired[str]
    value: NotRequired[float | None]
    low: NotRequired[float | None]
    high: NotRequired[float | None]
    n: NotRequired[Count]
    peak: NotRequired[float]


class Chart(TypedDict):
    """A quantity, a figure of a canary suite, or drift evidence over time."""

    kind: Annotated[str, Also(enum=["score", "canary", "drift", "traffic_drift"])]
    name: str
    of: str
    n: Count
    threshold: float | None
    points: Sequence[TrendPoint]
    lower_is_better: NotRequired[bool]
    mean: NotRequired[Mean]
    versions: NotRequired[Sequence[str]]
    present: NotRequired[float | None]
    highest: NotRequired[float]
    level: NotRequired[str]
    words: NotRequired[str | None]
    highest_words: NotRequired[str]


class Trends(TypedDict):
    """The charts of a route or of a canary suite."""

    version: str
    now: Time
    error: str | None
    route: str | None
    suite: str | None
    judge: str | None
    range: str
    since: Time
    until: Time
    step: Count
    routes: Sequence[str]
    suites: Sequence[str]
    judges: Sequence[str]
    ranges: Sequence[str]
    silent: Sequence[str]
    charts: Sequence[Chart]
    events: Sequence[Event]


class SideMean(Difference):
    """The mean of one side."""

    n: Count


class ComparedMeans(TypedDict):
    """The means of both sides, and their difference."""

    before: SideMean | None
    after: SideMean | None
    difference: Difference | None
    conclusion: str | None
    why: str | None


class ChangeRow(ComparedMeans):
    """A quantity of a route, or a figure of a canary suite."""

    name: str
    lower_is_better: bool
    other_version: str | None
    samples: str | None


class ChangeSides(TypedDict):
    """Where both sides begin and end."""

    span: float
    before: float
    end: float
    start: float
    after: float


class Changes(TypedDict):
    """Before and after an instant."""

    now: Time
    error: str | None
    at: Time
    route: str
    suite: str
    judge: str
    span: str
    questions: str
    spans: Sequence[str]
    sides: ChangeSides
    partial: bool
    state: State
    headline: str
    events: Sequence[Event]
    others: Sequence[Event]
    rows: Sequence[ChangeRow]
    same_questions: Annotated[Anything, Also(description="as `ragwatch compare --json` prints it")] | None
