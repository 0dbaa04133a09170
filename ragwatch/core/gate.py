"""Decides whether a version may be released: judged samples against thresholds give PASS, FAIL or NOT_ENOUGH_DATA.

For each metric the first matching row decides (for a metric that should be low, the sides are swapped):

| condition                                                                      | result     |
|--------------------------------------------------------------------------------|------------|
| no score                                                                       | unknown    |
| the whole interval of `MIN_CERTAIN_SCORES` scores or more is on the wrong side | FAIL       |
| fewer scores than `minimum_samples`                                            | unknown    |
| less than `coverage` of the samples were read                                  | unknown    |
| `strict`, and the threshold is inside the interval                             | unknown    |
| otherwise, by the mean                                                         | FAIL, PASS |

The verdict is FAIL if a blocking metric fails; otherwise NOT_ENOUGH_DATA if a blocking metric is unknown, or no metric
blocks; otherwise PASS. Metrics of severity `warn` do not change it. Without data the verdict is never PASS.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ragwatch.core.compare import Interval, mean
from ragwatch.core.reference import ReferenceQuantity, score_by_reference
from ragwatch.core.scores import LOW_IS_GOOD, Quantity, why_unknown
from ragwatch.core.stage import Stage
from ragwatch.core.verdict import Judged, Verdict

Metric = Quantity | ReferenceQuantity
MIN_CERTAIN_SCORES = 5  # below, the quantile of the interval is a lower bound only (see `interval.quantile`)


class GateSeverity(StrEnum):
    """Effect of a failing metric."""

    BLOCK = "block"
    WARN = "warn"


class GateDecision(StrEnum):
    """Verdict of a gate."""

    PASS = "PASS"  # noqa: S105 - no password
    FAIL = "FAIL"
    NOT_ENOUGH_DATA = "NOT_ENOUGH_DATA"


@dataclass(frozen=True, slots=True)
class MetricLimit:
    """Threshold of one metric: a lower limit, or an upper limit if low values are good."""

    metric: Metric
    threshold: float
    severity: GateSeverity = GateSeverity.BLOCK

    @property
    def low_is_good(self) -> bool:
        """Whether the threshold is an upper limit."""
        return self.metric in LOW_IS_GOOD

    def is_met_by(self, value: float) -> bool:
        """Returns whether a value is on the right side of the threshold, or equal to it."""
        return value <= self.threshold if self.low_is_good else value >= self.threshold


@dataclass(frozen=True, slots=True)
class GateRules:
    """Rules of a gate.

    Attributes:
        limits: Threshold of each metric.
        minimum_samples: Number of scores that a metric needs to pass.
        coverage: Share of the samples that must have been read, in [0, 1].
        strict: Whether the whole interval must be on the right side of the threshold.
        confidence: Two-sided level of the intervals.
    """

    limits: tuple[MetricLimit, ...]
    minimum_samples: int = 30
    coverage: float = 0.9
    strict: bool = False
    confidence: float = 0.95


@dataclass(frozen=True, slots=True)
class MetricFinding:
    """Result of one metric.

    Attributes:
        limit: Threshold.
        estimate: Mean score; None without scores.
        n: Number of scores.
        passed: Whether the metric passes; None if that is unknown.
        reason: Why it is unknown, or that the decision is close; otherwise empty.
    """

    limit: MetricLimit
    estimate: Interval | None
    n: int
    passed: bool | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class GateReport:
    """Result of a gate.

    Attributes:
        findings: One finding for each limit, in their order.
        judged: Number of judged samples.
        unread: Number of other samples by reason: rejected rows and unjudged answers.
        stages: Number of judged samples by the stage at fault; unknown stages are left out.
    """

    findings: tuple[MetricFinding, ...]
    judged: int
    unread: Mapping[str, int]
    stages: Mapping[Stage, int]

    @property
    def verdict(self) -> GateDecision:
        """Verdict, by the rules in the docstring of the module."""
        blocking = [finding.passed for finding in self.findings if finding.limit.severity is GateSeverity.BLOCK]
        if False in blocking:
            return GateDecision.FAIL
        return GateDecision.NOT_ENOUGH_DATA if None in blocking or not blocking else GateDecision.PASS


def gate(verdicts: Sequence[Verdict], rules: GateRules, *, rejected: Mapping[str, int] | None = None) -> GateReport:
    """Checks judged samples against the rules.

    Args:
        verdicts: Verdict of each sample.
        rules: Rules.
        rejected: Number of rows that are not samples, by reason. They count as unread: a truncated file must not pass.
    """
    judged = [verdict for verdict in verdicts if isinstance(verdict, Judged)]
    unread = Counter({str(reason): count for reason, count in (rejected or {}).items()})
    unread.update(str(verdict.reason) for verdict in verdicts if not isinstance(verdict, Judged))
    total = len(judged) + unread.total()
    coverage = len(judged) / total if total else 0.0
    return GateReport(
        tuple(_finding(limit, judged, coverage, rules) for limit in rules.limits),
        len(judged),
        unread,
        Counter(verdict.stage for verdict in judged if verdict.stage is not None),
    )


def metric_of(name: str) -> Metric:
    """Returns the metric of this name.

    >>> metric_of("context_recall")
    <ReferenceQuantity.CONTEXT_RECALL: 'context_recall'>

    Raises:
        ValueError: There is no such metric.
    """
    return Quantity(name) if name in set(Quantity) else ReferenceQuantity(name)


def score_of(verdict: Judged, metric: Metric) -> float | None:
    """Returns the score of a judged sample; None if it is undefined or unread."""
    if isinstance(metric, Quantity):
        return verdict.scores[metric]
    return score_by_reference(verdict.evidence)[metric]


def _finding(limit: MetricLimit, judged: Sequence[Judged], coverage: float, rules: GateRules) -> MetricFinding:
    scores = [score for verdict in judged if (score := score_of(verdict, limit.metric)) is not None]
    estimate = mean(scores, rules.confidence)
    if estimate is None:
        return MetricFinding(limit, None, 0, None, _no_score_reason(judged, limit.metric))
    n, best = len(scores), estimate.low if limit.low_is_good else estimate.high
    if n >= MIN_CERTAIN_SCORES and not limit.is_met_by(best):
        return MetricFinding(limit, estimate, n, passed=False)
    if n < rules.minimum_samples:
        return MetricFinding(limit, estimate, n, None, f"{n} scores, fewer than the {rules.minimum_samples} needed")
    if coverage < rules.coverage:
        reason = f"{coverage:.0%} of the samples could be read, less than {rules.coverage:.0%}"
        return MetricFinding(limit, estimate, n, None, reason)
    close = not limit.is_met_by(estimate.high if limit.low_is_good else estimate.low)
    if close and rules.strict:
        return MetricFinding(limit, estimate, n, None, "the threshold is inside the interval")
    passed = limit.is_met_by(estimate.value)
    return MetricFinding(limit, estimate, n, passed, "close: the threshold is inside the interval" if close else "")


def _no_score_reason(judged: Sequence[Judged], metric: Metric) -> str:
    if not judged:
        return "no sample was judged"
    if isinstance(metric, ReferenceQuantity):
        if not any(verdict.draw.sample.reference for verdict in judged):
            return "no sample has a reference"
        return f"the judge {judged[0].reading.judge} does not read references"
    reasons = Counter(str(why_unknown(verdict.evidence, metric)) for verdict in judged)
    return ", ".join(f"{reason.replace('_', ' ')} in {count}" for reason, count in reasons.most_common())
