"""Options of drift detection in scores and traffic, and of the anchors that detect drift of a judge."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from ragwatch import formats
from ragwatch.config.options import DAY, AnyQuantity, FilePath, FrozenOptions, InnerError, Name, Seconds, StrictRatio
from ragwatch.config.text import read_lines
from ragwatch.errors import ConfigError, FormatError
from ragwatch.formats.record import parse
from ragwatch.model.quantities import Quantity
from ragwatch.model.signals import Signal
from ragwatch.pipeline.drift.judge_drift import Anchor, AnchorRules
from ragwatch.pipeline.drift.rules import TOLERANCES, DriftRules
from ragwatch.pipeline.drift.traffic import TrafficRules
from ragwatch.statistics.sampling import SamplingPlan
from ragwatch.statistics.segments import Segments

_MAX_ANCHORS, _MAX_BRIDGE_SAMPLES = 2000, 2000
Tolerance = Annotated[float, Field(ge=0.0, lt=1.0, strict=True)]


class TrafficDrift(FrozenOptions):
    """Drift detection in signals of all requests, which need no judge."""

    signals: tuple[Signal, ...] = Field(
        tuple(Signal),
        description="Signals of all requests, which need no judge; docs/alerts.md says what each is, `alerts.rises` "
        "which page.",
    )
    requests: int = Field(
        5000, ge=100, description="Requests of a complete baseline; alarms are possible from 500 on ..."
    )
    reference: Seconds = Field(DAY, description="... and from this time on.")
    tolerance: Tolerance = Field(
        0.05, description="Change of a share that is ignored; below .1 and above .9, of its odds."
    )
    false_alarm_every: Seconds = Field(30 * DAY, description="At most one false alarm in this time.")


class DriftOptions(FrozenOptions):
    """Drift detection in scores."""

    quantities: tuple[AnyQuantity, ...] = Field(
        tuple(quantity for quantity in Quantity if quantity.row.drift),
        description="Quantities whose scores are watched, on every route. An alarm ends when the scores are back, or "
        "by `ragwatch acknowledge`.",
    )
    reference: int = Field(
        2000, ge=30, description="Scores of a complete baseline; alarms are possible from 100 on ..."
    )
    reference_time: Seconds = Field(
        DAY, description="... and from this time on, so that it includes the daily pattern."
    )
    tolerance: Tolerance = Field(
        0.02, description="Change of a mean that is ignored; above .9, a change of its odds (.99: .002)."
    )
    tolerances: dict[AnyQuantity, Tolerance] = Field(
        default_factory=lambda: dict(TOLERANCES), description="The same for some quantities, wherever their means are."
    )
    false_alarm_every: Seconds = Field(
        30 * DAY, description="At most one false alarm in this time, of all detectors together."
    )
    detector: Literal["betting", "cusum", "page_hinkley"] = Field(
        "betting", description="betting guarantees that for any distribution; cusum and page_hinkley do not."
    )
    threshold: float | None = Field(None, gt=0.0, description="Threshold of cusum and page_hinkley.")
    controls: dict[Name, Name] = Field(
        default_factory=dict, description="Control route to compare a route with, such as {search: search_old}."
    )
    segments: bool = Field(
        default=True, description="Values of `segments` have detectors of their own, and half of the false alarms."
    )
    judge: Name | None = Field(None, description="Judge of the scores; null for the default judge.")
    bridge: int = Field(
        200,
        ge=0,
        le=_MAX_BRIDGE_SAMPLES,
        description="Samples that a new judge version reads again, to measure its offset; 0 for none.",
    )
    traffic: TrafficDrift = TrafficDrift()

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.threshold is None) != (self.detector == "betting"):
            raise InnerError(
                "threshold: is for cusum and page_hinkley, which need one; betting has its own, from false_alarm_every"
            )
        if both := set(self.controls) & set(self.controls.values()):
            raise InnerError(f"controls: {min(both)!r} is a control and has one; name a route that has none")
        return self

    def rules(
        self,
        judge: str,
        version: str,
        routes: Iterable[str],
        lowest: Mapping[str, float],
        confidence: float = 0.95,
        *,
        segments: Segments | None = None,
    ) -> DriftRules:
        """Build the rules of score drift detection for a judge and all values of the label `route`.

        `lowest` is the lowest inclusion probability by route, `confidence` that of the daily bands.
        """
        return DriftRules(
            judge,
            version,
            quantities=self.quantities,
            routes=tuple(routes),
            detector=self.detector,
            false_alarm_days=self.false_alarm_every / DAY,
            threshold=self.threshold,
            reference=self.reference,
            tolerance=self.tolerance,
            tolerances=self.tolerances,
            reference_seconds=self.reference_time,
            confidence=confidence,
            lowest=lowest,
            controls=self.controls,
            segments=segments if self.segments and segments is not None else Segments(),
        )

    def traffic_rules(self, routes: Iterable[str]) -> TrafficRules:
        """Build the rules of traffic drift detection for these routes."""
        return TrafficRules(
            self.traffic.signals,
            tuple(routes),
            false_alarm_days=self.traffic.false_alarm_every / DAY,
            requests=self.traffic.requests,
            reference_seconds=self.traffic.reference,
            tolerance=self.traffic.tolerance,
        )


class AnchorsOptions(FrozenOptions):
    """Fixed samples that a judge reads at intervals, to distinguish its own drift from that of the service."""

    file: FilePath = Field(description="Samples as in a log, optionally with the label `good: true` or `false`.")
    judge: Name | None = Field(None, description="Judge that reads them; null for that of `drift`.")
    every: Seconds = Field(DAY, description="Interval of the readings; also when the version of the judge changes.")
    quantity: AnyQuantity = Field(Quantity.FAITHFULNESS, description="An answer is good if this quantity ...")
    at_least: StrictRatio = Field(1.0, description="... is at least this.")
    false_alarm_every: Seconds = Field(90 * DAY, description="At most one false alarm in this time.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.every >= self.false_alarm_every:
            raise InnerError(
                "false_alarm_every: is not longer than `every`, so that each reading would be an alarm; write more"
            )
        return self

    @property
    def rules(self) -> AnchorRules:
        """The rules of the anchor loop."""
        return AnchorRules(self.every, self.quantity, self.at_least, self.every / self.false_alarm_every)


def check_routes(options: DriftOptions, routes: Iterable[str]) -> None:
    """Check that `drift.controls` names existing routes only. `ConfigError` names another one."""
    known_routes = sorted(set(routes))
    for pair in options.controls.items():
        for route in pair:
            if route not in known_routes:
                raise ConfigError(f"drift.controls: {route!r} is no route; use one of: {', '.join(known_routes)}")


def lowest_probability(plan: SamplingPlan, route: str, judge_probability: float = 1.0) -> float:
    """Compute the lowest configured probability that a judge reads an answer on a route; the maximum weight is 1 / it.

    >>> lowest_probability(SamplingPlan(0.1, {"support": 1.0}, "tier", {"gold": 0.5}), "support", 0.5)
    0.25
    """
    return judge_probability * min(plan.probability_of(route, stratum) for stratum in (None, *plan.strata))


def read_anchors(path: Path) -> tuple[Anchor, ...]:
    """Read anchors from a JSONL file: samples in any supported format, optionally with the label `good` by people."""
    anchors = read_lines(path, _read_anchor)
    if not 0 < len(anchors) <= _MAX_ANCHORS:
        raise ConfigError(f"{path.name}: holds {len(anchors)} anchors; give 1 to {_MAX_ANCHORS}, better 100 or more")
    return tuple(anchors)


def _read_anchor(line: bytes, number: int) -> Anchor:
    record, _ = parse(line)
    good = record.pop("good", None)
    if good is not None and not isinstance(good, bool):
        raise FormatError("wrong_type", "good", f"must be true, false or null, not {good!r}")
    return Anchor(formats.build("auto").read(record, str(number)), good)
