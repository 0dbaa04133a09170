"""Defines a row of the catalogue: a series, its type and the origin of its values."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from ragwatch.core.snapshot import Gauge
from ragwatch.core.tally import Tally
from ragwatch.model.enumerations import Labelled
from ragwatch.model.quantities import Quantity
from ragwatch.telemetry import EventCount, GaugeLevel


class MetricType(StrEnum):
    """Prometheus metric types in use."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    INFO = "info"


_ESTIMATE = ("quantity", "route", "judge", "window", "corrected")
_SEGMENT = ("quantity", "segment", "value", "route", "judge", "window")


class GaugeSource(Labelled):
    """Origins of gauges and infos, with their labels in order: values that are read, not counted."""

    RATIO = "ratio", *_ESTIMATE
    RATIO_LOW = "ratio_low", *_ESTIMATE
    RATIO_HIGH = "ratio_high", *_ESTIMATE
    RATIO_BOUND_LOW = "ratio_bound_low", *_ESTIMATE
    RATIO_BOUND_HIGH = "ratio_bound_high", *_ESTIMATE
    SAMPLES = "samples", *_ESTIMATE
    EFFECTIVE_SAMPLES = "effective_samples", *_ESTIMATE
    LAST_SAMPLE = "last_sample_timestamp_seconds", "quantity", "route", "judge"
    COVERAGE = "coverage", "route", "judge", "window"
    PENDING = "pending"
    PROBABILITY = "probability", "route"
    LAG_BYTES = "lag_bytes", "source"
    LAG_RECORDS = "lag_records", "source"
    LAG_SECONDS = "lag_seconds", "source"
    UNREADABLE = "unreadable", "source"
    CLOSED = "closed", "source"
    JUDGES = "judges", "judge", "kind", "version"
    SHARE = "share", "judge"
    BUDGET_LEFT = "budget_left", "judge"
    DIGESTED = "digested"
    REPEAT_AGREEMENT = "repeat_agreement", "judge", "quantity"
    FOOLED = "fooled", "judge"
    PADDING_PREFERRED = "padding_preferred", "judge"
    RETRIEVAL_RECALL = "retrieval_recall", "route", "k"
    RETRIEVAL_PRECISION = "retrieval_precision", "route", "k"
    RETRIEVAL_F1 = "retrieval_f1", "route", "k"
    RETRIEVAL_NDCG = "retrieval_ndcg", "route", "k"
    RETRIEVAL_RECIPROCAL_RANK = "retrieval_reciprocal_rank", "route"
    USER_SCORE = "user_score", "route", "window"
    USER_SCORE_LOW = "user_score_low", "route", "window"
    USER_SCORE_HIGH = "user_score_high", "route", "window"
    USER_SCORE_BOUND_LOW = "user_score_bound_low", "route", "window"
    USER_SCORE_BOUND_HIGH = "user_score_bound_high", "route", "window"
    USER_SCORE_RESPONSE = "user_score_response", "route", "window"
    USER_SCORE_SAMPLES = "user_score_samples", "route", "window"
    USER_SCORE_EFFECTIVE = "user_score_effective", "route", "window"
    USER_SCORE_LAST = "user_score_last", "route"
    USER_CORRELATION = "user_correlation", "judge", "quantity"
    USER_CORRELATION_LOW = "user_correlation_low", "judge", "quantity"
    USER_CORRELATION_HIGH = "user_correlation_high", "judge", "quantity"
    USER_CORRELATION_SAMPLES = "user_correlation_samples", "judge", "quantity"
    SEGMENT_RATIO = "segment_ratio", *_SEGMENT
    SEGMENT_RATIO_LOW = "segment_ratio_low", *_SEGMENT
    SEGMENT_RATIO_HIGH = "segment_ratio_high", *_SEGMENT
    SEGMENT_SAMPLES = "segment_samples", *_SEGMENT
    SEGMENT_EFFECTIVE = "segment_effective_samples", *_SEGMENT
    SEGMENT_LAST = "segment_last_sample", "quantity", "segment", "value", "route", "judge"
    PAGES = "pages", "external_url"
    REJECTED = "rejected", "source", "reason", "field", "first"
    BUILD = "build", "version", "python_version"
    LEADER = "leader"
    RELOAD_OK = "reload_ok"
    RELOAD_AT = "reload_at"


_BY_SUFFIX = {"total": MetricType.COUNTER, "info": MetricType.INFO}
Origin = Tally | EventCount | GaugeLevel | Gauge | GaugeSource


@dataclass(frozen=True, slots=True)
class SeriesDefinition:
    """One series of the catalogue.

    Attributes:
        name: Name as Prometheus stores it (a histogram's without `_bucket`).
        help: HELP text: one sentence that says what is measured, with its unit.
        origin: Where the values come from.
        quantity: The quantity it is about, for the series that every quantity has.
        from_zero: Whether it is exported as 0 for every allowed combination of label values before the first event, so
            that `increase()` counts the first event.
        values: All values of its label that are neither configured nor quantities, if it is exported from zero.
        signed: Whether a histogram is of values that may be negative. Then it has no `_sum`, which would go down, nor
            `_count`, which OpenMetrics allows beside `_sum` only.
        default_judge: Whether only what the default judge said is exported, as several judges read the same answers.
        labels: Label names: those of the origin without the bucket, a quantity in the name and an implied judge.
        kind: Metric type: what is counted in buckets is a histogram; `_total` and `_info` are said by the name.
    """

    name: str
    help: str
    origin: Origin
    quantity: Quantity | None = None
    from_zero: bool = False
    values: type[StrEnum] | None = None
    signed: bool = False
    default_judge: bool = False
    labels: tuple[str, ...] = field(init=False)
    kind: MetricType = field(init=False)

    def __post_init__(self) -> None:
        """Derive labels and type once: a scrape reads them for every sample."""
        implied = {"bucket"} | ({"quantity"} if self.quantity else set()) | ({"judge"} if self.default_judge else set())
        object.__setattr__(self, "labels", tuple(name for name in self.origin.labels if name not in implied))
        by_name = _BY_SUFFIX.get(self.name.rpartition("_")[2], MetricType.GAUGE)
        object.__setattr__(self, "kind", MetricType.HISTOGRAM if "bucket" in self.origin.labels else by_name)
