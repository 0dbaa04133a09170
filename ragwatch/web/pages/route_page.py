"""Serves the page of a route: its figures by stage (retrieval, generation, alignment) and end to end, and what moved.

End-to-end figures alone name no stage, and figures of one stage do not say whether users are served: side by side they
do. Retrieval comes first, because the generator depends on the retrieved contexts.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.routing import Route

from ragwatch import __version__
from ragwatch.model.quantities import Quantity, is_worse, quantity_of
from ragwatch.model.sample import OTHER
from ragwatch.model.stages import Stage
from ragwatch.statistics.estimators.level import calibration_status
from ragwatch.statistics.feedback import NAME
from ragwatch.statistics.snapshot import EstimateRow, Gauge, SegmentRow, Snapshot
from ragwatch.statistics.tally import Tally
from ragwatch.web.pages import figure_replies
from ragwatch.web.pages.changes_page import changes_since_last_week
from ragwatch.web.pages.figure_replies import JudgeFigures, LevelRow, RouteLevel, SegmentTable
from ragwatch.web.pages.overview import NO_CHANGES, Changes, interval_of, overview
from ragwatch.web.pages.pages import Site
from ragwatch.web.request_limit import MIB
from ragwatch.web.scope import PageScope

RESPONSE_SIZE = MIB  # approximate memory for one response
RETRIEVAL, GENERATION, ALIGNMENT = map(str, (Stage.RETRIEVAL, Stage.GENERATION, Stage.ALIGNMENT))
END_TO_END, CRITERIA = "end to end", "criteria"
_QUANTITIES: Mapping[str, tuple[Quantity, ...]] = {
    level: tuple(quantity for quantity in Quantity if quantity.row.stage == level)
    for level in (RETRIEVAL, GENERATION, ALIGNMENT)
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
        return shown, 200 if shown["known"] else 404

    return site.page_and_reply("/routes", "route.html", view, RESPONSE_SIZE, refreshes=True)


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
    judge = next(iter(known["judges"] if known else ()), _NO_JUDGE)
    levels = _Levels(shown, route, view["window"], judge, tuple(map(quantity_of, scope.criteria))).levels()
    stages = known["stages"] if known else []
    shares = {part["stage"]: part["share"] for part in stages}
    worse = [level["level"] for level in levels if any(row["moved"] == "worse" for row in level["rows"])]
    compared = any(row["baseline"] is not None for level in levels for row in level["rows"])
    headline = "Nothing has become worse than its baseline" if compared else "No baseline to compare with yet"
    if worse:  # retrieval first, then the stage that is at fault most often in the window
        first = worse[0] if worse[0] == RETRIEVAL else max(worse, key=lambda level: shares.get(level, 0.0))
        headline = _HEADLINES[first]
    return {
        "version": __version__,
        "known": known is not None,
        "route": route,
        "at": view["at"],
        "now": now,
        "window": view["window"],
        "windows": view["windows"],
        "state": "bad" if worse else "good" if compared else "silent",
        "headline": headline,
        "levels": levels,
        "segments": list(_segment_tables(shown, scope, (route, judge["judge"], view["window"]))),
        "stages": stages,
    }


def _segment_tables(snapshot: Snapshot, scope: PageScope, place: tuple[str, str, str]) -> Iterator[SegmentTable]:
    """Yields a table for each segment that has estimates: a row for each quantity and value, in the configured order.

    A row is `bad` if its whole interval lies on the wrong side of the threshold of the route.
    """
    by_segment: dict[str, list[SegmentRow]] = {}
    for row in snapshot.segments:
        if (row.route, row.judge, row.window) == place:
            by_segment.setdefault(row.segment, []).append(row)
    for segment, values in scope.segments.items():
        rows = by_segment.get(segment, [])
        places = {value: number for number, value in enumerate((*values, OTHER))}
        quantities = list(dict.fromkeys(row.quantity for row in rows))
        rows.sort(key=lambda row: (quantities.index(row.quantity), places.get(row.value, len(places))))
        if rows:
            yield {"segment": segment, "rows": [_segment_row(row, scope) for row in rows]}


def _segment_row(row: SegmentRow, scope: PageScope) -> figure_replies.SegmentRow:
    estimate, threshold = row.estimate, scope.threshold(str(row.quantity), row.route)
    return {
        "quantity": str(row.quantity),
        "value": row.value,
        "mean": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "n": estimate.n,
        "threshold": threshold,
        "bad": threshold is not None and is_worse(row.quantity, estimate.low, estimate.high, threshold),
    }


@dataclass(frozen=True, slots=True)
class _Levels:
    """Builds the rows of a route: figures by the default judge, and what stands beside them."""

    snapshot: Snapshot
    route: str
    window: str
    judge: JudgeFigures
    criteria: tuple[Quantity, ...]

    def levels(self) -> list[RouteLevel]:
        """The levels with their rows; `why` says why a level has no figures of its own kind."""
        rows = {level: list(self._judged(quantities)) for level, quantities in _QUANTITIES.items()}
        rankings = [*self._ranked(), *self._gauges(Gauge.CANARY_RECALL, Gauge.CANARY_RECIPROCAL_RANK)]
        rows[RETRIEVAL] += rankings
        rows[END_TO_END] = [*self._by_people(), *self._rated(), *self._gauges(Gauge.CANARY_ANSWER)]
        if self.criteria:
            rows[CRITERIA] = list(self._judged(self.criteria))
        own = {RETRIEVAL: rankings, END_TO_END: rows[END_TO_END]}
        why = {level: _MISSING[level] for level, figures in own.items() if not figures}
        return [{"level": level, "rows": rows[level], "why": why.get(level)} for level in rows]

    def _judged(self, quantities: tuple[Quantity, ...]) -> Iterator[LevelRow]:
        """Figures by the judge, beside the baseline of the drift detector, each behind a level that nobody labelled.

        A baseline is the worst mean that fits what was learned, so that better than the baseline is no news.
        """
        judge, by_name = self.judge["judge"], {figure["quantity"]: figure for figure in self.judge["figures"]}
        for quantity in quantities:
            figure = by_name.get(str(quantity))
            if figure is None or figure.get("value") is None:
                continue
            for level in self._corrected():
                if level.quantity == quantity and not level.labels_given and not level.reference:
                    source = f"level in people's terms: {calibration_status(0, 0)}"
                    yield _row(str(quantity), source, **interval_of(level.estimate))
            place, low, high = (str(quantity), self.route), figure["low"], figure["high"]
            baseline, moved = self.snapshot.gauges.get((Gauge.DRIFT_BASELINE, place)), None
            if baseline is not None:
                moved = "worse" if is_worse(quantity, low, high, baseline) else "not worse"
            source = f"judge {judge}"
            if share := figure.get("unmeasured", 0.0):
                source += f"; {share:.0%} of the answers in languages in which it was not measured: changes alone"
            parameters = {"route": self.route, "judge": judge, "quantity": quantity}
            yield {
                **_row(str(quantity), source, figure["value"], low=low, high=high, n=figure["n"]),
                "baseline": baseline,
                "moved": "worse" if self.snapshot.gauges.get((Gauge.DRIFT_ALARM, place)) else moved,
                "samples": f"samples?{urlencode(parameters)}",
                "change": figure.get("change"),
            }

    def _ranked(self) -> Iterator[LevelRow]:
        """Ranking metrics of answers whose records carry relevance judgements, since the state was created."""
        ranked = self.snapshot.tallies.get((Tally.RANKED, (self.route,)), 0)
        for (tally, labels), total in sorted(self.snapshot.tallies.items()):
            if tally is Tally.RANKING_SCORE and labels[0] == self.route and labels[1] in ("recall", "mrr") and ranked:
                name = f"{labels[1]}@{labels[2]}" if labels[2] else labels[1]
                yield _row(name, "relevance judgements in the log, since the start", total / ranked, n=int(ranked))

    def _gauges(self, *gauges: Gauge) -> Iterator[LevelRow]:
        """Figures of canary suites, which are not of one route."""
        for (gauge, labels), value in sorted(self.snapshot.gauges.items()):
            if gauge not in gauges:
                continue
            name, source = "mrr", f"canary suite {labels[0]}"
            if gauge is Gauge.CANARY_RECALL:
                name = f"recall@{labels[1]}"
            elif gauge is Gauge.CANARY_ANSWER:
                name, source = labels[1], f"answers of canary suite {labels[0]}, {labels[2]} contexts"
            yield _row(name, f"{source}, all routes", value)

    def _by_people(self) -> Iterator[LevelRow]:
        """Levels that labels of people correct, also without one of the annotators with most labels each.

        Then what the reference judge would say of every answer: it has read a known share, and corrects the other.
        """
        for row in self._corrected():
            if row.labels_given:
                yield _row(str(row.quantity), _people(row), **interval_of(row.estimate))
                for one in () if row.annotators is None else row.annotators.without[:MAX_ANNOTATORS]:
                    if one.estimate is not None:
                        source = f"the same without the {one.labels} labels of {one.annotator}"
                        yield _row(str(row.quantity), source, **interval_of(one.estimate))
        for row in self._corrected():
            if row.reference:
                source = f"judge {row.judge} corrected by {row.reference}, which read {row.estimate.n:,} answers"
                yield _row(str(row.quantity), source, **interval_of(row.estimate))

    def _rated(self) -> Iterator[LevelRow]:
        """The mean score by users, of the answers that they chose to rate."""
        for row in self.snapshot.user_scores.rows:
            if (row.route, row.window) == (self.route, self.window):
                source = f"feedback of users on {100 * row.estimate.coverage:.2g} % of the answers, which they chose"
                yield _row(NAME, source, **interval_of(row.estimate))

    def _corrected(self) -> Iterator[EstimateRow]:
        place = self.route, self.judge["judge"], self.window
        return (row for row in self.snapshot.corrected if row.place[1:] == place)


def _people(row: EstimateRow) -> str:
    """Who stands behind a level."""
    counted = calibration_status(row.labels, row.labels_given)
    count = None if row.annotators is None else row.annotators.count
    people = "people" if count is None else "one person" if count == 1 else f"{count} people"
    alone = "" if row.annotators is None or row.annotators.stands_on is None else row.annotators.stands_on
    said = [f"labels of {people} and judge", f"stands on {alone} alone" if alone else "", counted]
    return "; ".join(filter(None, said))


def _row(
    name: str, source: str, value: float, *, low: float | None = None, high: float | None = None, n: int | None = None
) -> LevelRow:
    return {
        "name": name,
        "source": source,
        "value": value,
        "low": low,
        "high": high,
        "n": n,
        "baseline": None,
        "moved": None,
        "samples": None,
        "change": None,
    }
