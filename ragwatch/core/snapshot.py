"""Snapshot: everything that may be shown at one instant. Pages and series are drawn from it, never from the store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from ragwatch.core.estimate import Estimate
from ragwatch.core.scores import Quantity
from ragwatch.core.tally import Tallies

_EMPTY: Mapping[Any, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class EstimateRow:
    """One estimate, and what it is about. A corrected one is what people's labels say of that judge's answers."""

    quantity: Quantity
    route: str
    judge: str
    window: str
    estimate: Estimate
    corrected: bool = False


@dataclass(frozen=True, slots=True)
class Exemplar:
    """The answer behind one observation in a histogram, so that a dashboard can link to it.

    Attributes:
        key: Identity of the sample in the store.
        trace_id: The trace it belongs to, if the log named one.
        value: The score.
        at: When it was answered, in seconds since the epoch.
    """

    key: str
    trace_id: str | None
    value: float
    at: float


@dataclass(frozen=True, slots=True)
class Lag:
    """How far a source is behind its writer.

    Attributes:
        size: Unread bytes (or records, where a transport knows only those).
        seconds: Age of the oldest unread record; None when unknown, 0 when nothing is unread.
        unreadable: What of it cannot be read at present, by name, and why. Nobody knows how much is unread in there.
        closed: Files that are followed and closed between reads, because no more may be open at once.
        problems: What keeps it from being read as configured, and what to do; ragwatch is not ready meanwhile.
        skipped: How much of what was there at its very first start is not read, and why; empty when all is.
    """

    size: int
    seconds: float | None
    unreadable: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    closed: int = 0
    problems: tuple[str, ...] = ()
    skipped: str = ""


class Gauge(StrEnum):
    """Figures of the latest run or state of something. The comment names the labels, in order."""

    CANARY_SUCCESS = "canary_success"  # suite, canary
    CANARY_RECALL = "canary_recall"  # suite, k
    CANARY_PRECISION = "canary_precision"  # suite, k
    CANARY_NDCG = "canary_ndcg"  # suite, k
    CANARY_RECIPROCAL_RANK = "canary_reciprocal_rank"  # suite
    CANARY_COVERAGE = "canary_coverage"  # suite
    CANARY_HEALTH = "canary_health"  # suite
    CANARY_DEGRADED = "canary_degraded"  # suite
    CANARY_ANSWER = "canary_answer"  # suite, quantity, contexts
    CANARY_LAST_RUN = "canary_last_run"  # suite
    CANARY_LAST_SUCCESS = "canary_last_success"  # suite
    DRIFT_EVIDENCE = "drift_evidence"  # quantity, route
    DRIFT_THRESHOLD = "drift_threshold"  # quantity, route
    DRIFT_ALARM = "drift_alarm"  # quantity, route
    DRIFT_BASELINE = "drift_baseline"  # quantity, route
    BAND_MEAN = "band_mean"  # quantity, route: of the scores in the band that holds at every look
    BAND_LOW = "band_low"  # quantity, route
    BAND_HIGH = "band_high"  # quantity, route
    BAND_SCORES = "band_scores"  # quantity, route
    BAND_SINCE = "band_since"  # quantity, route
    TRAFFIC_DRIFT_EVIDENCE = "traffic_drift_evidence"  # signal, route
    TRAFFIC_DRIFT_ALARM = "traffic_drift_alarm"  # signal, route
    JUDGE_DRIFT_FLIPS = "judge_drift_flips"  # judge
    JUDGE_DRIFT_ALARM = "judge_drift_alarm"  # judge
    AGREEMENT = "agreement"  # judge, quantity
    LABELS = "labels"  # quantity
    LABEL_GAIN = "label_gain"  # quantity, route, window
    LAST_LABEL = "last_label"  # none
    STATE_FREE = "state_free"  # none
    STATE_DAMAGED = "state_damaged"  # none


Gauges = Mapping[tuple[Gauge, tuple[str, ...]], float]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All figures at one instant.

    Attributes:
        at: The instant, in seconds since the epoch.
        estimates: One row for each quantity, route, judge and window that has something to say.
        corrected: Estimates that people's labels have corrected, beside the judges' own.
        coverage: By (route, judge, window): judged share of the drawn weight.
        last_sample: By (quantity, route, judge): when the newest scored answer was given; never later than `at`.
        exemplars: By (quantity, route, judge, bucket label): the newest answer in that bucket.
        tallies: All counts since the state directory was made.
        pending: Draws waiting for a judge, by judge.
        probabilities: Inclusion probability in force, by route.
        shares: Probability in force with which a judge reads a draw, by judge.
        budgets: Share of its budget that is left, by judge that has one.
        lags: By source.
        judges: Kind and version by judge name.
        gauges: Everything else that has a value at present.
        problems: What keeps ragwatch from being ready, one sentence each.
    """

    at: float
    estimates: tuple[EstimateRow, ...] = ()
    corrected: tuple[EstimateRow, ...] = ()
    coverage: Mapping[tuple[str, str, str], float] = field(default_factory=lambda: _EMPTY)
    last_sample: Mapping[tuple[str, str, str], float] = field(default_factory=lambda: _EMPTY)
    exemplars: Mapping[tuple[str, str, str, str], Exemplar] = field(default_factory=lambda: _EMPTY)
    tallies: Tallies = field(default_factory=Counter)
    pending: Mapping[str, int] = field(default_factory=lambda: _EMPTY)
    probabilities: Mapping[str, float] = field(default_factory=lambda: _EMPTY)
    shares: Mapping[str, float] = field(default_factory=lambda: _EMPTY)
    budgets: Mapping[str, float] = field(default_factory=lambda: _EMPTY)
    lags: Mapping[str, Lag] = field(default_factory=lambda: _EMPTY)
    judges: Mapping[str, tuple[str, str]] = field(default_factory=lambda: _EMPTY)
    gauges: Gauges = field(default_factory=lambda: _EMPTY)
    problems: tuple[str, ...] = ()
