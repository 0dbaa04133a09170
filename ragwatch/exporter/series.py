"""Defines a row of the catalogue: a series, its type and the origin of its values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ragwatch.core.snapshot import Gauge
from ragwatch.core.tally import Tally
from ragwatch.model.quantities import Quantity
from ragwatch.telemetry import EventCount, GaugeLevel


class MetricType(StrEnum):
    """Prometheus metric types in use."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    INFO = "info"


class GaugeSource(StrEnum):
    """Origins of gauges and infos: values that are read, not counted."""

    RATIO = "ratio"
    RATIO_LOW = "ratio_low"
    RATIO_HIGH = "ratio_high"
    RATIO_BOUND_LOW = "ratio_bound_low"
    RATIO_BOUND_HIGH = "ratio_bound_high"
    SAMPLES = "samples"
    EFFECTIVE_SAMPLES = "effective_samples"
    LAST_SAMPLE = "last_sample_timestamp_seconds"
    COVERAGE = "coverage"
    PENDING = "pending"
    PROBABILITY = "probability"
    LAG_BYTES = "lag_bytes"
    LAG_RECORDS = "lag_records"
    LAG_SECONDS = "lag_seconds"
    UNREADABLE = "unreadable"
    CLOSED = "closed"
    JUDGES = "judges"
    SHARE = "share"
    BUDGET_LEFT = "budget_left"
    DIGESTED = "digested"
    REPEAT_AGREEMENT = "repeat_agreement"
    FOOLED = "fooled"
    PADDING_PREFERRED = "padding_preferred"
    RETRIEVAL_RECALL = "retrieval_recall"
    RETRIEVAL_PRECISION = "retrieval_precision"
    RETRIEVAL_F1 = "retrieval_f1"
    RETRIEVAL_NDCG = "retrieval_ndcg"
    RETRIEVAL_RECIPROCAL_RANK = "retrieval_reciprocal_rank"
    USER_SCORE = "user_score"
    USER_SCORE_LOW = "user_score_low"
    USER_SCORE_HIGH = "user_score_high"
    USER_SCORE_BOUND_LOW = "user_score_bound_low"
    USER_SCORE_BOUND_HIGH = "user_score_bound_high"
    USER_SCORE_RESPONSE = "user_score_response"
    USER_SCORE_SAMPLES = "user_score_samples"
    USER_SCORE_EFFECTIVE = "user_score_effective"
    USER_SCORE_LAST = "user_score_last"
    USER_CORRELATION = "user_correlation"
    USER_CORRELATION_LOW = "user_correlation_low"
    USER_CORRELATION_HIGH = "user_correlation_high"
    USER_CORRELATION_SAMPLES = "user_correlation_samples"
    SEGMENT_RATIO = "segment_ratio"
    SEGMENT_RATIO_LOW = "segment_ratio_low"
    SEGMENT_RATIO_HIGH = "segment_ratio_high"
    SEGMENT_SAMPLES = "segment_samples"
    SEGMENT_EFFECTIVE = "segment_effective_samples"
    SEGMENT_LAST = "segment_last_sample"
    BUILD = "build"
    LEADER = "leader"
    RELOAD_OK = "reload_ok"
    RELOAD_AT = "reload_at"


Origin = Tally | EventCount | GaugeLevel | Gauge | GaugeSource


@dataclass(frozen=True, slots=True)
class SeriesDefinition:
    """One series of the catalogue.

    Attributes:
        name: Name as Prometheus stores it (a histogram's without `_bucket`).
        kind: Metric type.
        help: HELP text: one sentence that says what is measured, with its unit.
        labels: Label names, in the order of the label values of the origin.
        origin: Where the values come from.
        quantity: The quantity it is about, for the series that every quantity has.
        from_zero: Whether it is exported as 0 for every allowed combination of label values before the first event, so
            that `increase()` counts the first event.
        signed: Whether a histogram is of values that may be negative. Then it has no `_sum`, which would go down, nor
            `_count`, which OpenMetrics allows beside `_sum` only.
    """

    name: str
    kind: MetricType
    help: str
    labels: tuple[str, ...]
    origin: Origin
    quantity: Quantity | None = None
    from_zero: bool = False
    signed: bool = False
