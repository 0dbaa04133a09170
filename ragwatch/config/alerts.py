"""Options of the Prometheus rules that `ragwatch rules` generates. The daemon does not use them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from difflib import get_close_matches
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from ragwatch.config.options import (
    AnyQuantity,
    Bytes,
    FrozenOptions,
    InnerError,
    Route,
    Seconds,
    StrictRatio,
    split_routes,
)
from ragwatch.model.signals import Signal
from ragwatch.rules import NAMES, BurnRate, Limits, impossible
from ragwatch.rules.alert import PREFIX
from ragwatch.rules.plan import BURNS, RISES, WINDOWS

Url = Annotated[str, Field(pattern=r"^https?://[^\s{}\"'\\]+$"), AfterValidator(lambda value: value.rstrip("/"))]
Objective = Annotated[float, Field(gt=0.0, lt=1.0, strict=True)]


def _full_name(name: str) -> str:
    """Name of an alert with its prefix; an unknown name is refused."""
    full = name if name.startswith(PREFIX) else PREFIX + name
    if full not in NAMES:
        short = sorted(known.removeprefix(PREFIX) for known in NAMES)
        similar = get_close_matches(full.removeprefix(PREFIX), short, n=1)
        advice = f"did you mean `{similar[0]}`?" if similar else f"use one of: {', '.join(short)}"
        raise ValueError(f"is no alert; {advice}")
    return full


def _is_share(signal: Signal) -> Signal:
    """A signal that answers have or do not have; numbers have no share that could rise."""
    if signal.row.bounds is not None:
        shares = ", ".join(known for known in Signal if known.row.bounds is None)
        raise ValueError(f"{signal} is a number of each answer, so no share of answers has it; use one of: {shares}")
    return signal


ShareSignal = Annotated[Signal, AfterValidator(_is_share)]
AlertName = Annotated[str, AfterValidator(_full_name)]


class BurnWindows(FrozenOptions):
    """Two windows, and the share of the error budget of 30 days that may be used within the longer one."""

    long: Seconds
    short: Seconds
    budget: float = Field(gt=0.0, le=1.0)
    severity: Literal["critical", "warning"] = "critical"

    @property
    def burn(self) -> BurnRate:
        """The burn rate alert with these windows."""
        return BurnRate(self.long, self.short, self.budget, self.severity)


_BURN_WINDOWS = tuple(
    BurnWindows(long=burn.long, short=burn.short, budget=burn.budget, severity=burn.severity) for burn in BURNS
)
_LIMITS = Limits()


class Slo(FrozenOptions):
    """Objective of one quantity: its mean over 30 days (1 - mean if low values are good)."""

    objective: Objective


class Alerts(FrozenOptions):
    """Links, windows, objectives and thresholds of the generated Prometheus rules."""

    job: str = Field("ragwatch", pattern=r"^[^\s{}\"'\\]{1,200}$")
    judge: str | None = None
    runbooks: Url | None = None
    dashboards: Url | None = None
    windows: tuple[Seconds, ...] = Field(WINDOWS, min_length=2)
    window: Seconds = 3600.0
    severity: dict[AlertName, Literal["critical", "warning", "info"]] = Field(default_factory=dict)
    rises: dict[ShareSignal, StrictRatio | None] = Field(default_factory=dict)
    slos: dict[AnyQuantity, Slo] = Field(default_factory=dict)
    route_slos: dict[Route, dict[AnyQuantity, Slo | None]] = Field(default_factory=dict, alias="slos.routes")
    burns: tuple[BurnWindows, ...] = _BURN_WINDOWS
    samples: int = Field(_LIMITS.samples, ge=2, alias="minimum_samples")
    hold: Seconds = _LIMITS.hold
    coverage: StrictRatio = _LIMITS.coverage
    stale: Seconds = _LIMITS.stale
    silent: Seconds = _LIMITS.silent
    lag: Seconds = _LIMITS.lag
    rejects: StrictRatio = _LIMITS.rejects
    canaries: Seconds = _LIMITS.canaries
    failures: StrictRatio = _LIMITS.failures
    budget: StrictRatio = _LIMITS.budget
    unquoted: StrictRatio = _LIMITS.unquoted
    fooled: StrictRatio = _LIMITS.fooled
    free: Bytes = _LIMITS.free
    degraded: StrictRatio = _LIMITS.degraded
    canary_answers: StrictRatio = _LIMITS.canary_answers
    canary_answers_floor: StrictRatio = _LIMITS.canary_answers_floor

    @property
    def page_rises(self) -> Mapping[Signal, float]:
        """By signal of traffic: the rise of its share that pages. A signal whose key is null never does."""
        chosen = {**RISES, **self.rises}
        return {signal: rise for signal, rise in chosen.items() if rise is not None}

    @property
    def limits(self) -> Limits:
        """The keys that are thresholds of the alerts on causes."""
        return Limits(**{limit.name: getattr(self, limit.name) for limit in fields(Limits)})

    @model_validator(mode="before")
    @classmethod
    def _split_slos(cls, data: object) -> object:
        return split_routes(data, "slos")

    @model_validator(mode="after")
    def _check_windows(self) -> Self:
        if list(self.windows) != sorted(set(self.windows)):
            raise InnerError("windows: must rise, such as [15m, 1h, 1d]")
        if self.window not in self.windows or self.window == self.windows[-1]:
            raise InnerError(
                "window: is not one of `windows`, or the longest, which is the baseline; write another one of them"
            )
        slos = {f"slos.{quantity}": slo for quantity, slo in self.slos.items()}
        for route, own in self.route_slos.items():
            slos |= {f"slos.routes.{route}.{quantity}": slo for quantity, slo in own.items() if slo is not None}
        for pair in self.burns if slos else ():
            if not {pair.long, pair.short} <= set(self.windows) or pair.short >= pair.long:
                raise InnerError("burns: long and short must be of `windows`, and short the shorter one")
        for key, slo in slos.items():
            for index, pair in enumerate(self.burns):
                reason = impossible(slo.objective, pair.burn)
                if reason is not None:
                    raise InnerError(f"{key}: burns[{index}] {reason}")
        return self
