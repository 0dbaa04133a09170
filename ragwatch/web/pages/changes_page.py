"""Serves the comparison of before and after an event: every quantity of a route, or figure of a canary suite."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.routing import Route

from ragwatch.errors import StoreError
from ragwatch.model.estimate import Addends
from ragwatch.model.quantities import LOW_IS_GOOD, Quantity
from ragwatch.ports import Query, RecordedEvent, Store, TrendQuery, TrendSums
from ragwatch.statistics import compare
from ragwatch.statistics.compare_line import ComparedAnswer, answer_of, compare_answers, compare_line
from ragwatch.statistics.snapshot import Snapshot
from ragwatch.statistics.trends import (
    COARSE,
    DAY,
    HOUR,
    Sides,
    TrendKey,
    TrendKind,
    difference,
    estimate_of,
    mean_of,
    sides_of,
    start_of,
)
from ragwatch.web.json_values import ParameterError, check_names, chosen
from ragwatch.web.pages.canaries import suites_of
from ragwatch.web.pages.figure_replies import (
    ChangeRow,
    Changes,
    ChangeSides,
    ComparedMeans,
    Difference,
    SideMean,
)
from ragwatch.web.pages.overview import NO_CHANGES, interval_of, routes_of, window_of
from ragwatch.web.pages.overview import Changes as WeekChanges
from ragwatch.web.pages.pages import Site, event_line
from ragwatch.web.request_limit import MIB
from ragwatch.web.samples import MAX_LIMIT, moment, span_of
from ragwatch.web.scope import PageScope

RESPONSE_SIZE = 8 * MIB  # approximate memory for one response
SPANS: Mapping[str, int] = {"1h": HOUR, "6h": 6 * HOUR, "1d": DAY, "7d": 7 * DAY}
MAX_AGE_SECONDS = 3650 * DAY
MAX_OTHERS = 20
SAME = "same"
_SAME_SECONDS = 0.01  # addresses hold times to the millisecond
_LOW_IS_GOOD = LOW_IS_GOOD | {"degraded"}
_ORDER = {str(quantity): place for place, quantity in enumerate(Quantity)}
_HEADLINES = {
    "bad": "Worse than before",
    "good": "Better than before",
    "plain": "No clear difference",
    "silent": "Nothing to compare yet",
}
MAX_ANSWERS = 200
"""Of either side, the newest ones: each is decoded with its question, in about a third of a millisecond."""


def same_questions(
    store: Store, *, route: str, judge: str, at: float, seconds: float, confidence: float
) -> dict[str, object]:
    """Compare the newest answers of both sides by question.

    Answers by another version of the judge than the newest one are left out.
    Raises StoreError: the verdicts cannot be read.
    """
    after = _answers(store, Query(route=route, judge=judge, since=at, until=at + seconds, limit=MAX_ANSWERS))
    before = _answers(store, Query(route=route, judge=judge, since=at - seconds, until=at, limit=MAX_ANSWERS))
    version = next((version for version, _ in (*after, *before)), "")
    first, second = ([answer for other, answer in side if other == version] for side in (before, after))
    level = 1.0 - (1.0 - confidence) / len(Quantity)
    line = compare_line(compare_answers(first, second, level), "before", "after")
    return {**line, "limited": max(len(before), len(after)) >= MAX_ANSWERS}


def _answers(store: Store, query: Query) -> list[tuple[str, ComparedAnswer]]:
    """Judged answers with the version of their judge. Without their texts they have no question, and are left out."""
    return [
        (stored.verdict.judge_version, answer_of(stored.verdict, stored.sample))
        for stored in store.find(query)
        if stored.verdict.judged and stored.sample is not None
    ]


@dataclass(frozen=True, slots=True)
class ChangeRequest:
    """What to compare."""

    at: float  # the instant, in seconds since the epoch
    route: str = ""  # the route
    suite: str = ""  # the canary suite, instead of a route
    judge: str = ""  # the judge; empty for the first one
    span: str = "6h"  # name of the length of either side
    questions: str = ""  # `same` to compare answers to the same questions, too

    @classmethod
    def of(cls, parameters: Mapping[str, str], now: float) -> ChangeRequest:
        """Parses the parameters of a request. Raises ParameterError: a parameter is unknown, missing or invalid."""
        check_names(parameters, cls.__slots__)
        at = moment(parameters, "at", now)
        if at is None or not now - MAX_AGE_SECONDS < at <= now:
            raise ParameterError("at: give a time of the past; write 2h or 3d (ago), or 2026-01-31T12:00")
        wanted = cls(at, **{name: value for name, value in parameters.items() if name != "at" and value})
        chosen("span", wanted.span, SPANS)
        if wanted.questions not in ("", SAME):
            raise ParameterError(f"questions: {wanted.questions!r} is not known; use {SAME}, or leave it out")
        return wanted


def change_routes(site: Site) -> list[Route]:
    """Routes of the comparison and of its data as JSON."""

    def view(request: Request) -> tuple[Changes, int]:
        now, scope, snapshot = site.clock(), site.scope(), site.board.latest()
        wanted = ChangeRequest.of(request.query_params, now)
        shown, status = changes(wanted, site.store, scope, now=now)
        known = suites_of(scope, snapshot) if wanted.suite else routes_of(snapshot or Snapshot(at=now), scope)
        name = wanted.suite or wanted.route
        if name and not shown["rows"] and name not in known and status == 200:
            kind = "suite" if wanted.suite else "route"
            choice = f"use one of: {', '.join(known)}" if known else "none is configured"
            return {**shown, "error": f"there is no {kind} of this name; {choice}"}, 404
        return shown, status

    def invalid(_: Request, why: str) -> Changes:
        now = site.clock()
        return {**changes(ChangeRequest(now), None, PageScope(), now=now)[0], "error": why}

    return site.page_and_reply("/changes", "changes.html", view, RESPONSE_SIZE, invalid=invalid)


def changes(
    wanted: ChangeRequest, store: Store | None, scope: PageScope, *, now: float, seconds: int | None = None
) -> tuple[Changes, int]:
    """Builds the data of the page, and the status of the response."""
    length = SPANS[wanted.span] if seconds is None else seconds
    sides = sides_of(wanted.at, length, now=now)
    judge = "" if wanted.suite else wanted.judge or next(iter(scope.judges), "")
    rows: list[ChangeRow] = []
    events: list[RecordedEvent] = []
    same, error, status = None, None, 200
    try:
        if store is not None:
            events = [event for event in store.events(sides.before) if event.at < sides.after]
            sums, sides = _split_sums(store, wanted, judge, sides)
            rows = _rows(sums, sides, wanted, judge, scope.confidence)
            if wanted.questions and not wanted.suite:
                place = {"route": wanted.route, "judge": judge}
                same = same_questions(store, **place, at=wanted.at, seconds=length, confidence=scope.confidence)
    except StoreError as failure:
        error, status = f"the store cannot be read: {failure}", 503
    state = _state(rows)
    causes = [event for event in events if abs(event.at - wanted.at) < _SAME_SECONDS]
    return {
        "now": now,
        "error": error,
        "at": wanted.at,
        "route": wanted.route,
        "suite": wanted.suite,
        "judge": judge,
        "span": wanted.span,
        "questions": wanted.questions,
        "spans": list(SPANS),
        "sides": cast("ChangeSides", sides._asdict()),
        "partial": sides.after > now,
        "state": state,
        "headline": _HEADLINES[state],
        "events": [event_line(event) for event in causes],
        "others": [event_line(event) for event in events if event not in causes][-MAX_OTHERS:],
        "rows": rows,
        "same_questions": same,
    }, status


def _split_sums(store: Store, wanted: ChangeRequest, judge: str, sides: Sides) -> tuple[list[TrendSums], Sides]:
    """The sums of both sides, which meet at the instant if its bucket can be split."""
    kind, place = (TrendKind.CANARY, wanted.suite) if wanted.suite else (TrendKind.SCORE, wanted.route)
    rows = store.trends(TrendQuery(kind, place, sides.span, sides.span, since=sides.before, until=sides.after))
    sums, parts = [row for row in rows if row.series.judge == judge], _parts_of_bucket(store, wanted, judge, sides)
    if parts is None:
        return sums, sides
    whole = [row for row in sums if row.start != sides.end]
    return [*whole, *parts], sides._replace(end=wanted.at, start=wanted.at)


def _parts_of_bucket(store: Store, wanted: ChangeRequest, judge: str, sides: Sides) -> list[TrendSums] | None:
    """The sums of the bucket that contains the instant, split there; None for none, or one of too many answers.

    So a release is compared from its first answer on, not from the next full bucket.
    """
    if wanted.suite or sides.end == sides.start:
        return None
    query = Query(route=wanted.route, judge=judge, since=sides.end, until=sides.start, limit=MAX_LIMIT)
    stored = store.summaries(query)
    if len(stored) >= MAX_LIMIT:
        return None
    parts = []
    for verdict in (one.verdict for one in stored):
        start = sides.before if verdict.at < wanted.at else int(sides.start)
        for quantity, score in verdict.scores.items():
            if score is not None:
                series = TrendKey(TrendKind.SCORE, wanted.route, str(quantity), judge, verdict.judge_version)
                parts.append(TrendSums(series, start, Addends.one(score, verdict.probability)))
    return parts


def _newest_version(
    by_version: Mapping[str, Sequence[tuple[int, Addends]]], sides: Sides
) -> tuple[Addends, Addends, str | None]:
    """Sums of both sides by the version of the judge that read last: scores of two versions are not comparable.

    And another version that read before in its place.
    """
    newest = max(by_version, key=lambda version: max(start for start, _ in by_version[version]))
    split = {version: sides.split(buckets) for version, buckets in by_version.items()}
    before, after = split[newest]
    others = [version for version, (first, _) in split.items() if version != newest and first.n]
    return before, after, others[0] if others and not before.n else None


def _rows(
    stored: Iterable[TrendSums], sides: Sides, wanted: ChangeRequest, judge: str, confidence: float
) -> list[ChangeRow]:
    by_name: dict[str, dict[str, list[tuple[int, Addends]]]] = {}
    for series, start, sums in stored:
        by_name.setdefault(series.name, {}).setdefault(series.version, []).append((start, sums))
    names = sorted(by_name, key=lambda name: (_ORDER.get(name, len(_ORDER)), name))
    compared = {name: _newest_version(by_name[name], sides) for name in names}
    together = sum(bool(before.n and after.n) for before, after, _ in compared.values())
    rows: list[ChangeRow] = []
    for name, (before, after, other) in compared.items():
        samples = {"route": wanted.route, "judge": judge, "quantity": name, "since": f"{sides.start}", "sort": "worst"}
        row: ChangeRow = {
            "name": name,
            "lower_is_better": name in _LOW_IS_GOOD,
            "other_version": other,
            "samples": f"samples?{urlencode(samples)}" if name in _ORDER and not wanted.suite else None,
            **(_means(before, after) if wanted.suite else _compared(name, before, after, confidence, together)),
        }
        rows.append(row)
    return rows


def _compared(name: str, before: Addends, after: Addends, confidence: float, together: int) -> ComparedMeans:
    """Both means with their intervals, and the difference with its own.

    The intervals of the differences hold together (Bonferroni): of many quantities, one always differs by chance.
    """
    level = 1.0 - (1.0 - confidence) / max(1, together)
    compared = difference(before, after, level, low_is_good=name in _LOW_IS_GOOD)
    first, second = estimate_of(before, confidence), estimate_of(after, confidence)
    return {
        "before": None if first is None else cast("SideMean", interval_of(first)),
        "after": None if second is None else cast("SideMean", interval_of(second)),
        "difference": None if compared is None else cast("Difference", compared.change._asdict()),
        "conclusion": None if compared is None else str(compared.conclusion),
        "why": None if compared is None else compared.warning,
    }


def _means(before: Addends, after: Addends) -> ComparedMeans:
    """Both means of the figures of canary runs, which ask the same queries: they have no sampling error."""
    first, second = (mean_of(one).value if one.n else None for one in (before, after))
    value = None if first is None or second is None else second - first
    return {
        "before": None if first is None else {"value": first, "low": None, "high": None, "n": before.n},
        "after": None if second is None else {"value": second, "low": None, "high": None, "n": after.n},
        "difference": None if value is None else {"value": value, "low": None, "high": None},
        "conclusion": None,
        "why": None,
    }


def _state(rows: Iterable[ComparedMeans]) -> str:
    conclusions = [row["conclusion"] for row in rows if row["difference"] is not None]
    if "worse" in conclusions:
        return "bad"
    if "better" in conclusions:
        return "good"
    return "plain" if conclusions else "silent"


def changes_since_last_week(site: Site, requested: str | None) -> WeekChanges:
    """Returns the means of a window less those of the same hours a week ago, where there were answers then.

    Only scores by the version of the judge in force are compared. A store that cannot be read says nothing.
    """
    snapshot, scope = site.board.latest(), site.scope()
    if snapshot is None:
        return NO_CHANGES
    window = window_of(snapshot, scope, requested)
    end = site.clock() - 7 * DAY
    since, until = start_of(end - (span_of(window) or HOUR), COARSE), start_of(end, COARSE) + COARSE
    rows = [row for row in snapshot.estimates if row.window == window]
    changes: dict[tuple[str, str, str], Difference] = {}
    try:
        for route in sorted({row.route for row in rows}):
            sums: defaultdict[tuple[str, str], Addends] = defaultdict(Addends)
            for series, _, addends in site.store.trends(
                TrendQuery(TrendKind.SCORE, route, COARSE, COARSE, since=since, until=until)
            ):
                if series.version == snapshot.judges.get(series.judge, ("", None))[1]:
                    sums[series.name, series.judge] += addends
            for row in rows:
                then = estimate_of(sums[str(row.quantity), row.judge], scope.confidence)
                if row.route == route and then is not None:
                    moved = compare.change(then, row.estimate)
                    changes[str(row.quantity), route, row.judge] = cast("Difference", moved._asdict())
    except StoreError:
        return NO_CHANGES
    return changes
