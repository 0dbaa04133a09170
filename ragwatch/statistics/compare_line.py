"""Compares two variants in all metrics and categories, and formats the result as JSON."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from ragwatch.model.quantities import LOW_IS_GOOD, Quantity, ReferenceQuantity
from ragwatch.model.sample import Role, SampleRecord
from ragwatch.statistics.canary.report import CanaryReport
from ragwatch.statistics.compare import (
    Conclusion,
    Difference,
    MatchedKeys,
    PairedScore,
    WeightedScore,
    by_category,
    key_of,
    match_keys,
    paired,
    per_question,
    unpaired,
)
from ragwatch.statistics.question_scores import (
    MAX_CHARS,
    LostQuestion,
    QuestionScores,
    lost_line,
    lost_questions,
    question_of,
)
from ragwatch.statistics.ranking import Ranking
from ragwatch.statistics.relevance import KS, RankedCase, RankingMetric, ranking_metrics
from ragwatch.statistics.set_scores import JudgedMetric, score_of
from ragwatch.statistics.verdict import Judged, Verdict
from ragwatch.statistics.verdict_line import VerdictRecord

METRICS: tuple[JudgedMetric, ...] = (*Quantity, *ReferenceQuantity)
_LOW_IS_GOOD: frozenset[str] = frozenset(LOW_IS_GOOD)


@dataclass(frozen=True, slots=True)
class ComparedAnswer:
    """One judged answer in a comparison, with its key (see `key_of`), weight, and question where it is known."""

    key: str
    category: str
    scores: Mapping[str, float | None]
    weight: float = 1.0
    question: QuestionScores | None = None


@dataclass(frozen=True, slots=True)
class VariantScores:
    """Scores of one variant in one metric by key, and the category of each key."""

    scores: Mapping[str, WeightedScore]
    categories: Mapping[str, str]

    def within(self, category: str) -> list[WeightedScore]:
        """Returns the scores of one category."""
        return [score for key, score in self.scores.items() if self.categories[key] == category]


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """Difference in one metric, overall and by category."""

    metric: str
    overall: Difference
    categories: Mapping[str, Difference]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Comparison of two variants."""

    matched: MatchedKeys
    rows: tuple[ComparisonRow, ...]
    unit: str  # unit of the comparison: `questions` or `canaries`
    lost: tuple[LostQuestion, ...] = ()  # shared questions in which B lost, in metrics that became worse; most first

    @property
    def worse(self) -> bool:
        """Whether B is significantly worse in any metric."""
        return any(row.overall.conclusion is Conclusion.WORSE for row in self.rows)


def compare_verdicts(a: Sequence[Verdict], b: Sequence[Verdict], confidence: float = 0.95) -> Comparison:
    """Compares the judged samples of two logs by question. A log contains every answer, so all weights are equal."""
    first, second = ([_answer(verdict) for verdict in side if isinstance(verdict, Judged)] for side in (a, b))
    return compare_answers(first, second, confidence, matched=match_keys(map(_key, a), map(_key, b)))


def compare_answers(
    a: Sequence[ComparedAnswer],
    b: Sequence[ComparedAnswer],
    confidence: float = 0.95,
    unit: str = "questions",
    *,
    matched: MatchedKeys | None = None,
) -> Comparison:
    """Compares two variants, by default of live traffic; `matched` are the shared keys (by default of answers)."""
    matched = matched or match_keys((answer.key for answer in a), (answer.key for answer in b))
    names = dict.fromkeys((*map(str, METRICS), *(name for answer in (*a, *b) for name in answer.scores)))
    sides = [(name, _scores(a, name), _scores(b, name)) for name in names]
    named = {answer.key: answer.question for answer in (*a, *b) if answer.question is not None}
    rows = _rows(sides, matched, confidence)
    worse = [row.metric for row in rows if row.overall.change.value * (1 if row.overall.low_is_good else -1) > 0.0]
    both: tuple[list[QuestionScores], list[QuestionScores]] = ([], [])
    for key in matched.keys if matched.enough else ():
        row = named.get(key) or QuestionScores(key, None, None, key, {})
        for variant, scored in enumerate(both):
            scores = ((metric, a_and_b[variant].scores.get(key)) for metric, *a_and_b in sides)
            scored.append(row.scored((metric, None if score is None else score.score) for metric, score in scores))
    return Comparison(matched, rows, unit, lost_questions(list(zip(*both, strict=True)), worse))


def compare_reports(
    a: Sequence[CanaryReport], b: Sequence[CanaryReport], ks: Sequence[int], confidence: float = 0.95
) -> Comparison:
    """Compares one run of the same canaries on two retrievers; a canary that failed on either side is left out."""
    names = (*(f"{name}@{k}" for name in ("recall", "precision", "f1", "ndcg") for k in ks), f"mrr@{max(ks)}")
    metrics = tuple(map(RankingMetric, names))
    return compare_answers(_canary_answers(a, metrics), _canary_answers(b, metrics), confidence, "canaries")


def compare_cases(
    a: Sequence[RankedCase], b: Sequence[RankedCase], ks: Sequence[int] = KS, confidence: float = 0.95
) -> Comparison | None:
    """Compares the ranking metrics of test cases (the mean, of one asked twice); None if a side has none."""
    if not a or not b:
        return None
    metrics = ranking_metrics(ks)
    first, second = (
        [
            ComparedAnswer(case.key, case.category, _ranked(case.ranking, metrics), question=case.question)
            for case in side
        ]
        for side in (a, b)
    )
    return compare_answers(first, second, confidence, "questions with relevance judgements")


def _ranked(ranking: Ranking | None, metrics: Iterable[RankingMetric]) -> dict[str, float | None]:
    return {metric: None if ranking is None else metric.of(ranking) for metric in metrics}


def _canary_answers(reports: Iterable[CanaryReport], metrics: Iterable[RankingMetric]) -> list[ComparedAnswer]:
    """Answers are keyed by query and occurrence, because a query can be in several suites."""
    occurrences: Counter[str] = Counter()
    answers = []
    for report in reports:
        query = key_of(report.canary.query, "")
        occurrences[query] += 1
        key = query if occurrences[query] == 1 else f"{query}\n{occurrences[query]}"
        success = None if report.failure is not None else float(report.success)
        scores = _ranked(report.ranking, metrics) | {"success": success}
        question = QuestionScores(report.canary.name, report.canary.query[:MAX_CHARS], None, key, {})
        answers.append(ComparedAnswer(key, str(report.canary.category), scores, question=question))
    return answers


def _key(verdict: Verdict) -> str:
    sample = verdict.draw.sample
    return key_of(sample.question, sample.id, sample.user_turns)


def _answer(verdict: Judged) -> ComparedAnswer:
    sample = verdict.draw.sample
    criteria = (quantity for quantity in verdict.scores if quantity.is_criterion)
    scores = {str(metric): score_of(verdict, metric) for metric in (*METRICS, *criteria)}
    return ComparedAnswer(_key(verdict), _category(sample.metadata, sample.route), scores, question=question_of(sample))


def answer_of(verdict: VerdictRecord, sample: SampleRecord) -> ComparedAnswer:
    """Returns the answer of a stored verdict, from the verdict and its sample in canonical form."""
    text, name = sample.get("question"), str(sample["id"])
    key = key_of(text, name, (turn["text"] for turn in sample.get("history") or () if turn["role"] == Role.USER))
    return ComparedAnswer(
        key,
        _category(sample.get("metadata") or {}, verdict.route),
        {
            **{str(quantity): score for quantity, score in verdict.scores.items()},
            **{str(quantity): verdict.reference.get(quantity) for quantity in ReferenceQuantity},
        },
        1.0 / verdict.probability,
        QuestionScores(name, text and text[:MAX_CHARS], None, key, {}),
    )


def _category(metadata: Mapping[str, object], route: str) -> str:
    category = metadata.get("category")
    return category if isinstance(category, str) else route


def _scores(answers: Sequence[ComparedAnswer], metric: str) -> VariantScores:
    return VariantScores(
        per_question((answer.key, answer.scores.get(metric), answer.weight) for answer in answers),
        {answer.key: answer.category for answer in answers},
    )


def _rows(
    sides: Iterable[tuple[str, VariantScores, VariantScores]], matched: MatchedKeys, confidence: float
) -> tuple[ComparisonRow, ...]:
    """Rows of (metric, A, B): paired if enough keys are shared, otherwise unpaired."""
    rows = []
    for metric, a, b in sides:
        low = metric in _LOW_IS_GOOD
        if matched.enough:
            pairs = [
                PairedScore(a.scores[key].score, b.scores[key].score, a.categories[key])
                for key in matched.keys
                if key in a.scores and key in b.scores
            ]
            of_pairs = partial(paired, low_is_good=low, confidence=confidence)
            overall, by_name = of_pairs(pairs), {name: of_pairs(group) for name, group in by_category(pairs).items()}
        else:
            of_sides = partial(unpaired, low_is_good=low, confidence=confidence)
            overall = of_sides(list(a.scores.values()), list(b.scores.values()))
            names = sorted({*a.categories.values(), *b.categories.values()})
            by_name = {name: of_sides(a.within(name), b.within(name)) for name in (names if len(names) > 1 else ())}
        if overall is not None:
            categories = {name: difference for name, difference in by_name.items() if difference is not None}
            rows.append(ComparisonRow(metric, overall, categories))
    return tuple(rows)


def compare_line(comparison: Comparison, a: str, b: str) -> dict[str, object]:
    """Returns the comparison as the object that `ragwatch compare --json` prints."""
    return {
        "a": a,
        "b": b,
        "unit": comparison.unit,
        "paired": comparison.matched.enough,
        "shared": len(comparison.matched.keys),
        "only_a": comparison.matched.only_a,
        "only_b": comparison.matched.only_b,
        "metrics": [
            _difference_line(row.overall)
            | {"metric": row.metric}
            | {"categories": {name: _difference_line(part) for name, part in row.categories.items()}}
            for row in comparison.rows
        ],
        "lost": [lost_line(one) for one in comparison.lost],
    }


def _difference_line(difference: Difference) -> dict[str, object]:
    return {
        "a": difference.a,
        "b": difference.b,
        "difference": difference.change.value,
        "low": difference.change.low,
        "high": difference.change.high,
        "n": difference.n,
        "wins": difference.wins,
        "ties": difference.ties,
        "losses": difference.losses,
        "lower_is_better": difference.low_is_good,
        "conclusion": str(difference.conclusion),
        "warning": difference.warning,
    }
