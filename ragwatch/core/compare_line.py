"""The compare line: two variants beside each other in all metrics and categories, as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ragwatch.core.canary.report import CanaryReport
from ragwatch.core.compare import (
    Conclusion,
    Difference,
    MatchedKeys,
    PairedScore,
    WeightedScore,
    by_category,
    key_of,
    matched,
    paired,
    per_question,
    unpaired,
)
from ragwatch.core.gate import Metric, score_of
from ragwatch.core.ranking import Ranking, ndcg_at, precision_at, recall_at, reciprocal_rank
from ragwatch.core.reference import ReferenceQuantity
from ragwatch.core.scores import LOW_IS_GOOD, Quantity
from ragwatch.core.verdict import Judged, Verdict

METRICS: tuple[Metric, ...] = (*Quantity, *ReferenceQuantity)
Line = Mapping[str, Any]
Figure = Callable[[Ranking, int], float | None]
Score = Callable[[CanaryReport], float | None]
_Compared = tuple[Difference | None, Mapping[str, Difference | None]]


@dataclass(frozen=True, slots=True)
class ComparedAnswer:
    """One judged answer, as far as comparing asks.

    Attributes:
        key: What pairs it, see `key_of`.
        category: The category in its metadata, else its route; empty for none.
        scores: By metric; None where it is undefined or unread.
        weight: 1 / probability with which it was drawn.
    """

    key: str
    category: str
    scores: Mapping[str, float | None]
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class VariantScores:
    """One variant in one metric: scores by key, and the category of each key."""

    scores: Mapping[str, WeightedScore]
    categories: Mapping[str, str]

    def within(self, category: str) -> list[WeightedScore]:
        """The scores of one category."""
        return [score for key, score in self.scores.items() if self.categories[key] == category]


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """One metric, over everything and by category."""

    metric: str
    overall: Difference
    categories: Mapping[str, Difference]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two variants beside each other.

    Attributes:
        matched: What they share.
        rows: One for each metric that both know.
        unit: What was compared: `questions` or `canaries`.
    """

    matched: MatchedKeys
    rows: tuple[ComparisonRow, ...]
    unit: str

    @property
    def worse(self) -> bool:
        """Whether B is worse in a metric, beyond noise."""
        return any(row.overall.conclusion is Conclusion.WORSE for row in self.rows)


def of_verdicts(a: Sequence[Verdict], b: Sequence[Verdict], confidence: float = 0.95) -> Comparison:
    """Judged samples of two logs, by question. A log holds every answer, so each weighs the same."""
    first, second = ([_answer(each) for each in side if isinstance(each, Judged)] for side in (a, b))
    both = matched(map(_key, a), map(_key, b))
    return _of_answers(first, second, both, confidence)


def of_answers(a: Sequence[ComparedAnswer], b: Sequence[ComparedAnswer], confidence: float = 0.95) -> Comparison:
    """Two variants of live traffic, by question."""
    return _of_answers(a, b, matched((each.key for each in a), (each.key for each in b)), confidence)


def _of_answers(
    a: Sequence[ComparedAnswer], b: Sequence[ComparedAnswer], both: MatchedKeys, confidence: float
) -> Comparison:
    """By question; unpaired where too few are shared."""
    low: frozenset[str] = frozenset(LOW_IS_GOOD)
    sides = [(str(each), _side(a, each), _side(b, each)) for each in METRICS]
    return Comparison(both, _rows(sides, both, low, confidence), "questions")


def of_reports(
    a: Sequence[CanaryReport], b: Sequence[CanaryReport], ks: Sequence[int], confidence: float = 0.95
) -> Comparison:
    """One run of the same canaries on two retrievers, by query; what failed on either side is left out of both."""
    first, second = map(_by_query, (a, b))
    both = matched(first, second)
    sides = []
    for metric, of in _ranked(ks).items():
        known = [_report_side(side, of) for side in (first, second)]
        sides.append((metric, known[0], known[1]))
    return Comparison(both, _rows(sides, both, frozenset(), confidence), "canaries")


def _by_query(reports: Iterable[CanaryReport]) -> dict[str, CanaryReport]:
    """A query may stand in several suites: its second canary meets the second one of the other side."""
    times: Counter[str] = Counter()
    found = {}
    for each in reports:
        key = key_of(each.canary.query, "")
        times[key] += 1
        found[key if times[key] == 1 else f"{key}\n{times[key]}"] = each
    return found


def _key(verdict: Verdict) -> str:
    sample = verdict.draw.sample
    return key_of(sample.question, sample.id)


def _answer(verdict: Judged) -> ComparedAnswer:
    sample = verdict.draw.sample
    scores = {str(metric): score_of(verdict, metric) for metric in METRICS}
    return ComparedAnswer(_key(verdict), _category(sample.metadata, sample.route), scores)


def stored(line: Line, sample: Line) -> ComparedAnswer:
    """A judged verdict as a store keeps it: its line and its sample in canonical form."""
    scores = {**line["scores"], **(line.get("reference") or {})}
    return ComparedAnswer(
        key_of(sample.get("question"), str(sample["id"])),
        _category(sample.get("metadata") or {}, line["route"]),
        {str(metric): scores.get(metric) for metric in METRICS},
        1.0 / line["probability"],
    )


def _category(metadata: Line, route: str) -> str:
    named = metadata.get("category")
    return named if isinstance(named, str) else route


def _side(answers: Iterable[ComparedAnswer], metric: Metric) -> VariantScores:
    known = list(answers)
    return VariantScores(
        per_question((each.key, each.scores[metric], each.weight) for each in known),
        {each.key: each.category for each in known},
    )


def _ranked(ks: Sequence[int]) -> dict[str, Score]:
    """Metrics of a canary's report, by name."""
    figures: dict[str, Figure] = {"recall": recall_at, "precision": precision_at, "ndcg": ndcg_at}
    found: dict[str, Score] = {
        f"{name}@{k}": partial(_figure, figure, k) for name, figure in figures.items() for k in ks
    }
    return found | {f"mrr@{max(ks)}": partial(_figure, reciprocal_rank, max(ks)), "success": _success}


def _figure(figure: Figure, k: int, found: CanaryReport) -> float | None:
    return None if found.ranking is None else figure(found.ranking, k)


def _success(found: CanaryReport) -> float | None:
    return None if found.failure is not None else float(found.success)


def _report_side(reports: Mapping[str, CanaryReport], of: Score) -> VariantScores:
    known = {key: WeightedScore(score) for key, each in reports.items() if (score := of(each)) is not None}
    return VariantScores(known, {key: str(each.canary.category) for key, each in reports.items()})


def _rows(
    sides: Iterable[tuple[str, VariantScores, VariantScores]], both: MatchedKeys, low: frozenset[str], confidence: float
) -> tuple[ComparisonRow, ...]:
    found = []
    for metric, a, b in sides:
        if both.enough:
            overall, parts = _paired(a, b, both.keys, low_is_good=metric in low, confidence=confidence)
        else:
            overall, parts = _apart(a, b, low_is_good=metric in low, confidence=confidence)
        if overall is not None:
            found.append(
                ComparisonRow(metric, overall, {name: part for name, part in parts.items() if part is not None})
            )
    return tuple(found)


def _paired(
    a: VariantScores, b: VariantScores, keys: Iterable[str], *, low_is_good: bool, confidence: float
) -> _Compared:
    pairs = [
        PairedScore(a.scores[key].score, b.scores[key].score, a.categories[key])
        for key in keys
        if key in a.scores and key in b.scores
    ]
    compared = partial(paired, low_is_good=low_is_good, confidence=confidence)
    return compared(pairs), {name: compared(few) for name, few in by_category(pairs).items()}


def _apart(a: VariantScores, b: VariantScores, *, low_is_good: bool, confidence: float) -> _Compared:
    compared = partial(unpaired, low_is_good=low_is_good, confidence=confidence)
    categories = sorted({*a.categories.values(), *b.categories.values()})
    parts = {name: compared(a.within(name), b.within(name)) for name in categories} if len(categories) > 1 else {}
    return compared(list(a.scores.values()), list(b.scores.values())), parts


def compare_line(found: Comparison, a: str, b: str) -> dict[str, Any]:
    """The comparison as the object that `ragwatch compare --json` prints."""
    return {
        "a": a,
        "b": b,
        "unit": found.unit,
        "paired": found.matched.enough,
        "shared": len(found.matched.keys),
        "only_a": found.matched.only_a,
        "only_b": found.matched.only_b,
        "metrics": [
            _difference(row.overall)
            | {"metric": row.metric}
            | {"categories": {name: _difference(part) for name, part in row.categories.items()}}
            for row in found.rows
        ],
    }


def _difference(found: Difference) -> dict[str, Any]:
    return {
        "a": found.a,
        "b": found.b,
        "difference": found.change.value,
        "low": found.change.low,
        "high": found.change.high,
        "n": found.n,
        "wins": found.wins,
        "ties": found.ties,
        "losses": found.losses,
        "lower_is_better": found.low_is_good,
        "conclusion": str(found.conclusion),
        "warning": found.warning,
    }
