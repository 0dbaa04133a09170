"""Alerts: what `ragwatch rules` writes. The daemon reads none of it; a reload has nothing to do with it."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from ragwatch.config.text import duration_seconds, size_bytes
from ragwatch.core.scores import Quantity
from ragwatch.rules import BurnRate, Limits, impossible
from ragwatch.rules.burn import BURNS
from ragwatch.rules.plan import WINDOWS

Url = Annotated[str, Field(pattern=r"^https?://[^\s{}\"'\\]+$"), AfterValidator(lambda value: value.rstrip("/"))]
Seconds = Annotated[float, BeforeValidator(duration_seconds), Field(gt=0.0)]
Bytes = Annotated[int, BeforeValidator(size_bytes), Field(ge=0)]
Ratio = Annotated[float, Field(ge=0.0, le=1.0, strict=True)]
Objective = Annotated[float, Field(gt=0.0, lt=1.0, strict=True)]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class BurnWindows(_Model):
    """Two windows, and the share of thirty days' error budget that may go within the longer one."""

    long: Seconds
    short: Seconds
    budget: float = Field(gt=0.0, le=1.0)
    severity: Literal["critical", "warning"] = "critical"

    @property
    def burn(self) -> BurnRate:
        """The same, for the arithmetic."""
        return BurnRate(self.long, self.short, self.budget, self.severity)


_PAIRS = tuple(
    BurnWindows(long=each.long, short=each.short, budget=each.budget, severity=each.severity) for each in BURNS
)
_LIMITS = Limits()


class Slo(_Model):
    """What is owed for one quantity: its mean over thirty days (1 - mean where little is good)."""

    objective: Objective


class Alerts(_Model):
    """Rules for Prometheus: links, windows, objectives, and where things begin to be bad."""

    job: str = Field("ragwatch", pattern=r"^[^\s{}\"'\\]{1,200}$")
    judge: str | None = None
    runbooks: Url | None = None
    dashboards: Url | None = None
    windows: tuple[Seconds, ...] = Field(WINDOWS, min_length=2)
    window: Seconds = 3600.0
    slos: dict[Quantity, Slo] = Field(default_factory=dict)
    burns: tuple[BurnWindows, ...] = _PAIRS
    minimum_samples: int = Field(_LIMITS.samples, ge=2)
    hold: Seconds = _LIMITS.hold
    coverage: Ratio = _LIMITS.coverage
    stale: Seconds = _LIMITS.stale
    silent: Seconds = _LIMITS.silent
    lag: Seconds = _LIMITS.lag
    rejects: Ratio = _LIMITS.rejects
    canaries: Seconds = _LIMITS.canaries
    failures: Ratio = _LIMITS.failures
    budget: Ratio = _LIMITS.budget
    unquoted: Ratio = _LIMITS.unquoted
    free: Bytes = _LIMITS.free

    @model_validator(mode="after")
    def _can_be(self) -> Self:
        if list(self.windows) != sorted(set(self.windows)):
            raise ValueError("windows must rise, such as [15m, 1h, 1d]")
        if self.window not in self.windows or self.window == self.windows[-1]:
            raise ValueError("window must be one of windows, and not the longest, which is the baseline")
        for pair in self.burns if self.slos else ():
            if not {pair.long, pair.short} <= set(self.windows) or pair.short >= pair.long:
                raise ValueError("burns: long and short must be of windows, and short the shorter one")
        for quantity, slo in self.slos.items():
            for index, pair in enumerate(self.burns):
                why = impossible(slo.objective, pair.burn)
                if why is not None:
                    raise ValueError(f"slos.{quantity}: burns[{index}] {why}")
        return self
