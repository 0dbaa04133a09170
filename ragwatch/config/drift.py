"""Drift in the configuration: what is watched, how many false alarms are bearable, and the anchors of the judge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from ragwatch import formats
from ragwatch.config.text import duration_seconds
from ragwatch.core.sampling import SamplingPlan
from ragwatch.core.scores import Quantity
from ragwatch.errors import ConfigError, FormatError
from ragwatch.formats.record import parse
from ragwatch.pipeline.drift.anchors import Anchor, AnchorRules
from ragwatch.pipeline.drift.rules import DriftRules
from ragwatch.pipeline.drift.signals import Signal
from ragwatch.pipeline.drift.traffic import TrafficRules

MOST_ANCHORS, MOST_BRIDGE = 2000, 2000
DAY = 86400.0
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]
Seconds = Annotated[float, BeforeValidator(duration_seconds), Field(gt=0.0)]
Ratio = Annotated[float, Field(ge=0.0, le=1.0, strict=True)]
Tolerance = Annotated[float, Field(ge=0.0, lt=1.0, strict=True)]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class TrafficDrift(_Model):
    """Signals of all traffic, which no judge needs to read: early warnings."""

    signals: tuple[Signal, ...] = tuple(Signal)
    requests: int = Field(5000, ge=100)
    reference: Seconds = DAY
    tolerance: Tolerance = 0.05
    false_alarm_every: Seconds = 30 * DAY


class DriftOptions(_Model):
    """Scores that are watched for drift."""

    quantities: tuple[Quantity, ...] = (
        Quantity.FAITHFULNESS,
        Quantity.CONTEXT_PRECISION,
        Quantity.ANSWER_RELEVANCY,
    )
    reference: int = Field(2000, ge=30)
    reference_time: Seconds = DAY
    tolerance: Tolerance = 0.02
    false_alarm_every: Seconds = 30 * DAY
    detector: Literal["betting", "cusum", "page_hinkley"] = "betting"
    threshold: float | None = Field(None, gt=0.0)
    controls: dict[Name, Name] = Field(default_factory=dict)
    judge: Name | None = None
    bridge: int = Field(200, ge=0, le=MOST_BRIDGE)
    traffic: TrafficDrift = TrafficDrift()

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.threshold is None) != (self.detector == "betting"):
            raise ValueError(
                "threshold: is for cusum and page_hinkley, which need one; betting has its own, from false_alarm_every"
            )
        if both := set(self.controls) & set(self.controls.values()):
            raise ValueError(f"controls: {min(both)!r} is a control and has one; name a route that has none")
        return self

    def rules(
        self, judge: str, version: str, routes: Iterable[str], lowest: Mapping[str, float], confidence: float = 0.95
    ) -> DriftRules:
        """What is watched, for the judge in force.

        Args:
            judge: Name of the judge.
            version: Its version.
            routes: All values of the label `route`.
            lowest: Lowest inclusion probability, by route (see `lowest_probability`).
            confidence: Level of the bands.
        """
        return DriftRules(
            judge,
            version,
            self.quantities,
            tuple(routes),
            self.detector,
            self.false_alarm_every / DAY,
            self.threshold,
            self.reference,
            self.tolerance,
            self.reference_time,
            confidence,
            lowest,
            self.controls,
        )

    def traffic_rules(self, routes: Iterable[str]) -> TrafficRules:
        """Which signals are watched, on which routes."""
        asked = self.traffic
        return TrafficRules(
            asked.signals,
            tuple(routes),
            asked.false_alarm_every / DAY,
            asked.requests,
            asked.reference,
            asked.tolerance,
        )


class AnchorsOptions(_Model):
    """Fixed samples that a judge reads again and again, so that its own drift is told from the service's."""

    file: Path
    judge: Name | None = None
    every: Seconds = DAY
    quantity: Quantity = Quantity.FAITHFULNESS
    at_least: Ratio = 1.0
    false_alarm_every: Seconds = 90 * DAY

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.every >= self.false_alarm_every:
            raise ValueError("false_alarm_every: is not longer than `every`; each reading would be an alarm")
        return self

    @property
    def rules(self) -> AnchorRules:
        """The same, for the loop."""
        return AnchorRules(self.every, self.quantity, self.at_least, self.every / self.false_alarm_every)


def check_routes(options: DriftOptions, routes: Iterable[str]) -> None:
    """Controls are about routes that exist.

    Raises:
        ConfigError: One does not.
    """
    known = sorted(set(routes))
    for route, control in options.controls.items():
        for each in (route, control):
            if each not in known:
                raise ConfigError(f"drift.controls: {each!r} is no route; use one of: {', '.join(known)}")


def lowest_probability(plan: SamplingPlan, route: str, judge_probability: float = 1.0) -> float:
    """Lowest probability with which a judge reads an answer on a route, as configured: the heaviest weight is 1 / it.

    >>> lowest_probability(SamplingPlan(0.1, {"support": 1.0}, "tier", {"gold": 0.5}), "support", 0.5)
    0.25
    """
    return judge_probability * min(plan.probability_of(route, each) for each in (None, *plan.strata))


def read_anchors(path: Path) -> tuple[Anchor, ...]:
    """The anchors in a JSONL file: samples in any format that is known, with people's word `good` where there is one.

    Raises:
        ConfigError: It cannot be read, or what is wrong in it, one line each.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    found: list[Anchor] = []
    wrong: list[str] = []
    for number, line in enumerate(content.splitlines(), start=1):
        if line.strip():
            try:
                found.append(_anchor(line, number))
            except FormatError as error:
                wrong.append(f"{path.name} line {number}: {error}")
    if wrong:
        raise ConfigError("\n".join(wrong))
    if not 0 < len(found) <= MOST_ANCHORS:
        raise ConfigError(f"{path.name}: holds {len(found)} anchors; give 1 to {MOST_ANCHORS}, better 100 or more")
    return tuple(found)


def _anchor(line: bytes, number: int) -> Anchor:
    record, _ = parse(line)
    good = record.pop("good", None)
    if good is not None and not isinstance(good, bool):
        raise FormatError("wrong_type", "good", f"must be true, false or null, not {good!r}")
    return Anchor(formats.build("auto").read(record, str(number)), good)
