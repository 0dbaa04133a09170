"""Models of all configuration sections with fixed keys, and their defaults. Kinds define theirs in `Options`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, model_validator

from ragwatch.config.alerts import Alerts
from ragwatch.config.drift import AnchorsOptions, DriftOptions
from ragwatch.config.export import ExportOptions
from ragwatch.config.judge_options import Criteria, LabelsOptions
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
    must,
    split_routes,
)
from ragwatch.config.releases import LIVE_DEFAULTS, GateOptions, MetricKey, RolloutOptions
from ragwatch.config.segments import SegmentMap
from ragwatch.config.web import WebOptions
from ragwatch.formats.feedback import FeedbackReader
from ragwatch.model.quantities import Criterion, Quantity
from ragwatch.model.units import duration_seconds
from ragwatch.redaction.linear_time import check_linear_time
from ragwatch.statistics.feedback import MAX_NUMBER, Scale
from ragwatch.statistics.segments import Segments
from ragwatch.statistics.set_scores import Metric

if TYPE_CHECKING:
    from ragwatch.redaction.redactor import Redactor

DRAW_LEASE_SECONDS = 300.0
MIN_WINDOW_SECONDS = 60.0  # windows are aggregated by the minute
MAX_WINDOW_SECONDS = 3650 * 86400.0  # with sums of each minute in memory


class SamplingOptions(FrozenOptions):
    """Inclusion probabilities: which answers are judged."""

    probability: Probability = Field(0.1, description="Share of the answers that is judged (inclusion probability).")
    routes: dict[str, Probability] = Field(
        default_factory=dict, description="The share by route, such as {support: 1.0}."
    )
    stratum: str | None = Field(
        None, description="Metadata key whose value is the stratum, such as customer tier or language."
    )
    strata: dict[str, Probability] = Field(
        default_factory=dict, description="The share by stratum; it takes precedence over that by route."
    )
    trust_canary_mark: bool = Field(
        default=False,
        description="true: any value of metadata.canary marks an answer to a canary, which is left out of traffic: a "
        "client that writes it hides its answer. false: only the header X-Ragwatch-Canary of our probes does.",
    )


class JudgingOptions(FrozenOptions):
    """Limits of the judging loops."""

    timeout: Seconds = Field(
        60.0, description="Time limit per sample; a sample that takes longer is unjudged (`timeout`)."
    )
    batch: int = Field(32, ge=1, le=1000, description="Draws taken from the queue at once.")
    max_pending: int = Field(
        10_000,
        ge=1,
        description="Pending draws of the default judge above which reading from the sources stops. Other judges with "
        "as many get a lower probability instead.",
    )
    max_age: Seconds = Field(
        6 * 3600.0,
        description="A draw that has been pending for longer (outage, exhausted budget) is unjudged (`expired`).",
    )
    lease: Seconds | None = Field(
        None,
        description="Time after which the draws of a killed worker can be read again (store.kind: postgres), not below "
        "`timeout`; null for 5m.",
    )
    shed_above: int | None = Field(
        None,
        ge=1,
        description="Each time the number of pending draws grows by this amount, the sampling probability is halved. "
        "It is stored with each draw, so that estimates stay unbiased.",
    )

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
        default_factory=lambda: {"15m": 900.0, "1h": 3600.0, "1d": 86400.0},
        description="Sliding windows of the gauges (label `window`).",
    )
    confidence: float = Field(0.95, gt=0.5, le=0.9999, description="Two-sided confidence level of the intervals.")
    every: Seconds = Field(5.0, description="Interval between two digests: the maximum age of a gauge.")


class RetentionOptions(FrozenOptions):
    """Age and size at which verdicts are deleted from the store."""

    days: float = Field(
        30.0,
        gt=0.0,
        description="Age in days at which verdicts and their samples are deleted. Labels are kept, without the text of "
        "the sample.",
    )
    failing_days: float = Field(
        90.0, gt=0.0, description="The same for verdicts with a faulty stage, and for unjudged draws."
    )
    bytes: Annotated[Bytes, Field(gt=0)] = Field(
        2 * 1024**3,
        description="Size of the database above which the oldest verdicts are deleted early, good ones first.",
    )
    trend_days: float = Field(
        90.0,
        gt=0.0,
        description="Age in days at which the sums that charts are drawn from are deleted. They contain no text.",
    )


class RedactionRuleOptions(FrozenOptions):
    """A rule of redaction of one's own."""

    name: str = Field(pattern=r"^[a-z][a-z0-9-]{0,40}$", description="Name of the rule, which replacement tokens show.")
    pattern: Annotated[str, must(check_linear_time, "is no pattern")] = Field(
        description="Regular expression without lookaround, backreferences, unbounded or nested repetitions."
    )
    checksum: Literal["luhn", "verhoeff", "mod97", "mod11", "mod11_10"] | None = Field(
        None, description="Checksum that the digits must pass."
    )
    context: tuple[str, ...] = Field(
        default=(), max_length=20, description="One of these words must stand within 60 characters."
    )


class RedactionOptions(FrozenOptions):
    """Redaction of PII and secrets before a text is stored or sent."""

    enabled: bool = Field(
        default=True,
        description="Replace personal data and secrets before a text is stored or sent. docs/redaction.md lists the "
        "rules; `ragwatch redact FILE` shows what they take.",
    )
    salt: SecretStr | None = Field(
        None,
        description="Secret key of the replacement tokens, such as file:salt; without one, short secrets can be "
        "guessed. Do not change it: with another one the same value becomes another token.",
    )
    ids: bool = Field(
        default=False,
        description="true: redact ids of samples, contexts and traces too. Links to traces and documents then lead "
        "nowhere.",
    )
    rules: tuple[RedactionRuleOptions, ...] = Field(default=(), max_length=50)

    def redactor(self) -> Redactor | None:
        """Build the redactor; None if redaction is disabled."""
        if not self.enabled:
            return None
        # Compiling the patterns takes a tenth of a second, which commands that redact nothing need not wait for.
        from ragwatch.redaction import redactor, rules  # noqa: PLC0415

        salt = redactor.DEFAULT_SALT if self.salt is None else self.salt.get_secret_value().encode()
        own = (rules.custom_rule(rule.name, rule.pattern, rule.checksum, rule.context) for rule in self.rules)
        return redactor.Redactor(salt, tuple(own), ids=self.ids)


class FeedbackOptions(FrozenOptions):
    """Where records have the feedback of users, and what the numbers of ratings mean."""

    field: str = Field(
        "",
        pattern=r"^([^.]+(\.[^.]+)*)?$",
        description="Path of the field with the feedback of users, such as metadata.csat, instead of the usual ones "
        "(thumbs, rating, stars, task_success ...).",
    )
    worst: float | None = Field(
        None,
        ge=-MAX_NUMBER,
        le=MAX_NUMBER,
        description='Worst value on the scale of ratings, such as 1; null: only ratings such as "4/5" are read.',
    )
    best: float | None = Field(None, ge=-MAX_NUMBER, le=MAX_NUMBER, description="Best value on that scale, such as 5.")

    @model_validator(mode="after")
    def _check_scale(self) -> Self:
        if (self.worst is None) != (self.best is None) or (self.worst is not None and self.worst == self.best):
            raise ValueError("has half a scale; give two different numbers `worst` and `best`, or neither for thumbs")
        return self

    def reader(self) -> FeedbackReader:
        """Build the reader of feedback."""
        scale = None if self.worst is None or self.best is None else Scale(self.worst, self.best)
        return FeedbackReader(self.field, scale)


class AuditOptions(FrozenOptions):
    """Log of who has read which sample and who has changed what."""

    file: (
        Annotated[FilePath, must(lambda path: path.name, "'{value}' is a directory; write the path of a file")] | None
    ) = Field(
        None,
        description="File of JSON lines, chained by hashes, without texts: who has read which sample and who has "
        "changed what. null: none. While it cannot be written, samples are not shown.",
    )


class EventOptions(FrozenOptions):
    """Events that charts and dashboards mark."""

    metadata: tuple[Annotated[str, Field(min_length=1, max_length=100)], ...] = Field(
        default=(),
        max_length=10,
        description="Metadata keys that name a version, such as [release, model]. The first answer with a new value "
        "becomes an event: at most 20 of one key in a day.",
    )


class LogOptions(FrozenOptions):
    """Log of ragwatch itself, on stderr."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="Lowest level of messages in the log of ragwatch itself."
    )
    format: Literal["json", "text"] = Field("json", description="json (one object per line) or text.")


class Settings(FrozenOptions):
    """All sections of the configuration file except those of kinds."""

    state: FilePath = Field(
        Path("/var/lib/ragwatch"),
        description="State directory: database and lock file. Used by one process only (mode 0700), on a local disk, "
        "not NFS.",
    )
    web: WebOptions = WebOptions()
    routes: tuple[Route, ...] = Field(
        (),
        description='Allowed values of the label `route`; any other route becomes "other", which bounds the number of '
        "series. A path such as /v1/items/{id} may be a route.",
    )
    sampling: SamplingOptions = SamplingOptions()
    judging: JudgingOptions = JudgingOptions()
    estimates: EstimateOptions = EstimateOptions()
    criteria: Criteria = ()
    segments: SegmentMap = Field(
        default_factory=dict,
        description="Estimates by values of a metadata key, or of a path such as user.tier: {release: [v1, v2]}. Other "
        'values count as "other"; an answer without the key is left out. At most 20,000 series.',
    )
    labels: LabelsOptions = LabelsOptions()
    thresholds: dict[MetricKey, Ratio] = Field(
        default_factory=lambda: dict(LIVE_DEFAULTS),
        description="Worst acceptable mean of each metric, for pages, alerts and `ragwatch gate`; a maximum for "
        "contradiction and top_ranked_ignored, which never pages. {} is no threshold.",
    )
    route_thresholds: dict[Route, dict[AnyQuantity, Ratio | None]] = Field(
        default_factory=dict,
        alias="thresholds.routes",
        description="Thresholds by route, such as {support: {faithfulness: 0.6}}; they take precedence, and null is "
        "none. `ragwatch rules --from-baseline` proposes them.",
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
    drain: Seconds = Field(10.0, description="Time limit for running steps after SIGTERM.")
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
