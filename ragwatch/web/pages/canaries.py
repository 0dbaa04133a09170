"""Builds the data of the canary page: the last run of each suite, its history, and changes of each canary."""

from collections.abc import Iterable, Iterator

from ragwatch import __version__
from ragwatch.ports import NoteStore
from ragwatch.statistics.canary.answer import GOLD, RETRIEVED, answers_line
from ragwatch.statistics.canary.definition import Hit
from ragwatch.statistics.canary.history import CanaryDiff, RankChange, changes, report_of
from ragwatch.statistics.canary.metric import CanaryMetric
from ragwatch.statistics.canary.report import CanaryReport, SuiteReport, category_line
from ragwatch.statistics.snapshot import Snapshot
from ragwatch.statistics.tally import Tally
from ragwatch.web.pages.drift_replies import (
    Canaries,
    DegradedCanary,
    PastRun,
    RankedHit,
    RankMove,
    Suite,
    WrongAnswer,
)
from ragwatch.web.samples import shortened
from ragwatch.web.scope import PageScope

KIND = "canary"
MAX_RUNS, MIN_RUNS = 40, 5
MAX_REPORTS = 2000  # per suite, at about 0.2 ms each: large suites show fewer runs
MAX_LISTED, MAX_HITS = 50, 5
MAX_LABEL_CHARS = 60
_NO_RUN: Suite = {
    "suite": "",
    "state": "silent",
    "at": None,
    "canaries": 0,
    "degraded": (),
    "failed": (),
    "history": (),
}
_HEADLINES = {
    "bad": "Retrieval has degraded",
    "wrong": "Answers to canaries are wrong",
    "unsure": "Some canary queries failed",
    "good": "No canary is degraded",
    "silent": "No canary has run yet",
}


def suites_of(scope: PageScope, snapshot: Snapshot | None) -> tuple[str, ...]:
    """Suites to show: the configured ones, or else those that have run."""
    if scope.suites or snapshot is None:
        return scope.suites
    return tuple(sorted({labels[0] for tally, labels in snapshot.tallies if tally is Tally.CANARY_RUNS}))


def canaries(store: NoteStore, suites: Iterable[str], *, now: float) -> Canaries:
    """Builds the data of the canary page. Raises StoreError: the runs cannot be read."""
    views = [_suite(store, suite, now) for suite in suites]
    states = [view["state"] for view in views]
    state = next((state for state in ("bad", "unsure", "good") if state in states), "silent")
    degraded = sum(len(view["degraded"]) for view in views)
    return {
        "version": __version__,
        "now": now,
        "state": state,
        "headline": _HEADLINES["wrong" if state == "bad" and not degraded else state],
        "degraded": degraded,
        "asked": sum(view["canaries"] for view in views),
        "suites": views,
    }


def _suite(store: NoteStore, suite: str, now: float) -> Suite:
    runs = _runs(store, suite)
    if not runs:
        return _NO_RUN | {"suite": suite}
    at, latest = runs[0]
    changed = changes([report for _, report in runs])
    return {
        "suite": suite,
        "state": _state(latest),
        "at": at,
        "age_seconds": max(now - at, 0.0),
        "canaries": len(latest.reports),
        "cutoff": latest.cutoff,
        "recall": latest.mean(CanaryMetric.RECALL),
        "mrr": latest.mean(CanaryMetric.MRR),
        "coverage": latest.mean(CanaryMetric.COVERAGE),
        "health": latest.mean(CanaryMetric.HEALTH),
        "by_k": [
            {
                "k": k,
                "recall": latest.mean(CanaryMetric.RECALL, k),
                "precision": latest.mean(CanaryMetric.PRECISION, k),
                "f1": latest.mean(CanaryMetric.F1, k),
                "ndcg": latest.mean(CanaryMetric.NDCG, k),
            }
            for k in latest.ks
        ],
        "categories": [
            {"category": str(category), **category_line(part)} for category, part in latest.by_category.items()
        ],
        "degraded": [_degraded(report, changed.get(report.canary.name)) for report in latest.degraded],
        "failed": [
            {"canary": report.canary.name, "reason": str(report.failure), "detail": report.retrieved.detail}
            for report in latest.reports
            if report.failure is not None
        ],
        "scores_fell": latest.scores_fell,
        "answers": answers_line(latest.answers),
        "wrong": list(_wrong(latest)),
        "history": [_past(run_at, report) for run_at, report in reversed(runs)],
        "listed": MAX_LISTED,
    }


def _runs(store: NoteStore, suite: str) -> list[tuple[float, SuiteReport]]:
    """Reads the newest runs with their times, newest first; skips runs in an old format."""
    newest = store.runs(KIND, suite, 1)
    if not newest:
        return []
    last = report_of(suite, newest[0].body)
    size = 1 if last is None else max(len(last.reports), 1)
    limit = min(MAX_RUNS, max(MIN_RUNS, MAX_REPORTS // size))
    stored = ((run.at, report_of(suite, run.body)) for run in store.runs(KIND, suite, limit))
    return [(at, report) for at, report in stored if report is not None]


def _state(report: SuiteReport) -> str:
    if report.degraded or report.faults:
        return "bad"
    if report.failures:
        return "unsure"
    return "good" if report.reports else "silent"


def _past(at: float, report: SuiteReport) -> PastRun:
    return {
        "at": at,
        "state": _state(report),
        "canaries": len(report.reports),
        "degraded": len(report.degraded),
        "failed": sum(report.failures.values()),
        "recall": report.mean(CanaryMetric.RECALL),
        "mrr": report.mean(CanaryMetric.MRR),
    }


def _wrong(run: SuiteReport) -> Iterator[WrongAnswer]:
    """Yields the canaries whose answers are wrong, with both answers and the reference."""
    canaries = {report.canary.name: report.canary for report in run.reports}
    answers = {(answer.canary, answer.contexts): answer.answer for answer in run.answers}
    for name, fault in run.faults.items():
        canary = canaries.get(name)
        yield {
            "canary": name,
            "query": "" if canary is None else canary.query,
            "fault": str(fault),
            "reference": None if canary is None else canary.reference,
            "gold": answers.get((name, GOLD)),
            "retrieved": answers.get((name, RETRIEVED)),
        }


def _degraded(report: CanaryReport, change: CanaryDiff | None) -> DegradedCanary:
    expected = zip(report.canary.expected, report.ranks, strict=False)
    return {
        "canary": report.canary.name,
        "query": report.canary.query,
        "category": str(report.canary.category),
        "reason": report.reason,
        "wanted_score": report.canary.min_relevance_score,
        "missing": [shortened(context.label, MAX_LABEL_CHARS) for context, rank in expected if rank is None],
        "came": [_hit(rank, hit) for rank, hit in enumerate(report.retrieved.hits[:MAX_HITS], start=1)],
        "change": None
        if change is None
        else {
            "vanished": [_move(rank_change) for rank_change in change.vanished],
            "moved": [_move(rank_change) for rank_change in change.moved],
            "newcomers": [_hit(rank, hit) for rank, hit in change.newcomers[:MAX_HITS]],
            "score_shift": change.shift,
        },
    }


def _move(rank_change: RankChange) -> RankMove:
    return {
        "context": shortened(rank_change.label, MAX_LABEL_CHARS),
        "before": rank_change.before,
        "after": rank_change.after,
        "instead": None if rank_change.instead is None else _name(rank_change.instead),
    }


def _hit(rank: int, hit: Hit) -> RankedHit:
    return {"rank": rank, "context": _name(hit), "score": hit.score}


def _name(hit: Hit) -> str:
    return shortened(hit.id or hit.text or "a passage without id and text", MAX_LABEL_CHARS)
