"""Options of the Prometheus rules that `ragwatch rules` generates. The daemon does not use them."""

from collections.abc import Mapping
from dataclasses import asdict, fields
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

    long: Seconds = Field(description="The longer window.")
    short: Seconds = Field(description="The shorter window, which ends the alert soon after the failures end.")
    budget: float = Field(
        gt=0.0,
        le=1.0,
        description="Share of the 30-day error budget used in the longer window at which the alert fires.",
    )
    severity: Literal["critical", "warning"] = Field(
        "critical", description="Severity of the alert: critical pages, warning is a ticket."
    )

    @property
    def burn(self) -> BurnRate:
        """The burn rate alert with these windows."""
        return BurnRate(self.long, self.short, self.budget, self.severity)


_BURN_WINDOWS = tuple(BurnWindows(**asdict(burn)) for burn in BURNS)
_LIMITS = Limits()


class Slo(FrozenOptions):
    """Objective of one quantity: its mean over 30 days (1 - mean if low values are good)."""

    objective: Objective = Field(description="Objective: mean over 30 days (1 - mean where low values are good).")


class Alerts(FrozenOptions):
    """Links, windows, objectives and thresholds of the generated Prometheus rules."""

    job: str = Field(
        "ragwatch", pattern=r"^[^\s{}\"'\\]{1,200}$", description="Label `job` under which Prometheus scrapes ragwatch."
    )
    judge: str | None = Field(None, description="Judge of thresholds and objectives; null for the default judge.")
    runbooks: Url | None = Field(None, description="URL of the published deploy/runbooks; null for no links.")
    dashboards: Url | None = Field(None, description="URL of Grafana; null for no links.")
    windows: tuple[Seconds, ...] = Field(
        WINDOWS, min_length=2, description="Recorded windows; texts compare with the longest."
    )
    window: Seconds = Field(3600.0, description="Window of the alerts on thresholds and drift.")
    severity: dict[AlertName, Literal["critical", "warning", "info"]] = Field(
        default_factory=dict,
        description="Severity by alert instead of the default, such as {QualityDrift: warning}: critical pages, "
        "warning is a ticket, info notifies nobody.",
    )
    rises: dict[ShareSignal, StrictRatio | None] = Field(
        default_factory=dict,
        description="Rise of the share of answers with a signal of traffic from which on its alarm pages; null never. "
        "The default is 0.5 for abstentions, empty and repeated answers, empty retrievals, other_language.",
    )
    slos: dict[AnyQuantity, Slo] = Field(
        default_factory=dict,
        description="Objectives (SLOs) by quantity; none by default. Alerts fire on a high burn rate.",
    )
    route_slos: dict[Route, dict[AnyQuantity, Slo | None]] = Field(
        default_factory=dict, alias="slos.routes", description="Objectives by route; null is none."
    )
    burns: tuple[BurnWindows, ...] = _BURN_WINDOWS
    samples: int = Field(
        _LIMITS.samples, ge=2, alias="minimum_samples", description="Minimum effective sample size for quality alerts."
    )
    hold: Seconds = Field(_LIMITS.hold, description="`for` duration of most alerts.")
    coverage: StrictRatio = Field(_LIMITS.coverage, description="Minimum share of the draws that is judged.")
    stale: Seconds = Field(_LIMITS.stale, description="Maximum age of the newest scored answer.")
    silent: Seconds = Field(
        _LIMITS.silent,
        description="Maximum time without a record from a source, or without an answer on a route that usually answers "
        "then; a quarter of it from 120 answers an hour on.",
    )
    lag: Seconds = Field(_LIMITS.lag, description="Maximum age of the oldest unread record, and of the last digest.")
    rejects: StrictRatio = Field(
        _LIMITS.rejects, description="Maximum share of rejected records, and of requests that lack a part."
    )
    canaries: Seconds = Field(
        _LIMITS.canaries, description="Maximum delay of a canary run behind the schedule of its suite."
    )
    failures: StrictRatio = Field(_LIMITS.failures, description="Maximum share of failed calls of a judge.")
    budget: StrictRatio = Field(_LIMITS.budget, description="Minimum share of a judge's budget that remains.")
    unquoted: StrictRatio = Field(
        _LIMITS.unquoted, description="Maximum number of supported claims without a quote, per reading."
    )
    fooled: StrictRatio = Field(
        _LIMITS.fooled, description="Maximum share of known-bad answers (`judges[].known_bad`) that a judge accepts."
    )
    free: Bytes = Field(
        _LIMITS.free, description="Minimum free bytes on the disk of the state; see also store.min_free."
    )
    degraded: StrictRatio = Field(
        _LIMITS.degraded, description="Share of degraded canaries of a suite above which that pages."
    )
    canary_answers: StrictRatio = Field(
        _LIMITS.canary_answers, description="Fall of the mean score of canary answers below their median that pages."
    )
    canary_answers_floor: StrictRatio = Field(
        _LIMITS.canary_answers_floor,
        description="Mean correctness or faithfulness of canary answers below which that pages; 0 for none.",
    )

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
