"""Snapshot of all figures at one instant. Pages and series are rendered from it, never from the store."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from ragwatch.model.enumerations import Labelled
from ragwatch.model.estimate import Estimate
from ragwatch.model.quantities import Quantity
from ragwatch.statistics.estimators.corrected import AnnotatorShares
from ragwatch.statistics.estimators.level import is_calibrated
from ragwatch.statistics.feedback import UserScores
from ragwatch.statistics.tally import Tallies

Place = tuple[Quantity, str, str, str]
"""Quantity, route, judge and window of an estimate."""


@dataclass(frozen=True, slots=True)
class EstimateRow:
    """An estimate with its labels."""

    quantity: Quantity
    route: str
    judge: str
    window: str
    estimate: Estimate
    corrected: bool = False  # whether it is a level: in people's terms, with the judge's error in its interval
    best: float | None = None  # share of the answers that the judge gives the best score; None in a level
    unmeasured: float = 0.0  # share of the answers in languages in which the judge's accuracy is not known
    labels: int = 0  # number of labels that a level rests on, those that have aged in part
    labels_given: int = 0  # number of labels that were given
    annotators: AnnotatorShares | None = None  # the annotators behind a corrected estimate; None elsewhere
    reference: str = ""  # the judge in whose terms it is, if a reference judge corrects it, not people

    @property
    def place(self) -> Place:
        """What it is an estimate of."""
        return self.quantity, self.route, self.judge, self.window

    @property
    def calibrated(self) -> bool:
        """Whether labels have made the interval of a level useful."""
        return is_calibrated(self.labels, self.labels_given)


@dataclass(frozen=True, slots=True)
class SegmentRow:
    """An estimate of the answers of one segment: a metadata key and a configured value of it, or `other`."""

    quantity: Quantity
    segment: str
    value: str
    route: str
    judge: str
    window: str
    estimate: Estimate


@dataclass(frozen=True, slots=True)
class Exemplar:
    """A sample in a histogram bucket, to which a dashboard can link; the trace id is that of the answer, if logged."""

    key: str
    trace_id: str | None
    value: float
    at: float


@dataclass(frozen=True, slots=True)
class Lag:
    """How far a source is behind its log."""

    size: int | None  # unread bytes; None if unknown
    seconds: float | None  # age of the oldest unread record; None if unknown, 0 if nothing is unread
    unreadable: Mapping[str, str] = field(default_factory=dict)  # files that cannot be read now, with the reason
    closed: int = 0  # number of followed files that are closed between reads, because of the limit on open files
    problems: tuple[str, ...] = ()  # what prevents reading as configured, and what to do; not ready meanwhile
    skipped: str = ""  # how much was not read of what existed at the first start, and why; empty if all is read
    records: int | None = None  # unread records, if the transport counts those; None if unknown


_SEGMENT_CELL = ("quantity", "route", "segment", "value")


class Gauge(Labelled):
    """Gauges, with their labels in order."""

    CANARY_SUCCESS = "canary_success", "suite", "canary"
    CANARY_RECALL = "canary_recall_ratio", "suite", "k"
    CANARY_PRECISION = "canary_precision_ratio", "suite", "k"
    CANARY_F1 = "canary_f1_ratio", "suite", "k"
    CANARY_NDCG = "canary_ndcg_ratio", "suite", "k"
    CANARY_RECIPROCAL_RANK = "canary_reciprocal_rank_ratio", "suite"
    CANARY_COVERAGE = "canary_coverage_ratio", "suite"
    CANARY_HEALTH = "canary_health_ratio", "suite"
    CANARY_DEGRADED = "canary_degraded", "suite"
    CANARY_CATEGORY_RECALL = "canary_category_recall_ratio", "suite", "category", "k"
    CANARY_CATEGORY_PRECISION = "canary_category_precision_ratio", "suite", "category", "k"
    CANARY_CATEGORY_F1 = "canary_category_f1_ratio", "suite", "category", "k"
    CANARY_CATEGORY_NDCG = "canary_category_ndcg_ratio", "suite", "category", "k"
    CANARY_CATEGORY_RECIPROCAL_RANK = "canary_category_reciprocal_rank_ratio", "suite", "category"
    CANARY_CATEGORY_COVERAGE = "canary_category_coverage_ratio", "suite", "category"
    CANARY_CATEGORY_HEALTH = "canary_category_health_ratio", "suite", "category"
    CANARY_CATEGORY_DEGRADED = "canary_category_degraded", "suite", "category"
    CANARY_ANSWER = "canary_answer_ratio", "suite", "quantity", "contexts"
    CANARY_LAST_RUN = "canary_last_run_timestamp_seconds", "suite"
    CANARY_LAST_SUCCESS = "canary_last_success_timestamp_seconds", "suite"
    DRIFT_EVIDENCE = "drift_evidence", "quantity", "route"
    DRIFT_THRESHOLD = "drift_evidence_threshold", "quantity", "route"
    DRIFT_ALARM = "drift_alarm", "quantity", "route"
    DRIFT_BASELINE = "drift_baseline_ratio", "quantity", "route"
    DRIFT_PAUSED = "drift_baseline_paused", "quantity", "route", "reason"  # the baseline is not learnt at present
    DRIFT_BEGAN = "drift_change_start_timestamp_seconds", "quantity", "route"  # of an active alarm: estimated begin
    DRIFT_BEFORE = "drift_before_ratio", "quantity", "route"  # mean while the reference was learnt
    DRIFT_SINCE = "drift_since_ratio", "quantity", "route"  # mean since the change
    DRIFT_ANSWERS = "drift_since_samples", "quantity", "route"
    DRIFT_UNWATCHED = ("segment_drift_missing_detectors",)  # cells of segments without a detector: there are too many
    SEGMENT_DRIFT_ALARM = "segment_drift_alarm", *_SEGMENT_CELL
    SEGMENT_DRIFT_BEGAN = "segment_drift_change_start_timestamp_seconds", *_SEGMENT_CELL  # as of routes
    SEGMENT_DRIFT_BEFORE = "segment_drift_before_ratio", *_SEGMENT_CELL
    SEGMENT_DRIFT_SINCE = "segment_drift_since_ratio", *_SEGMENT_CELL
    SEGMENT_DRIFT_ANSWERS = "segment_drift_since_samples", *_SEGMENT_CELL
    STAGE_CHANGED = "drift_stage_ratio", "route", "stage", "period"  # share before and since, of the stage that rose
    STAGE_BASELINE = "stage_baseline_ratio", "route", "stage"  # share of the stage while the baseline was learnt
    BAND_MEAN = "drift_band_ratio", "quantity", "route"  # mean of the scores in the confidence sequence
    BAND_LOW = "drift_band_ratio_low", "quantity", "route"
    BAND_HIGH = "drift_band_ratio_high", "quantity", "route"
    BAND_SCORES = "drift_band_samples", "quantity", "route"
    BAND_SINCE = "drift_band_start_timestamp_seconds", "quantity", "route"
    TRAFFIC_DRIFT_EVIDENCE = "traffic_drift_evidence", "signal", "route"
    TRAFFIC_DRIFT_THRESHOLD = "traffic_drift_evidence_threshold", "signal", "route"
    TRAFFIC_DRIFT_ALARM = "traffic_drift_alarm", "signal", "route"
    TRAFFIC_DRIFT_BEGAN = "traffic_drift_start_timestamp_seconds", "signal", "route"  # as of scores
    TRAFFIC_DRIFT_SHARE = "traffic_drift_ratio", "signal", "route", "above", "period"
    TRAFFIC_DRIFT_SHARE_LOW = "traffic_drift_ratio_low", "signal", "route", "above"  # of the share since the change
    TRAFFIC_DRIFT_PAUSED = "traffic_drift_baseline_paused", "signal", "route", "reason"  # as of scores
    SILENCE_ALARM = "silence_alarm", "route"
    SILENCE_MISSED = "silence_missed_samples", "route"  # answers that were to be expected since the last one
    JUDGE_DRIFT_FLIPS = "judge_drift_flips_ratio", "judge"
    JUDGE_DRIFT_ALARM = "judge_drift_alarm", "judge"
    AGREEMENT = "judge_agreement_ratio", "judge", "quantity"
    LABELS = "judge_labels", "quantity"
    LABEL_GAIN = "judge_label_gain_ratio", "quantity", "route", "window"
    LABEL_ANNOTATORS = "judge_label_annotators", "quantity"
    ANNOTATOR_CHANGE = "judge_annotator_change_ratio", "quantity", "route", "window"
    LAST_LABEL = "judge_last_label_timestamp_seconds"
    STATE_FREE = "state_free_bytes"
    STATE_DAMAGED = "state_damaged_rows"
    LAST_EVENT = "last_event_timestamp_seconds", "kind"


Gauges = Mapping[tuple[Gauge, tuple[str, ...]], float]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All figures at one instant."""

    at: float
    estimates: tuple[EstimateRow, ...] = ()  # by quantity, route, judge and window; none without scores
    corrected: tuple[EstimateRow, ...] = ()  # estimates that are corrected by labels, in addition to `estimates`
    segments: tuple[SegmentRow, ...] = ()
    # share of the drawn weight that was judged, by (route, judge, window)
    coverage: Mapping[tuple[str, str, str], float] = field(default_factory=dict)
    stages: Mapping[tuple[str, str, str, str], int] = field(default_factory=dict)
    # time of the newest scored answer, never later than `at`, by (quantity, route, judge)
    last_sample: Mapping[tuple[str, str, str], float] = field(default_factory=dict)
    # the same by (quantity, segment, value, route, judge)
    segment_last: Mapping[tuple[str, str, str, str, str], float] = field(default_factory=dict)
    # newest answer in each bucket, by (quantity, route, judge, bucket label)
    exemplars: Mapping[tuple[str, str, str, str], Exemplar] = field(default_factory=dict)
    tallies: Tallies = field(default_factory=Counter)  # all counts since the state directory was created
    pending: Mapping[str, int] = field(default_factory=dict)  # draws waiting for a judge, by judge
    probabilities: Mapping[str, float] = field(default_factory=dict)  # current inclusion probability, by route
    shares: Mapping[str, float] = field(default_factory=dict)  # current probability that a judge reads a draw, by judge
    budgets: Mapping[str, float] = field(default_factory=dict)  # remaining share of the budget, by judge that has one
    lags: Mapping[str, Lag] = field(default_factory=dict)
    judges: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # kind and version by judge name
    user_scores: UserScores = field(default_factory=UserScores)
    gauges: Gauges = field(default_factory=dict)
    problems: tuple[str, ...] = ()  # what prevents ragwatch from being ready, one sentence each
    exported: Tallies | None = None  # the part of `tallies` that this worker exports, if several share a store
    leads: bool = True  # whether this process exports what would count twice if several workers exported it
