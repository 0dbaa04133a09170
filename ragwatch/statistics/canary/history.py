"""Stores canary runs as JSON and as counters and gauges, reads them back, and compares a run with earlier ones.

The body of a stored run holds `ks`, `reports` (a list of records, see `to_record`) and the judged `answers`.

Scores are compared with those of earlier runs, too. A retriever whose scores all fall, after a change of the embedding
for example, may still rank the right passages first: recall and MRR stay. The scores of a canary fell if the best one
is below the worst one of before, so by more than their own spread.
"""

import hashlib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import median
from typing import Any, NamedTuple

from ragwatch.model.estimate import Addends
from ragwatch.statistics.canary.answer import JudgedAnswer, answer_means
from ragwatch.statistics.canary.definition import (
    MAX_STORED_CHARS,
    Canary,
    Category,
    Direction,
    Expected,
    Failure,
    Grade,
    Hit,
    Retrieved,
)
from ragwatch.statistics.canary.metric import EXPORTED
from ragwatch.statistics.canary.report import CanaryOutcome, CanaryReport, SuiteReport, suite_line
from ragwatch.statistics.ranking import Ranking
from ragwatch.statistics.snapshot import Gauge
from ragwatch.statistics.tally import Tallies, Tally, observe
from ragwatch.statistics.trends import BucketKey, TrendKey, TrendKind, add_to


def to_record(report: CanaryReport) -> dict[str, Any]:
    """Returns the report as JSON values. Texts of passages are cut to `MAX_STORED_CHARS`; answers are not cut."""
    canary, retrieved = report.canary, report.retrieved
    expected = [(context.id, context.text, int(context.grade)) for context in canary.expected]
    hits = [(hit.id, hit.text and hit.text[:MAX_STORED_CHARS], hit.score) for hit in retrieved.hits]
    return {
        "canary": {**asdict(canary), "expected": expected},
        "at": report.at,
        "cutoff": report.cutoff,
        "outcome": report.outcome,
        "failure": report.failure,
        "met": None if report.ranking is None else [list(hit) for hit in report.ranking.hits],
        "retrieved": {**asdict(replace(retrieved, hits=())), "hits": hits},
        "scores_fell": report.scores_fell,
    }


def from_record(record: Mapping[str, Any]) -> CanaryReport:
    """Returns the report that `to_record` wrote; KeyError, ValueError and TypeError tell that the record is none."""
    canary, retrieved = dict(record["canary"]), dict(record["retrieved"])
    hits, direction, failure = record["met"], retrieved["direction"], retrieved["failure"]
    expected = tuple(Expected(name, text, Grade(grade)) for name, text, grade in canary["expected"])
    canary |= {
        "expected": expected,
        "category": Category[str(canary["category"]).upper()],
        "tags": tuple(canary["tags"]),
    }
    retrieved |= {
        "hits": tuple(Hit(*hit) for hit in retrieved["hits"]),
        "direction": None if direction is None else Direction(direction),
        "failure": None if failure is None else Failure(failure),
    }
    return CanaryReport(
        Canary(**canary),
        record["at"],
        record["cutoff"],
        Retrieved(**retrieved),
        outcome=CanaryOutcome(record["outcome"]),
        failure=None if record["failure"] is None else Failure(record["failure"]),
        ranking=None if hits is None else Ranking(tuple(int(one.grade) for one in expected), tuple(map(tuple, hits))),
        scores_fell=record.get("scores_fell", False),
    )


def body_of(run: SuiteReport) -> dict[str, object]:
    """Returns the body of a stored run as JSON values."""
    return {
        "answered": not run.failures,
        "line": suite_line(run),
        "ks": list(run.ks),
        "reports": [to_record(report) for report in run.reports],
        "answers": [asdict(answer) for answer in run.answers],
    }


def report_of(suite: str, body: Mapping[str, Any]) -> SuiteReport | None:
    """Returns the report in the body of a stored run; None if another version wrote the body in another shape."""
    try:
        reports = tuple(from_record(record) for record in body["reports"])
        return SuiteReport(suite, tuple(body["ks"]), reports, _answers(body.get("answers")))
    except (KeyError, ValueError, TypeError, IndexError):
        return None


def _answers(records: object) -> tuple[JudgedAnswer, ...]:
    """The judged answers of a stored run; none where the records are of another version."""
    try:
        return tuple(JudgedAnswer(**record) for record in records)  # type: ignore[attr-defined]  # checked here
    except (TypeError, ValueError):
        return ()


class RankChange(NamedTuple):
    """A change of rank (from 1; None below the top k) of an expected context, and what came at its place."""

    label: str
    before: int | None
    after: int | None
    instead: Hit | None = None


@dataclass(frozen=True, slots=True)
class CanaryDiff:
    """Difference between two runs of a canary; newcomers are passages of the later run only, with their rank."""

    vanished: tuple[RankChange, ...]
    moved: tuple[RankChange, ...]
    newcomers: tuple[tuple[int, Hit], ...]
    shift: float | None  # change of the median of the retriever's scores among the top k; None if one is unknown


def diff(before: CanaryReport, after: CanaryReport) -> CanaryDiff | None:
    """Compares two runs of a canary; None if either run failed.

    Expected contexts are matched by id or text. If the canary was edited between the runs, only the contexts that both
    versions expect are compared.
    """
    if before.failure is not None or after.failure is not None:
        return None
    old_ranks = {key: rank for key, (_, rank) in _ranks_by_context(before).items()}
    new_ranks = _ranks_by_context(after)
    hits = after.retrieved.hits
    rank_changes = [
        RankChange(context.label, was := old_ranks[key], rank, hits[was - 1] if was and was <= len(hits) else None)
        for key, (context, rank) in new_ranks.items()
        if key in old_ranks and old_ranks[key] != rank
    ]
    old_keys = {hit.key for hit in before.retrieved.hits}
    median_before, median_after = _median_score(before.retrieved.hits), _median_score(hits)
    return CanaryDiff(
        vanished=tuple(change for change in rank_changes if change.after is None),
        moved=tuple(change for change in rank_changes if change.after is not None),
        newcomers=tuple((rank, hit) for rank, hit in enumerate(hits, start=1) if hit.key not in old_keys),
        shift=None if median_before is None or median_after is None else median_after - median_before,
    )


def _ranks_by_context(report: CanaryReport) -> dict[str | None, tuple[Expected, int | None]]:
    """Keyed by id or whole text, because the labels of two passages that begin alike are equal."""
    pairs = zip(report.canary.expected, report.ranks, strict=True)
    return {context.id or context.text: (context, rank) for context, rank in pairs}


def _median_score(hits: Sequence[Hit]) -> float | None:
    scores = [hit.score for hit in hits if hit.score is not None]
    return median(scores) if scores and len(scores) == len(hits) else None


def changes(runs: Sequence[SuiteReport]) -> dict[str, CanaryDiff]:
    """Compares each canary of the newest run, the first, with the last run before in which it succeeded."""
    if not runs:
        return {}
    # Oldest first, so that of several successes the last one stays.
    before = {report.canary.name: report for run in runs[:0:-1] for report in run.reports if report.success}
    pairs = ((before.get(report.canary.name), report) for report in runs[0].reports)
    diffs = {report.canary.name: diff(old, report) for old, report in pairs if old is not None}
    return {name: difference for name, difference in diffs.items() if difference is not None}


RELEARN_RUNS = 40
"""Runs after which lower scores count as the new level."""


class ScoreLevel(NamedTuple):
    """Usual scores of a canary (distances with their sign changed), and how many runs in a row were lower."""

    low: float
    high: float
    fallen: int = 0


Levels = Mapping[str, ScoreLevel]


def levels_of(state: object) -> dict[str, ScoreLevel]:
    """Returns the levels in a saved state; those that are none are left out."""
    rows = state.items() if isinstance(state, Mapping) else ()
    return {
        str(key): ScoreLevel(float(row[0]), float(row[1]), int(row[2]))
        for key, row in rows
        if isinstance(row, list | tuple) and len(row) == 3 and all(isinstance(cell, int | float) for cell in row)
    }


def with_levels(run: SuiteReport, before: Levels) -> tuple[SuiteReport, dict[str, ScoreLevel]]:
    """Returns the run, with `scores_fell` set if the scores of every canary fell, and the levels after it.

    A single canary whose scores fell is no change of the retriever: its passages may have been edited. Where a canary
    has one score only, its spread is the range of the best scores of the suite.
    """
    tops = [level.high for level in before.values()]
    across = max(tops, default=0.0) - min(tops, default=0.0)
    after, known, fell = dict(before), 0, set()
    for report in run.reports:
        now = _level(report)
        # A canary with another query is another one. The query itself is not kept.
        identity = f"{report.canary.name}\0{report.canary.query}".encode("utf-8", "surrogatepass")
        key = hashlib.sha256(identity).hexdigest()[:16]
        if now is None:
            continue
        old = before.get(key)
        spread = 0.0 if old is None else (old.high - old.low) or across
        known += old is not None
        if old is None or not spread or now.high >= old.high - spread or old.fallen >= RELEARN_RUNS:
            after[key] = now
        else:
            fell.add(report.canary.name)
            after[key] = old._replace(fallen=old.fallen + 1)
    if not fell or len(fell) < known:
        return run, after
    reports = (replace(report, scores_fell=report.canary.name in fell) for report in run.reports)
    return replace(run, reports=tuple(reports)), after


def _level(report: CanaryReport) -> ScoreLevel | None:
    """Scores of a run; None without a direction, or if a passage has no score."""
    scores = [hit.score for hit in report.retrieved.hits if hit.score is not None]
    if report.retrieved.direction is None or not scores or len(scores) < len(report.retrieved.hits):
        return None
    sign = 1.0 if report.retrieved.direction is Direction.SIMILARITY else -1.0
    ordered = sorted(sign * score for score in scores)
    return ScoreLevel(ordered[0], ordered[-1])


def tallies_of(run: SuiteReport) -> Tallies:
    """Returns what a run adds to the counters. Durations of failed calls are not observed."""
    tallies: Tallies = Counter({(Tally.CANARY_RUNS, (run.suite,)): 1})
    for failure, count in run.failures.items():
        tallies[Tally.CANARY_FAILURES, (run.suite, str(failure))] += count
    for report in run.reports:
        if report.failure is None:
            observe(tallies, Tally.CANARY_SECONDS, (run.suite,), report.retrieved.seconds)
    return tallies


def gauges_of(
    run: SuiteReport, *, at: float, last_success: float | None, ks: Collection[int] | None = None
) -> dict[tuple[Gauge, tuple[str, ...]], float]:
    """Returns the known gauges of a run, given when every canary last got a reply; by default for all cut-offs."""
    exported = tuple(k for k in run.ks if ks is None or k in ks)
    gauges = _ratios(run, None, exported)
    for category, part in run.by_category.items():
        gauges |= _ratios(part, category, exported)
    for report in run.reports:
        success = None if report.failure else float(report.success)
        gauges[Gauge.CANARY_SUCCESS, (run.suite, report.canary.name)] = success
    gauges |= {(Gauge.CANARY_ANSWER, (run.suite, *labels)): mean for labels, mean in answer_means(run.answers).items()}
    gauges |= {
        (Gauge.CANARY_LAST_RUN, (run.suite,)): at,
        (Gauge.CANARY_LAST_SUCCESS, (run.suite,)): last_success,
    }
    return {key: value for key, value in gauges.items() if value is not None}


def sums_of(run: SuiteReport, at: float) -> dict[BucketKey, Addends]:
    """Returns what a run at this time adds to the trends: each figure counts once. Unknown figures are left out."""
    figures = {
        f"{metric}@{k}" if metric.row.by_k else str(metric): run.mean(metric, k)
        for metric in EXPORTED
        for k in (run.ks if metric.row.by_k else (run.cutoff,))
    }
    figures["degraded"] = len(run.degraded) / run.replies if run.replies else None
    means = answer_means(run.answers)
    figures |= {f"{quantity} ({contexts} contexts)": value for (quantity, contexts), value in means.items()}
    sums: dict[BucketKey, Addends] = {}
    for name, figure in figures.items():
        if figure is not None:
            add_to(sums, TrendKey(TrendKind.CANARY, run.suite, name), at, Addends.one(figure, 1.0))
    return sums


def _ratios(
    run: SuiteReport, category: Category | None, ks: Sequence[int]
) -> dict[tuple[Gauge, tuple[str, ...]], float | None]:
    """Figures of a suite, or of one category of its canaries, by gauge; unknown ones are None."""
    labels = (run.suite,) if category is None else (run.suite, str(category))
    gauges: dict[tuple[Gauge, tuple[str, ...]], float | None] = {}
    for metric in EXPORTED:
        gauge = metric.row.gauge if category is None else metric.row.by_category
        if metric.row.by_k:
            gauges |= {(gauge, (*labels, str(k))): run.mean(metric, k) for k in ks}
        else:
            gauges[gauge, labels] = run.mean(metric)
    degraded = Gauge.CANARY_DEGRADED if category is None else Gauge.CANARY_CATEGORY_DEGRADED
    return gauges | {(degraded, labels): len(run.degraded) if run.replies else None}
