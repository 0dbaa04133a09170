"""Gate: what `ragwatch gate` asks of a version before it is released. The daemon reads none of it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, model_validator

from ragwatch.core.gate import GateRules, GateSeverity, Metric, MetricLimit, metric_of
from ragwatch.core.reference import ReferenceQuantity
from ragwatch.core.scores import Quantity

Ratio = Annotated[float, Field(ge=0.0, le=1.0, strict=True)]
DEFAULTS: Mapping[Metric, tuple[float, GateSeverity]] = MappingProxyType(
    {
        Quantity.FAITHFULNESS: (0.85, GateSeverity.BLOCK),
        Quantity.ANSWER_RELEVANCY: (0.75, GateSeverity.BLOCK),
        ReferenceQuantity.CONTEXT_RECALL: (0.80, GateSeverity.WARN),
        Quantity.CONTEXT_PRECISION: (0.70, GateSeverity.WARN),
    }
)


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class MetricLimitOptions(_Model):
    """What is asked of one metric. Without a severity it has that of its default, or else blocks."""

    threshold: Ratio | None = None
    severity: GateSeverity | None = None


def _metric(name: object) -> Metric:
    try:
        return metric_of(str(name))
    except ValueError as error:
        known = ", ".join((*Quantity, *ReferenceQuantity))
        raise ValueError(f"{str(name)!r} is not a metric; use one of: {known}") from error


MetricKey = Annotated[Metric, PlainValidator(_metric)]


def _limit(value: object) -> object:
    return {"threshold": value} if isinstance(value, int | float) and not isinstance(value, bool) else value


Metrics = dict[MetricKey, Annotated[MetricLimitOptions, BeforeValidator(_limit)] | None]  # null leaves a metric out


class GateOptions(_Model):
    """When a version passes; see `core.gate` for the rule."""

    minimum_samples: int = Field(30, ge=1)
    coverage: Ratio = 0.9
    strict: bool = False
    metrics: Metrics = Field(default_factory=dict)

    @model_validator(mode="after")
    def _whole(self) -> Self:
        for name, wanted in self.metrics.items():
            if wanted is not None and wanted.threshold is None and name not in DEFAULTS:
                raise ValueError(f"metrics.{name} has no threshold; give one, such as {{threshold: 0.8}}")
        return self


def rules_of(asked: GateOptions, thresholds: Mapping[Metric, float], confidence: float = 0.95) -> GateRules:
    """The rules that a configuration implies: defaults, its `thresholds` over them, and its `gate` over both.

    Args:
        asked: The part `gate`.
        thresholds: The part of that name. A metric that only they name is looked at and does not block.
        confidence: Level of the intervals.
    """
    limits: dict[Metric, tuple[float, GateSeverity]] = dict(DEFAULTS)
    for metric, threshold in thresholds.items():
        limits[metric] = (threshold, limits[metric][1] if metric in limits else GateSeverity.WARN)
    for name, wanted in asked.metrics.items():
        before = limits.pop(name, None)
        if wanted is not None:
            limits[name] = _over(before, wanted)
    found = tuple(MetricLimit(metric, threshold, severity) for metric, (threshold, severity) in limits.items())
    return GateRules(found, asked.minimum_samples, asked.coverage, asked.strict, confidence)


def _over(before: tuple[float, GateSeverity] | None, wanted: MetricLimitOptions) -> tuple[float, GateSeverity]:
    """A limit over the one before; `GateOptions` has seen to it that one of them holds a threshold."""
    threshold, severity = before or (1.0, GateSeverity.BLOCK)
    return threshold if wanted.threshold is None else wanted.threshold, wanted.severity or severity
