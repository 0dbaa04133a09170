"""Model: every key of the configuration that is not a kind's own, with its default. Kinds keep theirs in `Options`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr

from ragwatch.config.alerts import Alerts
from ragwatch.config.drift import AnchorsOptions, DriftOptions
from ragwatch.config.gate import GateOptions, MetricKey
from ragwatch.config.labels import LabelsOptions
from ragwatch.config.text import duration_seconds, size_bytes
from ragwatch.core.budget import SpendingCap
from ragwatch.core.redaction.redactor import Redactor
from ragwatch.core.scores import Quantity


def _no_word(value: object) -> object:
    """YAML reads yes, no, on and off as true and false, and pydantic would read those as 1 and 0."""
    if isinstance(value, bool):
        raise ValueError(f"{str(value).lower()} is not a number; write one")  # noqa: TRY004 - pydantic wants ValueError
    return value


_Number = BeforeValidator(_no_word)
# A weight is 1 / probability: below one in a million, one answer would outweigh all others for months.
Probability = Annotated[float, Field(ge=1e-6, le=1.0), _Number]
Ratio = Annotated[float, Field(ge=0.0, le=1.0), _Number]
Seconds = Annotated[float, BeforeValidator(duration_seconds), Field(gt=0.0), _Number]
Bytes = Annotated[int, BeforeValidator(size_bytes), Field(gt=0), _Number]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]
# Prometheus takes any text as a label's value; left out are characters that need escapes in PromQL, addresses or YAML.
Route = Annotated[str, Field(pattern=r"^[A-Za-z0-9_./:{}~-]{1,128}$")]


MOST_PORT = 65535
HOUR, DAY = 3600.0, 86400.0
SHORTEST_WINDOW = 60.0  # windows are summed up by the minute


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def _address(value: str) -> str:
    port = int(value.rpartition(":")[2])
    if port > MOST_PORT:
        raise ValueError(f"port {port} does not exist; give one from 0 to {MOST_PORT}")
    return value


class WebOptions(_Model):
    """Where series and pages are served."""

    listen: Annotated[str, AfterValidator(_address)] = Field("127.0.0.1:10477", pattern=r"^.+:\d{1,5}$")
    external_url: str | None = Field(None, pattern=r"^https?://")


class SamplingOptions(_Model):
    """Which answers are judged."""

    probability: Probability = 0.1
    routes: dict[str, Probability] = Field(default_factory=dict)
    stratum: str | None = None
    strata: dict[str, Probability] = Field(default_factory=dict)


class JudgingOptions(_Model):
    """Limits of the judging loops."""

    timeout: Seconds = 60.0
    batch: int = Field(32, ge=1, le=1000)
    max_pending: int = Field(10_000, ge=1)
    max_age: Seconds = 6 * 3600.0
    shed_above: int | None = Field(None, ge=1)


def _not_empty(windows: dict[str, float]) -> dict[str, float]:
    if not windows:
        raise ValueError("is empty; give at least one window, such as 1h")
    for name, seconds in windows.items():
        if seconds < SHORTEST_WINDOW:
            raise ValueError(f"{name} is shorter than a minute; windows are summed up by the minute, give 1m or more")
    return windows


def _spans(value: object) -> object:
    return {str(each): duration_seconds(each) for each in value} if isinstance(value, list) else value


class EstimateOptions(_Model):
    """How figures are summed up."""

    windows: Annotated[dict[str, float], BeforeValidator(_spans), AfterValidator(_not_empty)] = Field(
        default_factory=lambda: {"15m": 900.0, "1h": 3600.0, "1d": 86400.0}
    )
    confidence: float = Field(0.95, gt=0.5, lt=1.0)
    every: Seconds = 5.0


class RetentionOptions(_Model):
    """How long verdicts stay in the store."""

    days: float = Field(30.0, gt=0.0)
    failing_days: float = Field(90.0, gt=0.0)
    bytes: Bytes = 2 * 1024**3


class RedactionOptions(_Model):
    """Whether personal data and secrets are taken out before anything is stored or sent."""

    enabled: bool = True
    salt: SecretStr | None = None

    def redactor(self) -> Redactor | None:
        """What takes them out; None where redaction is off."""
        if not self.enabled:
            return None
        return Redactor() if self.salt is None else Redactor(self.salt.get_secret_value().encode())


class LogOptions(_Model):
    """Our own log, on stderr."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["json", "text"] = "json"


class Settings(_Model):
    """Everything in the file that is not a kind."""

    state: Path = Path("/var/lib/ragwatch")
    web: WebOptions = WebOptions()
    routes: tuple[Route, ...] = ()
    sampling: SamplingOptions = SamplingOptions()
    judging: JudgingOptions = JudgingOptions()
    estimates: EstimateOptions = EstimateOptions()
    labels: LabelsOptions = LabelsOptions()
    thresholds: dict[MetricKey, Ratio] = Field(default_factory=dict)
    alerts: Alerts = Alerts()
    gate: GateOptions = GateOptions()
    drift: DriftOptions = DriftOptions()
    anchors: AnchorsOptions | None = None
    retention: RetentionOptions = RetentionOptions()
    redaction: RedactionOptions = RedactionOptions()
    drain: Seconds = 10.0
    log: LogOptions = LogOptions()

    @property
    def live_thresholds(self) -> dict[Quantity, float]:
        """Those that live traffic can be held against: it has no reference."""
        return {metric: worst for metric, worst in self.thresholds.items() if isinstance(metric, Quantity)}


class BudgetOptions(_Model):
    """What a judge may spend within any hour and any day (both slide)."""

    usd_per_hour: float | None = Field(None, gt=0.0)
    usd_per_day: float | None = Field(None, gt=0.0)
    tokens_per_hour: int | None = Field(None, gt=0)
    tokens_per_day: int | None = Field(None, gt=0)

    @property
    def caps(self) -> tuple[SpendingCap, ...]:
        """The same, for the arithmetic."""
        wanted = (
            SpendingCap(HOUR, self.usd_per_hour, self.tokens_per_hour),
            SpendingCap(DAY, self.usd_per_day, self.tokens_per_day),
        )
        return tuple(cap for cap in wanted if cap.usd is not None or cap.tokens is not None)


class JudgeOptions(_Model):
    """What every judge has beside the options of its kind."""

    name: Name
    probability: Probability = 1.0
    follows: Name | None = None
    unsure_probability: Probability | None = None
    quantities: tuple[Quantity, ...] | None = Field(None, min_length=1)
    budget: BudgetOptions = BudgetOptions()
    repeat: Ratio = 0.0
    known_bad: Ratio = 0.0
