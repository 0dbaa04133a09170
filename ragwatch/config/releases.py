"""Options of `ragwatch gate` and `rollout`, which test a version before its release. The daemon does not use them."""

import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, date, datetime
from typing import Annotated, Self

from pydantic import (
    BeforeValidator,
    Field,
    PlainValidator,
    StringConstraints,
    ValidationInfo,
    model_validator,
)

from ragwatch.config.options import DAY, FrozenOptions, InnerError, Ratio, Seconds, StrictRatio, criteria_of, must
from ragwatch.model.quantities import Quantity, ReferenceQuantity
from ragwatch.model.quantity_row import GateSeverity
from ragwatch.statistics.feedback import NAME
from ragwatch.statistics.gate import GateRules, MetricLimit
from ragwatch.statistics.set_scores import JudgedMetric, Metric, metric_of

_METRICS: tuple[JudgedMetric, ...] = (*ReferenceQuantity, *Quantity)
DEFAULTS: Mapping[Metric, tuple[float, GateSeverity]] = {
    metric: (metric.row.threshold, severity)
    for severity in GateSeverity
    for metric in _METRICS
    if metric.row.severity is severity and metric.row.threshold is not None
}
"""Thresholds of the gate, those that block first."""
LIVE_DEFAULTS: Mapping[Metric, float] = {
    **{metric: threshold for metric, (threshold, _) in DEFAULTS.items()},
    **{metric: metric.row.threshold for metric in _METRICS if metric.row.threshold is not None},
}
"""Thresholds of live traffic where the configuration has none. That of top_ranked_ignored is for pages only."""


class MetricLimitOptions(FrozenOptions):
    """Limit of one metric. The severity defaults to that in `DEFAULTS`, else to `block`."""

    threshold: StrictRatio | None = Field(None, description="Limit of the metric, instead of that in `thresholds`.")
    severity: GateSeverity | None = Field(None, description="block fails the gate; warn only says so.")


def _parse_metric(name: object, info: ValidationInfo) -> Metric:
    criteria = criteria_of(info)
    try:
        return metric_of(str(name), criteria=str(name) in criteria)
    except ValueError as error:
        names = ", ".join(
            (
                *Quantity,
                *ReferenceQuantity,
                *sorted(criteria),
                "recall@5, precision@5, f1@5, ndcg@5, context_precision@5 (or another k), mrr",
            )
        )
        raise ValueError(f"{str(name)!r} is not a metric; use one of: {names}") from error


MetricKey = Annotated[Metric, PlainValidator(_parse_metric)]


def _parse_limit(value: object) -> object:
    return {"threshold": value} if isinstance(value, int | float | str) and not isinstance(value, bool) else value


Metrics = dict[MetricKey, Annotated[MetricLimitOptions, BeforeValidator(_parse_limit)] | None]  # null removes a metric


class GateOptions(FrozenOptions):
    """Conditions under which a version passes; see `statistics.gate`."""

    minimum_samples: int = Field(
        30, ge=1, description="Minimum number of scores per metric; fewer are not enough data."
    )
    coverage: StrictRatio = Field(0.9, description="Minimum share of the rows that are read and judged.")
    strict: bool = Field(
        default=False,
        description="true: a mean whose interval contains the threshold is not enough data; a level always is.",
    )
    tolerated_fall: StrictRatio = Field(
        0.05, description="Fall since --baseline that need not be ruled out where none is significant."
    )
    metrics: Metrics = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_thresholds(self) -> Self:
        for metric, limit in self.metrics.items():
            if limit is not None and limit.threshold is None and metric not in DEFAULTS:
                raise InnerError(f"metrics.{metric}: has no threshold; give one, such as {{threshold: 0.8}}")
        return self


def rules_of(options: GateOptions, thresholds: Mapping[Metric, float] | None, confidence: float = 0.95) -> GateRules:
    """Merge the defaults, `thresholds` and `gate` into the rules of the gate; the later ones take precedence.

    A metric that only `thresholds` names has the severity `warn`. An empty section removes the defaults.
    """
    limits: dict[Metric, tuple[float, GateSeverity]] = {} if thresholds == {} else dict(DEFAULTS)
    for metric, threshold in (thresholds or {}).items():
        limits[metric] = (threshold, limits[metric][1] if metric in limits else GateSeverity.WARN)
    for metric, override in options.metrics.items():
        default = limits.pop(metric, None)
        if override is not None:
            threshold, severity = default or (1.0, GateSeverity.BLOCK)  # one of the two has a threshold
            threshold = threshold if override.threshold is None else override.threshold
            limits[metric] = (threshold, override.severity or severity)
    metric_limits = tuple(MetricLimit(metric, threshold, severity) for metric, (threshold, severity) in limits.items())
    return GateRules(
        metric_limits,
        minimum_samples=options.minimum_samples,
        coverage=options.coverage,
        strict=options.strict,
        confidence=confidence,
        tolerated_fall=options.tolerated_fall,
    )


_FIELD = re.compile(r"metadata(\.[^.]{1,128}){1,8}")
Text = Annotated[str, StringConstraints(min_length=1, max_length=256)]


def _parse_time(value: object) -> object:
    """Convert a time to seconds since the epoch; without an offset it is UTC."""
    if isinstance(value, str):
        with suppress(ValueError):
            value = datetime.fromisoformat(value.strip())
    elif isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    raise ValueError(f"{value!r} is not a time; write one such as 2026-01-31T09:30:00Z")


class OfflineOptions(FrozenOptions):
    """Stage 1: two suites of `canaries`, or two files with the output of `ragwatch canary --json`."""

    a: Text = Field(
        description="A suite of `canaries`, or an output of `ragwatch canary --json`, with the current variant."
    )
    b: Text = Field(description="The same with the other variant.")
    k: int = Field(10, ge=1, le=1000, description="Cut-off of the comparison.")


class JudgedOptions(FrozenOptions):
    """Stage 2: two logs of answers; without them, the stored answers of live traffic."""

    a: Text | None = Field(None, description="A log of answers of the current variant; null for live answers.")
    b: Text | None = Field(None, description="A log of answers of the other one to the same questions.")
    questions: int = Field(100, ge=1, le=10_000, description="Number of questions that are compared.")
    since: Seconds = Field(7 * DAY, description="Age of the oldest live answer that is compared.")

    @model_validator(mode="after")
    def _check_sides(self) -> Self:
        if (self.a is None) != (self.b is None):
            raise ValueError("has one log only; give both `a` and `b`, or neither for live traffic")
        return self


_Field = Annotated[
    str,
    must(
        lambda value: value == NAME or _FIELD.fullmatch(value),
        f"{{value!r}} is neither {NAME} (all that users say) nor a field such as metadata.thumbs",
    ),
]


class FeedbackOptions(FrozenOptions):
    """What users say: `user_score` as the daemon has read it, or a field of the metadata and what its numbers mean."""

    field: _Field = Field(description="Path of the user metric, such as metadata.thumbs.")
    worst: float | None = Field(None, description="Worst value of ratings; null for thumbs.")
    best: float | None = Field(None, description="Best value of ratings.")

    @model_validator(mode="after")
    def _check_scale(self) -> Self:
        if (self.worst is None) != (self.best is None) or (self.worst is not None and self.worst == self.best):
            raise ValueError("has half a scale; give two different numbers `worst` and `best`, or neither for thumbs")
        if self.field == NAME and self.worst is not None:
            raise ValueError(
                f"has a scale for {NAME}, which is from 0 to 1; write the scale at the top-level `feedback`"
            )
        return self


def _parse_feedback(value: object) -> object:
    return {"field": value} if isinstance(value, str) else value


class LiveOptions(FrozenOptions):
    """Stage 3: a share of the live traffic."""

    start: Annotated[float, BeforeValidator(_parse_time)] = Field(
        description="When the split of the traffic began; fixed, because the sequences begin there."
    )
    share: float = Field(0.05, gt=0.0, lt=1.0, description="Share of the traffic that b gets.")
    margin: Ratio = Field(0.05, description="Largest loss that is accepted.")
    feedback: Annotated[FeedbackOptions, BeforeValidator(_parse_feedback)] | None = None


class RolloutOptions(FrozenOptions):
    """Rollout of the variant `b` in place of `a`; stages without a section are not decided."""

    a: Text = Field(description="The current variant: its value of `label` in the metadata of an answer.")
    b: Text = Field(description="The variant that is to replace it.")
    label: Text = Field("variant", description="Metadata key of the variant.")
    offline: OfflineOptions | None = None
    judged: JudgedOptions | None = None
    live: LiveOptions | None = None

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        if self.a == self.b:
            raise ValueError(f"`a` and `b` are both {self.a!r}; name two variants")
        return self
