"""Serves the page of a route: its figures by stage (retrieval, generation, alignment) and end to end, and what moved.

End-to-end figures alone name no stage, and figures of one stage do not say whether users are served: side by side they
do. Retrieval comes first, because the generator depends on the retrieved contexts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.routing import Route

from ragwatch import __version__
from ragwatch.core.estimators.level import CALIBRATED_LABELS
from ragwatch.core.feedback import NAME
from ragwatch.core.sample import OTHER
from ragwatch.core.snapshot import EstimateRow, Gauge, SegmentRow, Snapshot
from ragwatch.core.tally import Tally
from ragwatch.model.quantities import LOW_IS_GOOD, Quantity, quantity_of
from ragwatch.model.stages import Stage
from ragwatch.web import figure_replies
from ragwatch.web.figure_replies import Difference, Figure, JudgeFigures, LevelRow, RouteLevel, SegmentTable, StageShare
from ragwatch.web.last_week import changes_since_last_week
from ragwatch.web.overview import NO_CHANGES, Changes, overview
from ragwatch.web.pages import Site
from ragwatch.web.request_limit import MIB
from ragwatch.web.scope import PageScope


def segment_tables(snapshot: Snapshot, scope: PageScope, *, route: str, judge: str, window: str) -> list[SegmentTable]:
    """Builds a table for each segment that has estimates: a row for each quantity and value, in the configured order.

    A row is `bad` if its whole interval lies on the wrong side of the threshold of the route.
    """
    by_segment: dict[str, list[SegmentRow]] = {}
    for row in snapshot.segments:
        if (row.route, row.judge, row.window) == (route, judge, window):
            by_segment.setdefault(row.segment, []).append(row)
    return [
        {"segment": segment, "rows": _rows(by_segment[segment], (*values, OTHER), scope)}
        for segment, values in scope.segments.items()
        if segment in by_segment
    ]


def _rows(rows: Sequence[SegmentRow], values: Sequence[str], scope: PageScope) -> list[figure_replies.SegmentRow]:
    places = {value: place for place, value in enumerate(values)}
    quantities = list(dict.fromkeys(row.quantity for row in rows))
    ordered = sorted(rows, key=lambda row: (quantities.index(row.quantity), places.get(row.value, len(places))))
    return [_segment_row(row, scope.threshold(str(row.quantity), row.route)) for row in ordered]


def _segment_row(row: SegmentRow, threshold: float | None) -> figure_replies.SegmentRow:
    estimate = row.estimate
    bad = threshold is not None and (
        estimate.low > threshold if row.quantity in LOW_IS_GOOD else estimate.high < threshold
    )
    return {
        "quantity": str(row.quantity),
        "value": row.value,
        "mean": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "n": estimate.n,
        "threshold": threshold,
        "bad": bad,
    }


RESPONSE_SIZE = MIB  # approximate memory for one response
RETRIEVAL, GENERATION, ALIGNMENT, END_TO_END, CRITERIA = (
    "retrieval",
    "generation",
    "alignment",
    "end to end",
    "criteria",
)
_NOT_FOUND = 404
_QUANTITIES: Mapping[str, tuple[Quantity, ...]] = {
    str(stage): tuple(quantity for quantity in Quantity if quantity.row.stage is stage)
    for stage in (Stage.RETRIEVAL, Stage.GENERATION, Stage.ALIGNMENT)
}
_HEADLINES = {
    RETRIEVAL: "Retrieval has become worse: look there first",
    GENERATION: "Generation has become worse, and retrieval has not",
    ALIGNMENT: "Alignment has become worse: the answers ignore the best context",
    END_TO_END: "Answers have become worse by labels, and no stage has",
    CRITERIA: "Answers meet a criterion of yours less often",
}
_MISSING = {
    RETRIEVAL: "no relevance judgements in the log and no canary suite",
    END_TO_END: "no answer of this window has a label (command `label`), and no canary has an expected answer",
}

MAX_ANNOTATORS = 5  # without whom a corrected estimate is shown
_NO_JUDGE: JudgeFigures = {"judge": "", "why": None, "coverage": None, "judged": 0, "figures": []}


def route_routes(site: Site) -> list[Route]:
    """Routes of the page of one route of the service and of its data as JSON; the query parameter `route` names it."""

    def view(request: Request) -> tuple[figure_replies.Route, int]:
        name, window = request.query_params.get("route", ""), request.query_params.get("window")
        changes = changes_since_last_week(site, window)
        snapshot, scope = site.board.latest(), site.scope()
        shown = route_levels(snapshot, scope, name, now=site.clock(), window=window, changes=changes)
        return shown, 200 if shown["known"] else _NOT_FOUND

    return [
        site.page("/routes", "route.html", view, RESPONSE_SIZE, refreshes=True),
        site.reply("/api/v1/routes", view, RESPONSE_SIZE),
    ]


def route_levels(
    snapshot: Snapshot | None,
    scope: PageScope,
    route: str,
    *,
    now: float,
    window: str | None = None,
    changes: Changes = NO_CHANGES,
) -> figure_replies.Route:
    """Builds the data of the page.

    A figure is worse if a drift alarm stands, or if its whole interval lies on the worse side of its baseline.
    """
    view = overview(snapshot, scope, now=now, window=window, changes=changes)
    shown = snapshot or Snapshot(at=now)
    known = next((entry for entry in view["routes"] if entry["route"] == route), None)
    judges = known["judges"] if known else []
    builder = _Levels(shown, route, view["window"], judges, tuple(map(quantity_of, scope.criteria)))
    levels = builder.levels()
    stages = known["stages"] if known else []
    worse = [level["level"] for level in levels if any(row["moved"] == "worse" for row in level["rows"])]
    compared = any(row["baseline"] is not None for level in levels for row in level["rows"])
    return {
        "version": __version__,
        "known": known is not None,
        "route": route,
        "at": view["at"],
        "now": now,
        "window": view["window"],
        "windows": view["windows"],
        "state": "bad" if worse else "good" if compared else "silent",
        "headline": _HEADLINES[_worst_of(worse, stages)] if worse else _quiet(compared=compared),
        "levels": levels,
        "segments": segment_tables(shown, scope, route=route, judge=builder.judge, window=view["window"]),
        "stages": stages,
    }


def _worst_of(worse: Sequence[str], stages: Sequence[StageShare]) -> str:
    """The level to name: retrieval first, then the stage that is at fault most often in the window."""
    shares = {part["stage"]: part["share"] for part in stages}
    return worse[0] if worse[0] == RETRIEVAL else max(worse, key=lambda level: shares.get(level, 0.0))


def _quiet(*, compared: bool) -> str:
    return "Nothing has become worse than its baseline" if compared else "No baseline to compare with yet"


class _Levels:
    """Builds the rows of a route."""

    def __init__(
        self,
        snapshot: Snapshot,
        route: str,
        window: str,
        judges: Sequence[JudgeFigures],
        criteria: tuple[Quantity, ...],
    ) -> None:
        self._criteria = criteria
        self._snapshot = snapshot
        self._gauges = snapshot.gauges
        self._route = route
        self._window = window
        self._judge = next(iter(judges), _NO_JUDGE)

    @property
    def judge(self) -> str:
        """Name of the default judge."""
        return self._judge["judge"]

    def levels(self) -> list[RouteLevel]:
        """The levels with their rows; `why` says why a level has no figures of its own kind."""
        judged = {level: list(self._judged(quantities)) for level, quantities in _QUANTITIES.items()}
        rankings = [*self._ranked(), *self._canaries()]
        answered = [*self._labelled(), *self._by_reference(), *self._rated(), *self._canary_answers()]
        criteria = list(self._judged(self._criteria))
        return [
            self._level(RETRIEVAL, [*judged[RETRIEVAL], *rankings], missing=not rankings),
            self._level(GENERATION, judged[GENERATION], missing=False),
            self._level(ALIGNMENT, judged[ALIGNMENT], missing=False),
            self._level(END_TO_END, answered, missing=not answered),
            *([self._level(CRITERIA, criteria, missing=False)] if self._criteria else []),
        ]

    @staticmethod
    def _level(level: str, rows: list[LevelRow], *, missing: bool) -> RouteLevel:
        return {"level": level, "rows": rows, "why": _MISSING[level] if missing else None}

    def _judged(self, quantities: tuple[Quantity, ...]) -> Iterator[LevelRow]:
        """Figures by the default judge, beside the baseline of the drift detector."""
        by_name = {figure["quantity"]: figure for figure in self._judge["figures"]}
        for quantity in quantities:
            figure = by_name.get(str(quantity))
            if figure is None or figure.get("value") is None:
                continue
            baseline = self._gauges.get((Gauge.DRIFT_BASELINE, (str(quantity), self._route)))
            alarm = bool(self._gauges.get((Gauge.DRIFT_ALARM, (str(quantity), self._route))))
            yield from self._uncalibrated(quantity)
            interval = figure["low"], figure["high"]
            parameters = {"route": self._route, "judge": self._judge["judge"], "quantity": quantity}
            yield _row(
                str(quantity),
                f"judge {self._judge['judge']}{_unmeasured(figure)}",
                figure["value"],
                interval=interval,
                count=figure["n"],
                baseline=baseline,
                moved="worse" if alarm else _moved(quantity, interval, baseline),
                samples=f"samples?{urlencode(parameters)}",
                change=figure.get("change"),
            )

    def _uncalibrated(self, quantity: Quantity) -> Iterator[LevelRow]:
        """The level of a quantity of which nobody has labelled an answer."""
        for row in self._snapshot.corrected:
            if row.quantity == quantity and self._is_shown(row) and not row.labels_given and not row.reference:
                interval = row.estimate.low, row.estimate.high
                source = f"level in people's terms: not calibrated yet, 0 of {CALIBRATED_LABELS} labels"
                yield _row(str(quantity), source, row.estimate.value, interval=interval, count=row.estimate.n)

    def _ranked(self) -> Iterator[LevelRow]:
        """Ranking metrics of answers whose records carry relevance judgements, since the state was created."""
        ranked = self._snapshot.tallies.get((Tally.RANKED, (self._route,)), 0)
        for (tally, labels), total in sorted(self._snapshot.tallies.items()):
            if tally is Tally.RANKING_SCORE and labels[0] == self._route and labels[1] in ("recall", "mrr") and ranked:
                name = f"{labels[1]}@{labels[2]}" if labels[2] else labels[1]
                yield _row(name, "relevance judgements in the log, since the start", total / ranked, count=int(ranked))

    def _canaries(self) -> Iterator[LevelRow]:
        """Recall, and MRR beside it, of each canary suite. They are not of one route."""
        for (gauge, labels), value in sorted(self._gauges.items()):
            if gauge is Gauge.CANARY_RECALL:
                yield _row(f"recall@{labels[1]}", f"canary suite {labels[0]}, all routes", value)
            elif gauge is Gauge.CANARY_RECIPROCAL_RANK:
                yield _row("mrr", f"canary suite {labels[0]}, all routes", value)

    def _labelled(self) -> Iterator[LevelRow]:
        """Estimates that are corrected by labels of people."""
        for row in self._snapshot.corrected:
            if self._is_shown(row) and row.labels_given:
                estimate = row.estimate
                interval = estimate.low, estimate.high
                yield _row(str(row.quantity), _people(row), estimate.value, interval=interval, count=estimate.n)
                yield from _without_each(row)

    def _rated(self) -> Iterator[LevelRow]:
        """The mean score by users, of the answers that they chose to rate."""
        for row in self._snapshot.user_scores.rows:
            if (row.route, row.window) == (self._route, self._window):
                estimate = row.estimate
                source = f"feedback of users on {100 * estimate.coverage:.2g} % of the answers, which they chose"
                interval = estimate.low, estimate.high
                yield _row(NAME, source, estimate.value, interval=interval, count=estimate.n)

    def _is_shown(self, row: EstimateRow) -> bool:
        return (row.route, row.window, row.judge) == (self._route, self._window, self._judge["judge"])

    def _by_reference(self) -> Iterator[LevelRow]:
        """What the reference judge would say of every answer: it has read a known share, and corrects the other."""
        for row in self._snapshot.corrected:
            if self._is_shown(row) and row.reference:
                interval = row.estimate.low, row.estimate.high
                source = f"judge {row.judge} corrected by {row.reference}, which read {row.estimate.n:,} answers"
                yield _row(str(row.quantity), source, row.estimate.value, interval=interval, count=row.estimate.n)

    def _canary_answers(self) -> Iterator[LevelRow]:
        for (gauge, labels), value in sorted(self._gauges.items()):
            if gauge is Gauge.CANARY_ANSWER:
                suite, quantity, contexts = labels
                yield _row(quantity, f"answers of canary suite {suite}, {contexts} contexts, all routes", value)


def _people(row: EstimateRow) -> str:
    """Who stands behind a level."""
    counted = f"{row.labels} of {row.labels_given} labels still count" if row.labels < row.labels_given else ""
    wanted = "" if row.calibrated else f"not calibrated yet, {row.labels} of {CALIBRATED_LABELS} labels"
    count = None if row.annotators is None else row.annotators.count
    people = "people" if count is None else "one person" if count == 1 else f"{count} people"
    alone = "" if row.annotators is None or row.annotators.stands_on is None else row.annotators.stands_on
    said = [f"labels of {people} and judge", f"stands on {alone} alone" if alone else "", counted, wanted]
    return "; ".join(filter(None, said))


def _without_each(row: EstimateRow) -> Iterator[LevelRow]:
    """The estimate without each of the annotators with most labels."""
    for one in () if row.annotators is None else row.annotators.without[:MAX_ANNOTATORS]:
        if one.estimate is not None:
            source = f"the same without the {one.labels} labels of {one.annotator}"
            interval = one.estimate.low, one.estimate.high
            yield _row(str(row.quantity), source, one.estimate.value, interval=interval, count=one.estimate.n)


def _row(
    name: str,
    source: str,
    value: float,
    *,
    interval: tuple[float, float] | None = None,
    count: int | None = None,
    baseline: float | None = None,
    moved: str | None = None,
    samples: str | None = None,
    change: Difference | None = None,
) -> LevelRow:
    return {
        "name": name,
        "source": source,
        "value": value,
        "low": interval[0] if interval else None,
        "high": interval[1] if interval else None,
        "n": count,
        "baseline": baseline,
        "moved": moved,
        "samples": samples,
        "change": change,
    }


def _unmeasured(figure: Figure) -> str:
    share = figure.get("unmeasured", 0.0)
    return f"; {share:.0%} of the answers in languages in which it was not measured: changes alone" if share else ""


def _moved(quantity: Quantity, interval: tuple[float, float], baseline: float | None) -> str | None:
    """`worse` if a whole interval lies on the worse side of the baseline, else `not worse`; None without a baseline.

    A baseline is the worst mean that fits what was learned, so that better than the baseline is no news.
    """
    if baseline is None:
        return None
    low, high = interval
    return "worse" if (low > baseline if quantity in LOW_IS_GOOD else high < baseline) else "not worse"
