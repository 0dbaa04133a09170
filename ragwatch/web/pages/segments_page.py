"""Serves the page of a segment: its values by change and level, each beside what the whole route does.

Both are of the stored verdicts: the answers of a window, and those of the same length before. A value with little
traffic is drawn toward the mean of its route, with an interval of its own (`statistics.estimators.shrinkage`).
Intervals are the largest part of what a page costs: they are computed for the values that it shows.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import fsum
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.routing import Route

from ragwatch import __version__
from ragwatch.errors import StoreError
from ragwatch.model.estimate import Addends
from ragwatch.model.quantities import LOW_IS_GOOD, Quantity
from ragwatch.model.sample import OTHER
from ragwatch.ports import SegmentQuery, SegmentSums, Store
from ragwatch.statistics.compare import Conclusion
from ragwatch.statistics.estimators.shrinkage import Noisy, drawn, noisy, score_variance, shrunk, variance_between
from ragwatch.statistics.segments import NO_STEP, STEP, StepMeasure, period_of
from ragwatch.statistics.snapshot import Gauge, Snapshot
from ragwatch.statistics.trends import difference, estimate_of
from ragwatch.web.json_values import ParameterError, check_names, chosen
from ragwatch.web.pages.charts import Scale, TimeAxis, step_path
from ragwatch.web.pages.drift_replies import Segment, SegmentFigure, SegmentNames, SegmentPoint, SegmentValue
from ragwatch.web.pages.overview import routes_of, window_of, windows_of
from ragwatch.web.pages.pages import REFRESH, Site
from ragwatch.web.request_limit import MIB
from ragwatch.web.samples import METADATA_PREFIX, span_of
from ragwatch.web.scope import PageScope

LITTLE = 50.0  # effective number of answers below which a value is drawn toward the mean of its route
SIDE = 5  # steps of the trend before the window, and within
RESPONSE_SIZE = 8 * MIB  # approximate memory for one response
MAX_ANSWERS, MAX_STEP_ANSWERS = 100_000, 20_000  # the newest ones, added up by the database and one by one
PAGE_ROWS = 50


class Sort(StrEnum):
    """Order of the values: the worst change or level first, the most failing or answered, or by name."""

    CHANGE = "change"
    LEVEL = "level"
    FAILING = "failing"
    ANSWERS = "answers"
    VALUE = "value"


class _Value:
    """Sums of a value: of the window, of the time before, and of each step; counts are of the window.

    `level` and `moved` are what its own answers say of the mean and of its change; None without answers.
    """

    level: Noisy | None = None
    moved: Noisy | None = None

    def __init__(self, value: str, rows: Iterable[SegmentSums]) -> None:
        by_step = sorted(rows, key=lambda row: row.step)
        before, now = ([row for row in by_step if (row.step >= SIDE) is late] for late in (False, True))
        self.value = value
        self.steps = {row.step: row.scores for row in by_step}
        self.before, self.now = (Addends.total([row.scores for row in side]) for side in (before, now))
        self.answers = sum(row.answers for row in now)
        self.weight = fsum(row.weight for row in now)
        staged = fsum(row.staged for row in now)
        self.share = fsum(row.failing for row in now) / staged if staged else None  # with a stage at fault
        self.faults: Counter[str] = Counter()
        for row in now:
            self.faults.update(row.faults or {})


@dataclass(frozen=True, slots=True)
class _Common:
    """What values with little traffic are drawn toward; `between` is None where they stay as they are."""

    centre: float
    between: float | None

    @classmethod
    def of(cls, groups: Iterable[Noisy], centre: float) -> _Common:
        known = list(groups)
        return cls(centre, variance_between(known, centre) if all(one.variance > 0.0 for one in known) else None)

    def mean(self, group: Noisy | None, *, little: bool) -> float | None:
        """The mean to show of a group, for the order of the values."""
        if group is not None and self.between is not None and little:
            return drawn(group, self.centre, self.between)
        return None if group is None else group.value


class Values:
    """The values of a segment, in no order, and that of the `whole` route; `low_is_good` is None where neither is."""

    def __init__(
        self, rows: Iterable[SegmentSums], query: SegmentQuery, threshold: float | None, confidence: float
    ) -> None:
        by_value: defaultdict[str | None, list[SegmentSums]] = defaultdict(list)
        for row in rows:
            by_value[row.value].append(row)
        everything = [_Value(name or "", own) for name, own in by_value.items()]
        self.values = [one for name, one in zip(by_value, everything, strict=True) if name is not None]
        lower = query.quantity in (*LOW_IS_GOOD, StepMeasure.IGNORED)
        self.low_is_good = None if (query.key, query.quantity) == (STEP, StepMeasure.USED) else lower
        self._query, self._threshold, self._confidence = query, threshold, confidence
        all_now = Addends.total([one.now for one in everything])
        all_before = Addends.total([one.before for one in everything])
        self._before = _mean(all_before) if all_before.n else None
        least_now, least_before = (score_variance(sums) if sums.n else 0.0 for sums in (all_now, all_before))
        for one in self.values:
            one.level = noisy(one.now, least_now) if one.now.n else None
            if one.level is not None and one.before.n:
                before = noisy(one.before, least_before)
                one.moved = Noisy(one.level.value - before.value, one.level.variance + before.variance)
        whole, levels = _mean(all_now), (one.level for one in self.values if one.level is not None)
        self._level = _Common.of(levels, whole)
        changes = (one.moved for one in self.values if one.moved is not None)
        self._change = _Common.of(changes, whole - _mean(all_before))
        self.whole = self._figure(all_now)

    def _figure(self, sums: Addends) -> SegmentFigure | None:
        own = estimate_of(sums, self._confidence)
        return None if own is None else {"value": own.value, "low": own.low, "high": own.high, "own": None}

    def _change_of(self, one: _Value) -> float | None:
        """The change, for the order; of a value that is new, such as a release, against all of the route before."""
        if one.moved is None and one.level is not None and self._before is not None:
            return one.level.value - self._before
        return self._change.mean(one.moved, little=_is_little(one.now, one.before))

    def sorted(self, sort: Sort) -> list[_Value]:
        """The values in an order; those of which it is not known come last."""
        numbers: Mapping[Sort, Callable[[_Value], float | None]] = {
            Sort.CHANGE: self._change_of,
            Sort.LEVEL: lambda one: self._level.mean(one.level, little=_is_little(one.now)),
            Sort.FAILING: lambda one: one.share,
            Sort.ANSWERS: lambda one: one.weight,
        }

        def rank(one: _Value) -> tuple[bool, float, str]:
            number = numbers[sort](one) if sort in numbers else None
            if number is None:
                return True, 0.0, one.value
            if sort is Sort.CHANGE and self.low_is_good is None:
                number = abs(number)
            rises = sort in (Sort.FAILING, Sort.ANSWERS) or self.low_is_good is not False
            return False, -number if rises else number, one.value

        return sorted(self.values, key=rank)

    def line(self, one: _Value, *, alarmed: Collection[str]) -> SegmentValue:
        """A value as JSON values."""
        level, (change, moved) = self._level_figure(one), self._change_figure(one)
        stage, number = max(one.faults.items(), key=lambda fault: (fault[1], fault[0]), default=(None, 0))
        limit, since, length = self._threshold, self._query.since, self._query.until - self._query.since
        steps = [(since + step * length / (2 * SIDE), one.steps.get(step, Addends())) for step in range(2 * SIDE)]
        worst = None if level is None else level["low" if self.low_is_good else "high"]
        bad = worst is not None and limit is not None and (worst > limit if self.low_is_good else worst < limit)
        return {
            "value": one.value,
            "level": level,
            "bad": bad,
            "change": change,
            "moved": moved,
            "n": one.now.n,
            "n_before": one.before.n,
            "judged": one.answers,
            "answers": one.weight,
            "failing": one.share,
            "failed": sum(one.faults.values()),
            "stage": stage if number else None,
            "of_stage": number,
            "alarm": one.value in alarmed,
            "samples": self._samples(one.value),
            "points": [{"start": start, "mean": _mean(sums) if sums.n else None, "n": sums.n} for start, sums in steps],
        }

    def _level_figure(self, one: _Value) -> SegmentFigure | None:
        between = self._level.between if _is_little(one.now) else None
        if between is None or one.level is None:
            return self._figure(one.now)
        figures = shrunk(one.level, self._level.centre, between, self._confidence)
        return _clipped(*figures, own=one.level.value, least=0.0)

    def _change_figure(self, one: _Value) -> tuple[SegmentFigure | None, str | None]:
        """The change, and whether it is worse or better beyond chance."""
        compared = difference(one.before, one.now, self._confidence, low_is_good=bool(self.low_is_good))
        if compared is None or one.moved is None:
            return None, None
        between = self._change.between if _is_little(one.now, one.before) else None
        if between is None:
            conclusion = compared.conclusion
            change: SegmentFigure = {**compared.change._asdict(), "own": None}  # type: ignore[typeddict-item]
        else:
            figures = shrunk(one.moved, self._change.centre, between, self._confidence)
            change = _clipped(*figures, own=compared.change.value, least=-1.0)
            rose = (change["value"] > 0.0) is not bool(self.low_is_good)
            clear = change["low"] > 0.0 or change["high"] < 0.0
            conclusion = Conclusion.NOISE if not clear else Conclusion.BETTER if rose else Conclusion.WORSE
        is_news = conclusion is not Conclusion.NOISE and self.low_is_good is not None
        return change, str(conclusion) if is_news else None

    def _samples(self, value: str) -> str | None:
        """Address of the answers of a value, the worst first; None where no search finds them."""
        query = self._query
        if query.key == STEP or value in (OTHER, NO_STEP):
            return None
        names = {"route": query.route, "judge": query.judge, "quantity": query.quantity, "sort": "worst"}
        return f"samples?{urlencode({**names, METADATA_PREFIX + query.key: value}, errors='replace')}"


def _is_little(*sums: Addends) -> bool:
    return any(not one.n or one.w * one.w < LITTLE * one.w2 for one in sums)


def _mean(sums: Addends) -> float:
    return sums.wx / sums.w if sums.n else 0.0


def _clipped(value: float, low: float, high: float, *, own: float, least: float) -> SegmentFigure:
    value, low, high = (min(1.0, max(least, one)) for one in (value, low, high))
    return {"value": value, "low": low, "high": high, "own": own}


@dataclass(frozen=True, slots=True)
class SegmentRequest:
    """What to show; empty selects the first one. The quantity of retrieval steps is a `StepMeasure`."""

    route: str = ""
    judge: str = ""
    window: str = ""
    quantity: str = ""
    sort: Sort = Sort.CHANGE
    page: int = 1

    @classmethod
    def of(cls, parameters: Mapping[str, str]) -> SegmentRequest:
        """Parses the parameters of a request. Raises ParameterError: a parameter is unknown or invalid."""
        given = {name: value for name, value in parameters.items() if value and name != REFRESH}
        check_names(given, cls.__slots__)
        sort, page = given.pop("sort", Sort.CHANGE), given.pop("page", "1")
        if not (page.isascii() and page.isdecimal() and len(page) <= 6 and int(page) >= 1):
            raise ParameterError("page: not a whole number from 1")
        return cls(**given, sort=Sort(chosen("sort", sort, Sort)), page=int(page))


def segment_routes(site: Site) -> list[Route]:
    """Routes of the page of a segment and of its data as JSON. They have a thread of their own."""
    own = site.with_own_thread(4 * RESPONSE_SIZE)

    def view(request: Request) -> tuple[Segment, int]:
        wanted, key = SegmentRequest.of(request.query_params), request.path_params["segment"]
        return segment(wanted, key, own.store, own.board.latest(), own.scope(), now=own.clock())

    def invalid(request: Request, why: str) -> Segment:
        key, scope = request.path_params["segment"], own.scope()
        shown, _ = segment(SegmentRequest(), key, None, own.board.latest(), scope, now=own.clock())
        return {**shown, "error": why}

    path = "/segments/{segment:path}"
    return own.page_and_reply(path, "segment.html", view, RESPONSE_SIZE, drawn=page_of, invalid=invalid, refreshes=True)


def page_of(shown: Segment) -> dict[str, object]:
    """The data with lines in SVG on one scale, and the addresses of other views of the page."""
    means = [point["mean"] for row in shown["values"] for point in row["points"] if point["mean"] is not None]
    scale, axis = Scale.around(means), TimeAxis(0, 2 * SIDE, 1)
    kept = {name: shown[name] for name in ("route", "judge", "window", "quantity", "sort")}

    def line(points: Sequence[SegmentPoint]) -> str:
        heights = (None if point["mean"] is None else scale.height(point["mean"]) for point in points)
        return step_path(axis, list(heights))

    def address(**changes: object) -> str:
        return f"?{urlencode({**kept, **changes}, errors='replace')}"

    root = "../" * (1 + shown["segment"].count("/"))
    return {**shown, "line": line, "scale": scale, "address": address, "root": root}


def _chosen(
    wanted: SegmentRequest, key: str, snapshot: Snapshot | None, scope: PageScope, now: float
) -> tuple[SegmentNames, SegmentQuery]:
    """What a request selects, with what there is to select from; and what to read."""
    latest, is_step = snapshot or Snapshot(at=now), key == STEP
    quantities = list(map(str, StepMeasure)) if is_step else [*map(str, Quantity), *scope.criteria]
    routes, windows = routes_of(latest, scope), list(windows_of(snapshot, scope))
    judges = list(dict.fromkeys((*scope.judges, *latest.judges)))
    route, judge = _one_of("route", wanted.route, routes) or OTHER, _one_of("judge", wanted.judge, judges)
    window = _one_of("window", wanted.window, windows) or window_of(snapshot, scope, None)
    active = (labels for (gauge, labels), on in latest.gauges.items() if gauge is Gauge.SEGMENT_DRIFT_ALARM and on)
    alarms = sorted(labels for labels in active if labels[1:3] == (route, key))
    quantity = _one_of("quantity", wanted.quantity or (alarms[0][0] if alarms else ""), quantities)
    begin, until = period_of(latest.at, span_of(window) or 3600.0)
    query = SegmentQuery(
        key=key,
        quantity=quantity,
        route=route,
        judge=judge,
        version=latest.judges.get(judge, ("", ""))[1],
        since=2 * begin - until,
        until=until,
        steps=2 * SIDE,
        limit=MAX_STEP_ANSWERS if is_step else MAX_ANSWERS,
    )
    return {
        "version": __version__,
        "known": is_step or key in scope.segments,
        "segment": key,
        "segments": list(dict.fromkeys((*scope.segments, STEP))),
        "route": route,
        "routes": routes,
        "window": window,
        "windows": windows,
        "judge": judge,
        "judges": judges,
        "quantity": quantity,
        "quantities": quantities,
        "since": query.since,
        "begin": begin,
        "until": until,
        "alarms": [{"quantity": labels[0], "value": labels[3]} for labels in alarms],
    }, query


def segment(
    wanted: SegmentRequest, key: str, store: Store | None, snapshot: Snapshot | None, scope: PageScope, *, now: float
) -> tuple[Segment, int]:
    """Builds the data and the status. Raises ParameterError: there is no such route, judge, window or quantity."""
    names, query = _chosen(wanted, key, snapshot, scope, now)
    rows: list[SegmentSums] = []
    error, status = None, 200 if names["known"] else 404
    try:
        rows = store.segments(query) if store is not None and names["known"] else []
    except StoreError as failure:
        error, status = f"the store cannot be read: {failure}", 503
    limit = None if key == STEP else scope.threshold(query.quantity, query.route)
    values = Values(rows, query, limit, scope.confidence)
    pages = max(1, -(-len(values.values) // PAGE_ROWS))
    page = min(wanted.page, pages)
    shown = values.sorted(wanted.sort)[(page - 1) * PAGE_ROWS : page * PAGE_ROWS]
    alarmed = {alarm["value"] for alarm in names["alarms"]}
    return {
        **names,
        "error": error,
        "at": None if snapshot is None else snapshot.at,
        "now": now,
        "lower_is_better": values.low_is_good,
        "threshold": limit,
        "sort": str(wanted.sort),
        "mean": values.whole,
        "complete": key == STEP or sum(row.answers for row in rows) < query.limit,
        "count": len(values.values),
        "page": page,
        "pages": pages,
        "values": [values.line(one, alarmed=alarmed) for one in shown],
    }, status


def _one_of(name: str, wanted: str, names: Sequence[str]) -> str:
    return chosen(name, wanted, names) if wanted else next(iter(names), "")
