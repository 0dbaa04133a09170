"""Decides a staged rollout of a variant B against A: offline ranking, judged answers, then a share of live traffic.

The first two stages stop a variant that is significantly worse. The third one looks again after every answer, so it
uses confidence sequences (`statistics.drift.bands`), valid at all looks at once: one for each variant and metric,
whose difference decides. The risk 1 - confidence is divided by the number of metrics and by two variants.

Live, B passes if a loss above the margin is excluded, and is stopped if it is proven worse. The user metric decides
where feedback is logged, since a variant can win offline and lose with users; scores of the judge can still stop it.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import fsum
from typing import Any, NamedTuple

from ragwatch.model.quantities import Quantity
from ragwatch.statistics.compare import MIN_QUESTIONS, Conclusion, Difference, PairedScore, key_of, match_keys, paired
from ragwatch.statistics.compare_line import Comparison
from ragwatch.statistics.drift.bands import HedgedBand
from ragwatch.statistics.estimators.interval import Interval
from ragwatch.statistics.ranking import Ranking, ndcg_at, recall_at, reciprocal_rank


class RolloutStep(StrEnum):
    """Stages of a rollout, in order."""

    OFFLINE = "offline"
    JUDGED = "judged"
    LIVE = "live"


class Outcome(StrEnum):
    """Outcome of a stage."""

    PASSED = "passed"
    STOPPED = "stopped"
    UNDECIDED = "undecided"
    NOT_RUN = "not_run"


class Decision(StrEnum):
    """What a metric says about B."""

    PASSED = "passed"
    WORSE = "worse"
    OPEN = "open"


class Measured(NamedTuple):
    """One metric of a stage."""

    name: str
    a: float | None
    b: float | None
    change: Interval | None  # b - A with its interval; None if either is unknown
    n_a: int  # answers of A with a value; where a stage is looked at once, questions of the smaller side
    n_b: int  # the same of B
    decision: Decision  # what it says about B
    decides: bool = True  # whether the stage needs it to pass; any metric can stop the stage


@dataclass(frozen=True, slots=True)
class StageReport:
    """Result of one stage, why in one sentence, its metrics, and warnings or what is left out."""

    step: RolloutStep
    outcome: Outcome
    reason: str
    metrics: tuple[Measured, ...] = ()
    notes: tuple[str, ...] = ()


def decided(step: RolloutStep, metrics: Sequence[Measured], notes: Iterable[str] = ()) -> StageReport:
    """Returns the report of a stage from its metrics."""
    worse = [metric.name for metric in metrics if metric.decision is Decision.WORSE]
    still_open = [metric.name for metric in metrics if metric.decides and metric.decision is Decision.OPEN]
    if worse:
        outcome, reason = Outcome.STOPPED, f"B is worse in {_names(worse)}"
    elif still_open or not any(metric.decides for metric in metrics):
        outcome, reason = Outcome.UNDECIDED, f"not enough data to decide on {_names(still_open) or 'any metric'}"
    else:
        outcome, reason = Outcome.PASSED, "B is not worse in any metric"
    return StageReport(step, outcome, reason, tuple(metrics), tuple(notes))


def _names(names: Sequence[str]) -> str:
    return ", ".join(name.replace("_", " ") for name in names)


JUDGED_METRICS: tuple[str, ...] = (str(Quantity.FAITHFULNESS), str(Quantity.ANSWER_RELEVANCY))
"""Metrics that decide the judged stage, and that can stop the live one."""


def offline_stage(
    a: Mapping[str, Ranking], b: Mapping[str, Ranking], *, k: int = 10, confidence: float = 0.95
) -> StageReport:
    """Compares MRR, NDCG@k and recall@k over the queries that both variants answered, given rankings by query."""
    measures = {f"mrr@{k}": reciprocal_rank, f"ndcg@{k}": ndcg_at, f"recall@{k}": recall_at}
    metrics = []
    for name, measure in measures.items():
        values = ((measure(a[key], k), measure(b[key], k)) for key in a if key in b)
        pairs = [PairedScore(first, second) for first, second in values if first is not None and second is not None]
        metrics.append(_of_difference(name, paired(pairs, confidence=confidence)))
    left_out = len(a) + len(b) - 2 * sum(key in b for key in a)
    notes = [f"{left_out} queries are known on one side only and are left out"] if left_out else []
    return decided(RolloutStep.OFFLINE, metrics, notes)


def _of_difference(name: str, difference: Difference | None) -> Measured:
    """Returns a metric of a stage that is looked at once; with too few questions it decides nothing."""
    if difference is None:
        return Measured(name, None, None, None, n_a=0, n_b=0, decision=Decision.OPEN)
    decision = Decision.OPEN if difference.n < MIN_QUESTIONS else Decision.PASSED
    if difference.conclusion is Conclusion.WORSE:
        decision = Decision.WORSE
    n = difference.n
    return Measured(name, difference.a, difference.b, difference.change, n_a=n, n_b=n, decision=decision)


def judged_stage(comparison: Comparison, notes: Iterable[str] = ()) -> StageReport:
    """Decides by faithfulness and answer relevancy of judged answers; the other metrics are shown only."""
    rows = {row.metric: row.overall for row in comparison.rows}
    metrics = [_of_difference(name, rows.get(name)) for name in JUDGED_METRICS]
    pairing = [] if comparison.matched.enough else ["too few questions are on both sides, so the means are not paired"]
    return decided(RolloutStep.JUDGED, metrics, [*notes, *pairing])


def pick_questions(a: Iterable[str], b: Iterable[str], count: int) -> tuple[frozenset[str], frozenset[str]]:
    """Returns the keys to judge on either side: the same random ones if enough are shared. A hash draws them."""
    first, second = list(a), list(b)
    matched = match_keys(first, second)
    if matched.enough:
        shared = frozenset(sorted(matched.keys, key=_hash)[:count])
        return shared, shared
    one, other = (frozenset(sorted(set(keys), key=_hash)[:count]) for keys in (first, second))
    return one, other


def _hash(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()


def rankings_of(line: Mapping[str, Any], k: int) -> dict[str, Ranking]:
    """Returns the rankings by query in the output of `ragwatch canary --json`; negative and failed canaries have none.

    `ValueError` if it is no such output, one of a version that did not record grades, or one of fewer than k chunks.
    """
    rankings: dict[str, Ranking] = {}
    occurrences: Counter[str] = Counter()
    try:
        suites = line["suites"]
        cutoff = min(max(map(int, suite["recall"])) for suite in suites)
        for item in (item for suite in suites for item in suite["items"] if item["ranks"]):
            key = key_of(item["query"], "")
            occurrences[key] += 1
            rankings[key if occurrences[key] == 1 else f"{key}\n{occurrences[key]}"] = _ranking(
                item["ranks"], item["grades"]
            )
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise ValueError("is not what `ragwatch canary --json` of this version prints; record it again") from error
    if cutoff < k:
        raise ValueError(f"holds the first {cutoff} chunks only, not {k}; add {k} to `k` of the suite")
    return rankings


def _ranking(ranks: Sequence[int | None], grades: Sequence[int]) -> Ranking:
    hits: list[list[int]] = [[] for _ in range(max((rank or 0 for rank in ranks), default=0))]
    for index, rank in enumerate(ranks):
        if rank is not None:
            hits[rank - 1].append(index)
    return Ranking(tuple(grades), tuple(map(tuple, hits)))


USER_METRIC = "user"
_SHARE_RISK = 0.01


class LiveAnswer(NamedTuple):
    """One answer of live traffic, with its time in seconds, known scores, and weight 1 / inclusion probability."""

    at: float
    is_b: bool
    scores: Mapping[str, float]
    weight: float = 1.0


class LiveRules(NamedTuple):
    """Rules of the live stage."""

    metrics: Sequence[str]  # metrics that are looked at; a loss in any of them stops B
    deciding: frozenset[str]  # those of them that must exclude a loss above the margin
    margin: float = 0.05
    share: float = 0.05
    confidence: float = 0.95  # probability with which no decision is wrong


class _Arm:
    """Confidence sequence and mean of one metric in one variant."""

    def __init__(self, risk: float, max_weight: float) -> None:
        self.band = HedgedBand(risk, max_weight)
        self.n = 0
        self._scores: list[tuple[float, float]] = []

    def add(self, score: float, weight: float) -> None:
        """Adds a score in [0, 1]."""
        self.band = self.band.after(score, weight)
        self.n += 1
        self._scores.append((score, weight))

    @property
    def mean(self) -> float | None:
        """Weighted mean; None without scores."""
        total = fsum(weight for _, weight in self._scores)
        return fsum(score * weight for score, weight in self._scores) / total if total else None


def live_stage(answers: Iterable[LiveAnswer], rules: LiveRules, notes: Iterable[str] = ()) -> StageReport:
    """Looks at the metrics after every answer, in order of time, and stops at the first decision."""
    ordered = sorted(answers, key=lambda answer: answer.at)
    heaviest = max((answer.weight for answer in ordered), default=1.0)
    risk = (1.0 - rules.confidence) / (2 * max(1, len(rules.metrics)))
    arms = {name: (_Arm(risk, heaviest), _Arm(risk, heaviest)) for name in rules.metrics}
    split = _Arm(_SHARE_RISK, heaviest)
    decisions = dict.fromkeys(rules.metrics, Decision.OPEN)
    for answer in ordered:
        split.add(float(answer.is_b), answer.weight)
        for name in rules.metrics:
            if name in answer.scores:
                arms[name][answer.is_b].add(answer.scores[name], answer.weight)
                decisions[name] = _decision(*arms[name], rules.margin)
        passed = bool(rules.deciding) and all(decisions.get(name) is Decision.PASSED for name in rules.deciding)
        if passed or Decision.WORSE in decisions.values():
            break
    metrics = [_of_arms(name, *pair, rules) for name, pair in arms.items()]
    return decided(RolloutStep.LIVE, metrics, [*notes, *_split_notes(split, rules.share, len(ordered))])


def _of_arms(name: str, a: _Arm, b: _Arm, rules: LiveRules) -> Measured:
    first, second = a.mean, b.mean
    change = None
    if first is not None and second is not None:
        change = Interval(second - first, b.band.low - a.band.high, b.band.high - a.band.low)
    decision = _decision(a, b, rules.margin)
    return Measured(name, first, second, change, n_a=a.n, n_b=b.n, decision=decision, decides=name in rules.deciding)


def _decision(a: _Arm, b: _Arm, margin: float) -> Decision:
    if b.band.low - a.band.high >= -margin:
        return Decision.PASSED
    return Decision.WORSE if b.band.high < a.band.low else Decision.OPEN


def _split_notes(split: _Arm, share: float, total: int) -> list[str]:
    """Returns how the traffic was split, and a warning if that is not as configured."""
    if split.mean is None:
        return ["no answer names its variant since the start"]
    notes = [f"B has {100 * split.mean:.1f} % of the answers; {split.n} of {total} answers were looked at"]
    if not split.band.low <= share <= split.band.high:
        notes.append(
            f"the split is not {100 * share:g} % as configured: find the cause before you trust the comparison"
        )
    return notes
