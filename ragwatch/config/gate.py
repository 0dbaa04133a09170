"""Options of `ragwatch gate`, which tests a version of the service before its release. The daemon does not use them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Self

from pydantic import BeforeValidator, Field, PlainValidator, ValidationInfo, model_validator

from ragwatch.config.options import FrozenOptions, InnerError, StrictRatio, criteria_of
from ragwatch.model.quantities import Quantity
from ragwatch.model.quantity_row import GateSeverity
from ragwatch.model.references import ReferenceQuantity
from ragwatch.statistics.gate import GateRules, MetricLimit
from ragwatch.statistics.set_scores import JudgedMetric, Metric, metric_of

_METRICS: tuple[JudgedMetric, ...] = (*ReferenceQuantity, *Quantity)
DEFAULTS: Mapping[Metric, tuple[float, GateSeverity]] = MappingProxyType(
    {
        metric: (metric.row.threshold, severity)
        for severity in GateSeverity
        for metric in _METRICS
        if metric.row.severity is severity and metric.row.threshold is not None
    }
)
"""Thresholds of the gate, those that block first."""
LIVE_DEFAULTS: Mapping[Metric, float] = MappingProxyType(
    {
        **{metric: threshold for metric, (threshold, _) in DEFAULTS.items()},
        **{metric: metric.row.threshold for metric in _METRICS if metric.row.threshold is not None},
    }
)
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
