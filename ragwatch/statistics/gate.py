"""Decides whether a version may be released: judged samples against thresholds give PASS, FAIL or NOT_ENOUGH_DATA.

For each metric the first matching row decides (for a metric that should be low, the sides are swapped):

| condition                                                                      | result     |
|--------------------------------------------------------------------------------|------------|
| no score                                                                       | unknown    |
| the whole interval of `MIN_CERTAIN_SCORES` scores or more is on the wrong side | FAIL       |
| fewer scores than `minimum_samples`                                            | unknown    |
| less than `coverage` of the samples were read                                  | unknown    |
| a level, or `strict`, and the threshold is inside the interval                 | unknown    |
| otherwise, by the value                                                        | FAIL, PASS |

What is compared is the level (`statistics.quantity_level`), whose interval contains the judge's own error; where
nothing is known of that error, or it is not asked for, the mean of the judge.

The verdict is FAIL if a blocking metric fails, or a metric fell since the baseline (`offline.regression`);
otherwise NOT_ENOUGH_DATA if one of these is unknown, or there are none; otherwise PASS. `severity: warn` is left out.

Test cases of retrieval (relevance judgements, no answer) and of generation (an answer to fixed contexts) may lie in one
file. If there are cases of retrieval, judged metrics of retrieval leave out rows without relevance judgements, whose
contexts were not retrieved. If no row has an answer, thresholds of judged metrics do not apply.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from ragwatch.model.evidence import ReferenceClaim
from ragwatch.model.quantities import LOW_IS_GOOD, Quantity, ReferenceQuantity
from ragwatch.model.quantity_row import GateSeverity
from ragwatch.statistics.compare import mean
from ragwatch.statistics.estimators.interval import Interval
from ragwatch.statistics.estimators.level import MOST_UNMEASURED, Level
from ragwatch.statistics.quantity_level import MOST_LABELS, KnownError, LevelCounts, ScoredAnswer, unmeasured_share
from ragwatch.statistics.question_scores import QuestionScores, question_of
from ragwatch.statistics.relevance import KS, CaseKind, RankedCase, RankingMetric, ranking_metrics
from ragwatch.statistics.scores import why_unknown
from ragwatch.statistics.set_scores import Metric, SetScores
from ragwatch.statistics.verdict import Judged, Verdict

MIN_CERTAIN_SCORES = 5  # below, the quantile of the interval is a lower bound only (see `interval.quantile`)

_INSIDE = "the threshold is inside the interval"


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
    """Rules of a gate."""

    limits: tuple[MetricLimit, ...]
    minimum_samples: int = 30  # number of scores that a metric needs to pass
    coverage: float = 0.9
    strict: bool = False
    confidence: float = 0.95
    tolerated_fall: float = 0.05  # since a baseline: need not be ruled out where none is seen beyond chance


@dataclass(frozen=True, slots=True)
class MetricFinding:
    """Result of one metric."""

    limit: MetricLimit
    estimate: Interval | None  # mean score; None without scores
    n: int
    passed: bool | None
    reason: str = ""  # why it is unknown, or that the decision is close; otherwise empty
    level: Level | None = None  # the level, which is compared instead of the mean; None where there is none
    applies: bool = True  # whether the verdict depends on it: a judged metric needs rows with an answer

    @property
    def compared(self) -> Interval | None:
        """What is compared with the threshold: the level, else the mean."""
        level = self.level
        return self.estimate if level is None else Interval(level.value, level.low, level.high)


@dataclass(frozen=True, slots=True)
class Figure:
    """Mean of a metric without a threshold, and the number of its scores."""

    metric: Metric
    estimate: Interval
    n: int


@dataclass(frozen=True, slots=True)
class GateReport:
    """Result of a gate."""

    findings: tuple[MetricFinding, ...]
    judged: int
    unread: Mapping[str, int]  # number of other samples by reason: rejected rows and unjudged answers
    stages: Mapping[str, int]  # number of judged samples by `Judged.counted_as`; unknown stages are left out
    figures: tuple[Figure, ...] = ()  # means of metrics without a threshold that need a reference or judgements
    kinds: Mapping[CaseKind, int] = field(default_factory=Counter)
    unranked: Mapping[str, int] = field(default_factory=Counter)  # test cases whose ranking is unknown, by reason
    routes: Mapping[str, tuple[Figure, ...]] = field(default_factory=dict)
    questions: tuple[QuestionScores, ...] = ()  # scores of each row in all these metrics
    # rows with a statement of the reference that no context supports, with all statements of it
    unsupported: tuple[tuple[QuestionScores, tuple[ReferenceClaim, ...]], ...] = ()
    # for each metric that must not fall since the baseline: False if it fell, None if that is unknown
    held: tuple[bool | None, ...] = ()

    @property
    def alone(self) -> bool:
        """Whether there are test cases of retrieval, and no row has an answer."""
        return set(+Counter(self.kinds)) == {CaseKind.RETRIEVAL}

    @property
    def blocking(self) -> list[MetricFinding]:
        """The findings that the verdict depends on."""
        return [one for one in self.findings if one.applies and one.limit.severity is GateSeverity.BLOCK]

    @property
    def verdict(self) -> GateDecision:
        """Verdict, by the rules in the docstring of the module."""
        decisive = [*(finding.passed for finding in self.blocking), *self.held]
        if False in decisive:
            return GateDecision.FAIL
        return GateDecision.NOT_ENOUGH_DATA if None in decisive or not decisive else GateDecision.PASS


def gate(
    verdicts: Sequence[Verdict],
    rules: GateRules,
    *,
    rejected: Mapping[str, int] | None = None,
    cases: Sequence[RankedCase] = (),
    ks: Sequence[int] = KS,
    error: KnownError | None = None,
) -> GateReport:
    """Checks judged samples and ranked test cases against the rules.

    Rejected rows count as unread: a truncated file must not pass. Without `error` the judge's means are compared; `ks`
    are the cut-offs of ranking metrics without a threshold.
    """
    judged = [verdict for verdict in verdicts if isinstance(verdict, Judged)]
    unread = Counter({str(reason): count for reason, count in (rejected or {}).items()})
    scores = SetScores(judged, cases, rejected=unread.total(), unjudged=len(verdicts) - len(judged))
    unread.update(str(verdict.reason) for verdict in verdicts if not isinstance(verdict, Judged))
    limited = {limit.metric for limit in rules.limits}
    others: list[Metric] = [metric for metric in (*ranking_metrics(ks), *ReferenceQuantity) if metric not in limited]
    figures = tuple(_known_figures(scores, others, rules.confidence))
    return GateReport(
        tuple(
            MetricFinding(limit, None, 0, None, "no row has an answer", applies=False)
            if cases and not verdicts and not isinstance(limit.metric, RankingMetric)
            else _finding(limit, scores, rules, error)
            for limit in rules.limits
        ),
        len(judged),
        unread,
        Counter(kind for verdict in judged if (kind := verdict.counted_as) is not None),
        figures=figures,
        kinds=Counter({CaseKind.GENERATION: len(verdicts) - scores.end_to_end}) + Counter(case.kind for case in cases),
        unranked=Counter(str(case.unknown) for case in cases if case.unknown is not None),
        routes=_routes(cases, rules, ks),
        questions=scores.by_question((*(limit.metric for limit in rules.limits), *(one.metric for one in figures))),
        unsupported=tuple(
            (question_of(verdict.draw.sample), claims)
            for verdict in judged
            if (claims := verdict.evidence.reference) and not all(claim.supported for claim in claims)
        ),
    )


def _known_figures(scores: SetScores, metrics: Sequence[Metric], confidence: float) -> Iterator[Figure]:
    for metric in metrics:
        known = scores.of(metric)
        estimate = mean(known, confidence)
        if estimate is not None:
            yield Figure(metric, estimate, len(known))


def _routes(cases: Sequence[RankedCase], rules: GateRules, ks: Sequence[int]) -> dict[str, tuple[Figure, ...]]:
    """Ranking metrics by route, also those with a threshold; empty if no route is known."""
    named = [limit.metric for limit in rules.limits if isinstance(limit.metric, RankingMetric)]
    metrics = list(dict.fromkeys((*named, *ranking_metrics(ks))))
    by_route: dict[str, list[RankedCase]] = {}
    for case in cases:
        if case.route:
            by_route.setdefault(case.route, []).append(case)
    return {
        route: tuple(_known_figures(SetScores((), part), metrics, rules.confidence))
        for route, part in sorted(by_route.items())
    }


def level_counts(judged: Iterable[Judged], metric: Metric, error: KnownError) -> LevelCounts | None:
    """Returns what the level of a metric is computed from; None where it has none."""
    return error.counts(metric, _scored(judged, metric)) if isinstance(metric, Quantity) else None


def _scored(judged: Iterable[Judged], metric: Quantity) -> list[ScoredAnswer]:
    return [
        ScoredAnswer(verdict.draw.sample.id, score, language=verdict.evidence.language)
        for verdict in judged
        if (score := verdict.scores.get(metric)) is not None
    ]


def _finding(limit: MetricLimit, scores: SetScores, rules: GateRules, error: KnownError | None) -> MetricFinding:
    known = scores.of(limit.metric)
    counts = None if error is None else level_counts(scores.samples(limit.metric), limit.metric, error)
    level = None if counts is None else counts.level(rules.confidence)
    finding = MetricFinding(limit, mean(known, rules.confidence), len(known), None, level=level)
    if finding.compared is None:
        return replace(finding, reason=_no_score_reason(scores, limit.metric))
    unmeasured = "" if error is None or level is not None else _unmeasured_reason(scores, limit.metric)
    if unmeasured:
        return replace(finding, reason=unmeasured)
    passed, reason = _decide(finding, finding.compared, rules, scores.coverage(limit.metric))
    if counts is not None and reason == _INSIDE:
        reason = _labels_reason(finding, finding.compared, counts, rules)
    return replace(finding, passed=passed, reason=reason)


def _decide(finding: MetricFinding, compared: Interval, rules: GateRules, coverage: float) -> tuple[bool | None, str]:
    """Whether a metric with scores passes, by the table in the docstring of the module, and why that is unknown."""
    limit, n = finding.limit, finding.n
    best, worst = (compared.low, compared.high) if limit.low_is_good else (compared.high, compared.low)
    if n >= MIN_CERTAIN_SCORES and not limit.is_met_by(best):
        return False, ""
    if n < rules.minimum_samples:
        return None, f"{n} scores, fewer than the {rules.minimum_samples} needed"
    if coverage < rules.coverage:
        return None, f"{coverage:.0%} of the samples could be read, less than {rules.coverage:.0%}"
    close = not limit.is_met_by(worst)
    if close and (rules.strict or finding.level is not None):
        return None, _INSIDE
    return limit.is_met_by(compared.value), f"close: {_INSIDE}" if close else ""


def _unmeasured_reason(scores: SetScores, metric: Metric) -> str:
    """Says that nothing is known of the judge's error in the languages of the answers; empty where that is not so."""
    answers = _scored(scores.samples(metric), metric) if isinstance(metric, Quantity) else []
    share = unmeasured_share(answers)
    if share <= MOST_UNMEASURED:
        return ""
    languages = ", ".join(sorted({one.language for one in answers if one.language is not None}))
    return (
        f"{share:.0%} of the answers are in languages in which the judge was not measured ({languages}): label answers "
        "with `ragwatch label` or by hand for --labels, or compare the judge's mean with --uncorrected"
    )


def _labels_reason(finding: MetricFinding, level: Interval, counts: LevelCounts, rules: GateRules) -> str:
    """Says that the judge's error could turn the verdict, and how many labels should settle it."""
    number, here = counts.further_labels(finding.limit.threshold, rules.confidence), finding.n - counts.count
    more = f"more than {MOST_LABELS}" if number is None else f"about {number}"
    absent = f", {here} of which are here," if here < (number or MOST_LABELS) else ""
    return (
        f"between {level.low:.2f} and {level.high:.2f} in people's terms, threshold {finding.limit.threshold:g}: "
        f"label {more} more answers{absent} with `ragwatch label` or by hand for --labels, "
        "or compare the judge's mean with --uncorrected"
    )


def _no_score_reason(scores: SetScores, metric: Metric) -> str:
    if isinstance(metric, RankingMetric):
        unranked = Counter(str(case.unknown) for case in scores.cases)
        return _counts(unranked) or "no row has relevance judgements (relevant_ids, relevant_texts or --qrels)"
    judged = scores.samples(metric)
    if scores.judged and not judged:
        return "the contexts of generation test cases are fixed, and the retrieval test cases have no answer"
    if not judged:
        return "no sample was judged"
    if isinstance(metric, ReferenceQuantity):
        if not any(verdict.draw.sample.reference for verdict in judged):
            return "no sample has a reference"
        return f"the judge {judged[0].reading.judge} does not read references"
    return _counts(Counter(str(why_unknown(verdict.evidence, metric)) for verdict in judged))


def _counts(reasons: Counter[str]) -> str:
    return ", ".join(f"{reason.replace('_', ' ')} in {count}" for reason, count in reasons.most_common())
