"""Canaries: what the last run of each suite found, and what became of it over time, as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ragwatch.core.canary.definition import Hit
from ragwatch.core.canary.history import CanaryDiff, RankChange, changes, report_of
from ragwatch.core.canary.report import CanaryReport, SuiteReport
from ragwatch.core.snapshot import Snapshot
from ragwatch.core.tally import Tally
from ragwatch.ports import NoteStore
from ragwatch.web.scope import PageScope

KIND = "canary"
MOST_RUNS, FEWEST_RUNS = 40, 5
MOST_REPORTS = 2000  # read for one suite, at some 0.2 ms each: a large one shows fewer runs
LISTED, NEWCOMERS = 50, 5
LABEL_CHARS = 60
_HEADLINES = {
    "bad": "Retrieval has degraded",
    "unsure": "Some canaries could not be asked",
    "good": "Every canary is well",
    "silent": "No canary was asked yet",
}


def suites_of(scope: PageScope, snapshot: Snapshot | None) -> tuple[str, ...]:
    """Suites to show: the configured ones, or else those that ever ran."""
    if scope.suites or snapshot is None:
        return scope.suites
    return tuple(sorted({labels[0] for tally, labels in snapshot.tallies if tally is Tally.CANARY_RUNS}))


def canaries(store: NoteStore | None, suites: Iterable[str], *, now: float) -> dict[str, Any]:
    """All that the page of canaries shows.

    Args:
        store: Keeps the runs; None shows none.
        suites: Which ones.
        now: Seconds since the epoch.

    Raises:
        StoreError: The runs cannot be read.
    """
    shown = [_silent(each) if store is None else _suite(store, each, now) for each in suites]
    states = [each["state"] for each in shown]
    state = next((each for each in ("bad", "unsure", "good") if each in states), "silent")
    return {
        "now": now,
        "state": state,
        "headline": _HEADLINES[state],
        "degraded": sum(len(each["degraded"]) for each in shown),
        "asked": sum(each["canaries"] for each in shown),
        "suites": shown,
    }


def _silent(suite: str) -> dict[str, Any]:
    return {"suite": suite, "state": "silent", "at": None, "canaries": 0, "degraded": [], "failed": [], "history": []}


def _suite(store: NoteStore, suite: str, now: float) -> dict[str, Any]:
    runs = _runs(store, suite)
    if not runs:
        return _silent(suite)
    at, latest = runs[0]
    changed = changes([found for _, found in runs])
    return {
        "suite": suite,
        "state": _state(latest),
        "at": at,
        "age_seconds": max(now - at, 0.0),
        "canaries": len(latest.reports),
        "cutoff": latest.cutoff,
        "recall": latest.recall(latest.cutoff),
        "mrr": latest.mrr,
        "coverage": latest.coverage,
        "health": latest.health,
        "by_k": [_at_k(latest, k) for k in latest.ks],
        "degraded": [_degraded(each, changed.get(each.canary.name)) for each in latest.degraded],
        "failed": [_failed(each) for each in latest.reports if each.failure is not None],
        "history": [_past(when, found) for when, found in reversed(runs)],
        "listed": LISTED,
    }


def _runs(store: NoteStore, suite: str) -> list[tuple[float, SuiteReport]]:
    """The newest runs that can still be read, each with its time, newest first."""
    newest = store.runs(KIND, suite, 1)
    if not newest:
        return []
    last = report_of(suite, newest[0].body)
    size = 1 if last is None else max(len(last.reports), 1)
    limit = min(MOST_RUNS, max(FEWEST_RUNS, MOST_REPORTS // size))
    stored = ((run.at, report_of(suite, run.body)) for run in store.runs(KIND, suite, limit))
    return [(at, found) for at, found in stored if found is not None]


def _state(found: SuiteReport) -> str:
    if found.degraded:
        return "bad"
    if found.failures:
        return "unsure"
    return "good" if found.reports else "silent"


def _at_k(found: SuiteReport, k: int) -> dict[str, Any]:
    return {
        "k": k,
        "recall": found.recall(k),
        "precision": found.precision(k),
        "f1": found.f1(k),
        "ndcg": found.ndcg(k),
    }


def _past(at: float, found: SuiteReport) -> dict[str, Any]:
    return {
        "at": at,
        "state": _state(found),
        "canaries": len(found.reports),
        "degraded": len(found.degraded),
        "failed": sum(found.failures.values()),
        "recall": found.recall(found.cutoff),
        "mrr": found.mrr,
    }


def _failed(found: CanaryReport) -> dict[str, Any]:
    return {"canary": found.canary.name, "reason": str(found.failure), "detail": found.retrieved.detail}


def _degraded(found: CanaryReport, change: CanaryDiff | None) -> dict[str, Any]:
    expected = zip(found.canary.expected, found.ranks, strict=False)
    return {
        "canary": found.canary.name,
        "query": found.canary.query,
        "category": str(found.canary.category),
        "reason": found.reason,
        "wanted_score": found.canary.min_relevance_score,
        "missing": [_cut(each.label) for each, rank in expected if rank is None],
        "came": [_hit(rank, hit) for rank, hit in enumerate(found.retrieved.hits[:NEWCOMERS], start=1)],
        "change": None if change is None else _change(change),
    }


def _change(found: CanaryDiff) -> dict[str, Any]:
    return {
        "vanished": [_move(each) for each in found.vanished],
        "moved": [_move(each) for each in found.moved],
        "newcomers": [_hit(rank, hit) for rank, hit in found.newcomers[:NEWCOMERS]],
        "score_shift": found.shift,
    }


def _move(found: RankChange) -> dict[str, Any]:
    return {
        "context": _cut(found.label),
        "before": found.before,
        "after": found.after,
        "instead": None if found.instead is None else _name(found.instead),
    }


def _hit(rank: int, hit: Hit) -> dict[str, Any]:
    return {"rank": rank, "context": _name(hit), "score": hit.score}


def _name(hit: Hit) -> str:
    return _cut(hit.id or hit.text or "a passage without id and text")


def _cut(text: str) -> str:
    return text if len(text) <= LABEL_CHARS else text[: LABEL_CHARS - 1] + "…"


def points(history: Sequence[dict[str, Any]], figure: str) -> str:
    """The known values of a figure as points of an SVG line: ten units a run, 40 units from 0 (below) to 1.

    >>> points([{"recall": 1.0}, {"recall": None}, {"recall": 0.5}], "recall")
    '5,2 25,22'
    """
    known = ((index, each[figure]) for index, each in enumerate(history) if each[figure] is not None)
    return " ".join(f"{10 * index + 5},{round(42 - 40 * value, 1):g}" for index, value in known)
