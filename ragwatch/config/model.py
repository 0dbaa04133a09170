"""Models of all configuration sections with fixed keys, and their defaults. Kinds define theirs in `Options`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, model_validator

from ragwatch.config.alerts import Alerts
from ragwatch.config.criteria import Criteria
from ragwatch.config.drift import AnchorsOptions, DriftOptions
from ragwatch.config.export import ExportOptions
from ragwatch.config.gate import LIVE_DEFAULTS, GateOptions, MetricKey
from ragwatch.config.labels import LabelsOptions
from ragwatch.config.options import (
    AnyQuantity,
    Bytes,
    FilePath,
    FrozenOptions,
    InnerError,
    Probability,
    Ratio,
    Route,
    Seconds,
    split_routes,
)
from ragwatch.config.rollout import RolloutOptions
from ragwatch.config.segments import SegmentMap
from ragwatch.config.web import WebOptions
from ragwatch.core.criteria import Criterion
from ragwatch.core.feedback import MAX_NUMBER, Scale
from ragwatch.core.segments import Segments
from ragwatch.core.set_scores import Metric
from ragwatch.core.units import duration_seconds
from ragwatch.formats.feedback import FeedbackReader
from ragwatch.model.quantities import Quantity
from ragwatch.redaction.linear_time import check_linear_time

if TYPE_CHECKING:
    from ragwatch.redaction.redactor import Redactor

DRAW_LEASE_SECONDS = 300.0
MIN_WINDOW_SECONDS = 60.0  # windows are aggregated by the minute
MAX_WINDOW_SECONDS = 3650 * 86400.0  # with sums of each minute in memory


class SamplingOptions(FrozenOptions):
    """Inclusion probabilities: which answers are judged."""

    probability: Probability = 0.1
    routes: dict[str, Probability] = Field(default_factory=dict)
    stratum: str | None = None
    strata: dict[str, Probability] = Field(default_factory=dict)
    trust_canary_mark: bool = False


class JudgingOptions(FrozenOptions):
    """Limits of the judging loops."""

    timeout: Seconds = 60.0
    batch: int = Field(32, ge=1, le=1000)
    max_pending: int = Field(10_000, ge=1)
    max_age: Seconds = 6 * 3600.0
    lease: Seconds | None = None
    shed_above: int | None = Field(None, ge=1)

    @model_validator(mode="after")
    def _check_lease(self) -> Self:
        if self.lease is not None and self.lease < self.timeout:
            raise InnerError("lease: is shorter than timeout, so that a draw could be read and paid twice; give 5m")
        return self

    @property
    def lease_seconds(self) -> float:
        """How long a draw stays with a worker that does not read it."""
        return max(DRAW_LEASE_SECONDS, self.timeout) if self.lease is None else self.lease


def _check_windows(windows: dict[str, float]) -> dict[str, float]:
    if not windows:
        raise ValueError("is empty; give at least one window, such as 1h")
    for name, seconds in windows.items():
        if seconds < MIN_WINDOW_SECONDS:
            raise ValueError(f"{name} is shorter than a minute; windows are summed up by the minute, give 1m or more")
        if seconds > MAX_WINDOW_SECONDS:
            raise ValueError(f"{name} is longer than ten years; give 3650d or less")
    return windows


def _parse_windows(value: object) -> object:
    return {str(window): duration_seconds(window) for window in value} if isinstance(value, list) else value


class EstimateOptions(FrozenOptions):
    """Windows, intervals and schedule of the estimates."""

    windows: Annotated[dict[str, float], BeforeValidator(_parse_windows), AfterValidator(_check_windows)] = Field(
        default_factory=lambda: {"15m": 900.0, "1h": 3600.0, "1d": 86400.0}
    )
    confidence: float = Field(0.95, gt=0.5, le=0.9999)
    every: Seconds = 5.0


class RetentionOptions(FrozenOptions):
    """Age and size at which verdicts are deleted from the store."""

    days: float = Field(30.0, gt=0.0)
    failing_days: float = Field(90.0, gt=0.0)
    bytes: Annotated[Bytes, Field(gt=0)] = 2 * 1024**3
    trend_days: float = Field(90.0, gt=0.0)


def _check_pattern(pattern: str) -> str:
    check_linear_time(pattern)
    return pattern


class RedactionRuleOptions(FrozenOptions):
    """A rule of redaction of one's own."""

    name: str = Field(pattern=r"^[a-z][a-z0-9-]{0,40}$")
    pattern: Annotated[str, AfterValidator(_check_pattern)]
    checksum: Literal["luhn", "verhoeff", "mod97", "mod11", "mod11_10"] | None = None
    context: tuple[str, ...] = Field(default=(), max_length=20)


class RedactionOptions(FrozenOptions):
    """Redaction of PII and secrets before a text is stored or sent."""

    enabled: bool = True
    salt: SecretStr | None = None
    ids: bool = False
    rules: tuple[RedactionRuleOptions, ...] = Field(default=(), max_length=50)

    def redactor(self) -> Redactor | None:
        """Build the redactor; None if redaction is disabled."""
        if not self.enabled:
            return None
        # Compiling the patterns takes a tenth of a second, which commands that redact nothing need not wait for.
        from ragwatch.redaction.custom import custom_rule  # noqa: PLC0415
        from ragwatch.redaction.redactor import DEFAULT_SALT, Redactor  # noqa: PLC0415

        salt = DEFAULT_SALT if self.salt is None else self.salt.get_secret_value().encode()
        rules = (custom_rule(rule.name, rule.pattern, rule.checksum, rule.context) for rule in self.rules)
        return Redactor(salt, tuple(rules), ids=self.ids)


class FeedbackOptions(FrozenOptions):
    """Where records have the feedback of users, and what the numbers of ratings mean."""

    field: str = Field("", pattern=r"^([^.]+(\.[^.]+)*)?$")
    worst: float | None = Field(None, ge=-MAX_NUMBER, le=MAX_NUMBER)
    best: float | None = Field(None, ge=-MAX_NUMBER, le=MAX_NUMBER)

    @model_validator(mode="after")
    def _check_scale(self) -> Self:
        if (self.worst is None) != (self.best is None) or (self.worst is not None and self.worst == self.best):
            raise ValueError("has half a scale; give two different numbers `worst` and `best`, or neither for thumbs")
        return self

    def reader(self) -> FeedbackReader:
        """Build the reader of feedback."""
        scale = None if self.worst is None or self.best is None else Scale(self.worst, self.best)
        return FeedbackReader(self.field, scale)


def _check_file(path: Path) -> Path:
    if not path.name:
        raise ValueError(f"{str(path)!r} is a directory; write the path of a file")
    return path


class AuditOptions(FrozenOptions):
    """Log of who has read which sample and who has changed what."""

    file: Annotated[FilePath, AfterValidator(_check_file)] | None = None


class EventOptions(FrozenOptions):
    """Events that charts and dashboards mark."""

    metadata: tuple[Annotated[str, Field(min_length=1, max_length=100)], ...] = Field(default=(), max_length=10)


class LogOptions(FrozenOptions):
    """Log of ragwatch itself, on stderr."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["json", "text"] = "json"


class Settings(FrozenOptions):
    """All sections of the configuration file except those of kinds."""

    state: FilePath = Path("/var/lib/ragwatch")
    web: WebOptions = WebOptions()
    routes: tuple[Route, ...] = ()
    sampling: SamplingOptions = SamplingOptions()
    judging: JudgingOptions = JudgingOptions()
    estimates: EstimateOptions = EstimateOptions()
    criteria: Criteria = ()
    segments: SegmentMap = Field(default_factory=dict)
    labels: LabelsOptions = LabelsOptions()
    thresholds: dict[MetricKey, Ratio] = Field(default_factory=lambda: dict(LIVE_DEFAULTS))
    route_thresholds: dict[Route, dict[AnyQuantity, Ratio | None]] = Field(
        default_factory=dict, alias="thresholds.routes"
    )
    alerts: Alerts = Alerts()
    gate: GateOptions = GateOptions()
    rollout: RolloutOptions | None = None
    drift: DriftOptions = DriftOptions()
    anchors: AnchorsOptions | None = None
    retention: RetentionOptions = RetentionOptions()
    redaction: RedactionOptions = RedactionOptions()
    feedback: FeedbackOptions = FeedbackOptions()
    export: ExportOptions = ExportOptions()
    events: EventOptions = EventOptions()
    drain: Seconds = 10.0
    audit: AuditOptions = AuditOptions()
    log: LogOptions = LogOptions()

    @model_validator(mode="before")
    @classmethod
    def _split_thresholds(cls, data: object) -> object:
        return split_routes(data, "thresholds")

    @property
    def criterion_rules(self) -> tuple[Criterion, ...]:
        """The criteria that LLM judges read."""
        return tuple(criterion.build() for criterion in self.criteria)

    @property
    def criterion_names(self) -> frozenset[str]:
        """Names of the criteria."""
        return frozenset(criterion.name for criterion in self.criteria)

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """All quantities: those of ragwatch, and the criteria."""
        return (*Quantity, *(criterion.quantity for criterion in self.criterion_rules))

    @property
    def segment_rules(self) -> Segments:
        """The segments by which estimates are split."""
        return Segments(self.segments)

    @property
    def gate_thresholds(self) -> dict[Metric, float] | None:
        """The thresholds that the configuration names, which may be none; None without this section."""
        return self.thresholds if "thresholds" in self.model_fields_set else None

    @property
    def live_thresholds(self) -> dict[Quantity, float]:
        """Thresholds of metrics that need no reference answer: live traffic has none."""
        return {metric: threshold for metric, threshold in self.thresholds.items() if isinstance(metric, Quantity)}

    def stated_thresholds(self, route: str) -> dict[Quantity, float]:
        """Thresholds of a route that the configuration names and whose alert pages.

        The defaults are left out: a route that is usually worse than one of them would never learn its baseline.
        """
        named = self.gate_thresholds or {}
        stated = {metric: value for metric, value in named.items() if isinstance(metric, Quantity)}
        own = {**stated, **self.route_thresholds.get(route, {})}
        return {quantity: value for quantity, value in own.items() if value is not None and not quantity.row.own_alert}
