"""The compare line: two variants beside each other in all metrics and categories, as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ragwatch.core.canary_report import CanaryReport
from ragwatch.core.compare import (
    Conclusion,
    Difference,
    Matched,
    Pair,
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

Figure = Callable[[Ranking, int], float | None]
Score = Callable[[CanaryReport], float | None]


@dataclass(frozen=True, slots=True)
class Side:
    """One variant in one metric: scores by key, and the category of each key."""

    scores: Mapping[str, float]
    categories: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Row:
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

    matched: Matched
    rows: tuple[Row, ...]
    unit: str

    @property
    def worse(self) -> bool:
        """Whether B is worse in a metric, beyond noise."""
        return any(row.overall.conclusion is Conclusion.WORSE for row in self.rows)


def of_verdicts(a: Sequence[Verdict], b: Sequence[Verdict], confidence: float = 0.95) -> Comparison:
    """Judged samples of two variants, by question; unpaired where too few questions are shared."""
    both = matched(map(_key, a), map(_key, b))
    low: frozenset[str] = frozenset(LOW_IS_GOOD)
    metrics: tuple[Metric, ...] = (*Quantity, *ReferenceQuantity)
    sides = [(str(each), _judged_side(a, each), _judged_side(b, each)) for each in metrics]
    return Comparison(both, _rows(sides, both, low, confidence), "questions")


def of_reports(
    a: Sequence[CanaryReport], b: Sequence[CanaryReport], ks: Sequence[int], confidence: float = 0.95
) -> Comparison:
    """One run of the same canaries on two retrievers, by query; what failed on either side is left out of both."""
    first, second = ({key_of(each.canary.query, ""): each for each in side} for side in (a, b))
    both = matched(first, second)
    sides = []
    for metric, of in _ranked(ks).items():
        known = [_report_side(side, of) for side in (first, second)]
        sides.append((metric, known[0], known[1]))
    return Comparison(both, _rows(sides, both, frozenset(), confidence), "canaries")


def _key(verdict: Verdict) -> str:
    sample = verdict.draw.sample
    return key_of(sample.question, sample.id)


def _judged_side(verdicts: Iterable[Verdict], metric: Metric) -> Side:
    read = [each for each in verdicts if isinstance(each, Judged)]
    return Side(
        per_question((_key(each), score_of(each, metric)) for each in read),
        {_key(each): _category(each) for each in read},
    )


def _category(verdict: Judged) -> str:
    named = verdict.draw.sample.metadata.get("category")
    return named if isinstance(named, str) else verdict.draw.sample.route


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


def _report_side(reports: Mapping[str, CanaryReport], of: Score) -> Side:
    known = {key: score for key, each in reports.items() if (score := of(each)) is not None}
    return Side(known, {key: str(each.canary.category) for key, each in reports.items()})


def _rows(
    sides: Iterable[tuple[str, Side, Side]], both: Matched, low: frozenset[str], confidence: float
) -> tuple[Row, ...]:
    found = []
    for metric, a, b in sides:
        pairs = [
            Pair(a.scores[key], b.scores[key], a.categories[key])
            for key in both.keys
            if key in a.scores and key in b.scores
        ]
        bad = metric in low
        if both.enough:
            overall = paired(pairs, low_is_good=bad, confidence=confidence)
        else:
            overall = unpaired(list(a.scores.values()), list(b.scores.values()), low_is_good=bad, confidence=confidence)
        if overall is not None:
            groups = by_category(pairs) if both.enough else {}
            parts = {name: paired(few, low_is_good=bad, confidence=confidence) for name, few in groups.items()}
            found.append(Row(metric, overall, {name: part for name, part in parts.items() if part is not None}))
    return tuple(found)


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
