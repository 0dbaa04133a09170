"""Gate: may this version be released? Judged samples against thresholds: PASS, FAIL or NOT_ENOUGH_DATA.

For each metric, in this order (for one that ought to be small, the other way round):

| what is known                                                             | that metric |
|---------------------------------------------------------------------------|-------------|
| no score at all                                                           | unknown     |
| the whole interval is on the wrong side, of `CERTAIN` scores at least     | FAIL        |
| fewer scores than `minimum_samples`                                       | unknown     |
| less than `coverage` of the samples could be read                         | unknown     |
| `strict`, and the threshold is inside the interval                        | unknown     |
| otherwise the mean decides                                                | FAIL, PASS  |

The verdict is FAIL when a metric that blocks fails; else NOT_ENOUGH_DATA when one that blocks is unknown, or none
blocks; else PASS. A metric that only warns never changes it. No data is never PASS.
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
CERTAIN = 5  # below, the quantile behind the interval is a floor (see `interval.quantile`), and proves nothing


class GateSeverity(StrEnum):
    """What a failing metric does."""

    BLOCK = "block"
    WARN = "warn"


class GateDecision(StrEnum):
    """The verdict of a gate."""

    PASS = "PASS"  # noqa: S105 - no password
    FAIL = "FAIL"
    NOT_ENOUGH_DATA = "NOT_ENOUGH_DATA"


@dataclass(frozen=True, slots=True)
class MetricLimit:
    """What one metric must reach (or, where little is good, must not pass)."""

    metric: Metric
    threshold: float
    severity: GateSeverity = GateSeverity.BLOCK

    @property
    def low_is_good(self) -> bool:
        """Whether the threshold is an upper limit."""
        return self.metric in LOW_IS_GOOD

    def kept_by(self, value: float) -> bool:
        """Whether a value is on the right side; the threshold itself is."""
        return value <= self.threshold if self.low_is_good else value >= self.threshold


@dataclass(frozen=True, slots=True)
class GateRules:
    """How a gate decides.

    Attributes:
        limits: What is asked of each metric.
        minimum_samples: Scores without which a metric cannot pass.
        coverage: Share of the samples that must have been read, in [0, 1].
        strict: Whether the whole interval must be on the right side.
        confidence: Two-sided level of the intervals.
    """

    limits: tuple[MetricLimit, ...]
    minimum_samples: int = 30
    coverage: float = 0.9
    strict: bool = False
    confidence: float = 0.95


@dataclass(frozen=True, slots=True)
class MetricFinding:
    """One metric at the gate.

    Attributes:
        limit: What was asked.
        estimate: What was found; None without any score.
        n: Scores behind it.
        passed: Whether it passes; None when that is unknown.
        reason: Why it is unknown, or how close the decision is; empty where there is nothing to add.
    """

    limit: MetricLimit
    estimate: Interval | None
    n: int
    passed: bool | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class GateReport:
    """What a gate found.

    Attributes:
        findings: One for each limit, in their order.
        judged: Samples that were read.
        unread: Why others were not, with how many: rejected rows and unjudged answers.
        stages: Judged samples by the stage at fault; unknown stages are left out.
    """

    findings: tuple[MetricFinding, ...]
    judged: int
    unread: Mapping[str, int]
    stages: Mapping[Stage, int]

    @property
    def verdict(self) -> GateDecision:
        """See the module."""
        blocking = [each.passed for each in self.findings if each.limit.severity is GateSeverity.BLOCK]
        if False in blocking:
            return GateDecision.FAIL
        return GateDecision.NOT_ENOUGH_DATA if None in blocking or not blocking else GateDecision.PASS


def gate(verdicts: Sequence[Verdict], rules: GateRules, *, rejected: Mapping[str, int] | None = None) -> GateReport:
    """Hold judged samples against the rules.

    Args:
        verdicts: What became of each sample.
        rules: What is asked of them.
        rejected: Rows that were no samples, by reason. They count as unread: a torn file must not pass.
    """
    read = [each for each in verdicts if isinstance(each, Judged)]
    unread = Counter({str(reason): count for reason, count in (rejected or {}).items()})
    unread.update(str(each.reason) for each in verdicts if not isinstance(each, Judged))
    total = len(read) + unread.total()
    coverage = len(read) / total if total else 0.0
    return GateReport(
        tuple(_finding(limit, read, coverage, rules) for limit in rules.limits),
        len(read),
        unread,
        Counter(each.stage for each in read if each.stage is not None),
    )


def metric_of(name: str) -> Metric:
    """The metric of this name.

    >>> metric_of("context_recall")
    <ReferenceQuantity.CONTEXT_RECALL: 'context_recall'>

    Raises:
        ValueError: There is none.
    """
    return Quantity(name) if name in set(Quantity) else ReferenceQuantity(name)


def score_of(verdict: Judged, metric: Metric) -> float | None:
    """A judged sample's score; None where it is undefined or unread."""
    if isinstance(metric, Quantity):
        return verdict.scores[metric]
    return score_by_reference(verdict.evidence)[metric]


def _finding(limit: MetricLimit, read: Sequence[Judged], coverage: float, rules: GateRules) -> MetricFinding:
    scores = [score for each in read if (score := score_of(each, limit.metric)) is not None]
    found = mean(scores, rules.confidence)
    if found is None:
        return MetricFinding(limit, None, 0, None, _why_none(read, limit.metric))
    n, best = len(scores), found.low if limit.low_is_good else found.high
    if n >= CERTAIN and not limit.kept_by(best):
        return MetricFinding(limit, found, n, passed=False)
    if n < rules.minimum_samples:
        return MetricFinding(limit, found, n, None, f"{n} scores, fewer than the {rules.minimum_samples} needed")
    if coverage < rules.coverage:
        told = f"{coverage:.0%} of the samples could be read, less than {rules.coverage:.0%}"
        return MetricFinding(limit, found, n, None, told)
    close = not limit.kept_by(found.high if limit.low_is_good else found.low)
    if close and rules.strict:
        return MetricFinding(limit, found, n, None, "the threshold is inside the interval")
    passed = limit.kept_by(found.value)
    return MetricFinding(limit, found, n, passed, "close: the threshold is inside the interval" if close else "")


def _why_none(read: Sequence[Judged], metric: Metric) -> str:
    if not read:
        return "no sample was judged"
    if isinstance(metric, ReferenceQuantity):
        if not any(each.draw.sample.reference for each in read):
            return "no sample has a reference"
        return f"the judge {read[0].reading.judge} does not read references"
    reasons = Counter(str(why_unknown(each.evidence, metric)) for each in read)
    return ", ".join(f"{reason.replace('_', ' ')} in {count}" for reason, count in reasons.most_common())
