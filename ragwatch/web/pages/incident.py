"""Serves an incident as one Markdown file, for a ticket or a post-mortem: what the pages say of a time, in order.

Texts of others stay text: no markup, no link, no mention. Short ones become code spans, long ones code blocks: neither
Markdown, HTML, addresses nor `@names` are read there.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from ragwatch import __version__
from ragwatch.model.quantities import Quantity, quantity_of
from ragwatch.ports import Query, Store, StoredVerdict
from ragwatch.statistics.causes.line import CauseLine
from ragwatch.statistics.estimators.level import calibration_status
from ragwatch.statistics.snapshot import Gauge, Snapshot
from ragwatch.statistics.trends import COARSE, DAY, FINE, FINE_SECONDS
from ragwatch.web.audit_trail import shown
from ragwatch.web.json_values import ParameterError, check_names
from ragwatch.web.pages import figure_replies
from ragwatch.web.pages.canaries import canaries, suites_of
from ragwatch.web.pages.causes import CauseQuestion, causes_view
from ragwatch.web.pages.changes_page import ChangeRequest, changes
from ragwatch.web.pages.drift_page import drift
from ragwatch.web.pages.drift_replies import AnswerDrift, Drift, Suite, TrafficDrift
from ragwatch.web.pages.figure_replies import ChangeRow, Figure, RouteFigures
from ragwatch.web.pages.overview import overview
from ragwatch.web.pages.pages import Site, clock
from ragwatch.web.request_limit import MIB
from ragwatch.web.samples import moment, shortened
from ragwatch.web.scope import PageScope

PATH = "/incident.md"
PARAMETERS = ("since", "until", "route")
RESPONSE_SIZE = 8 * MIB  # approximate memory for one response
MAX_SECONDS = 30 * DAY
MAX_ROUTES, MAX_CAUSES, MAX_ANSWERS, MAX_EVENTS = 10, 5, 5, 30
ANSWER_CHARS, QUESTION_CHARS = 800, 300
UNKNOWN, _ACTIVE, _NO_STAGE = "unknown", "still active", "none"
_TIME_OF_DAY = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")
_STATES = {"bad": "worse than its threshold", "unsure": "inconclusive", "good": "good", "plain": "not compared"}
MAX_SPAN_CHARS = 120
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
_SEEN = "\n\t\u200c\u200d"  # the last two join letters, which scripts need
_QUOTED = str.maketrans({char: quote(char) for char in " <>|\\`"})
_TICKS = re.compile(r"`+")


@dataclass(frozen=True, slots=True)
class IncidentRequest:
    """Which time to report, in seconds since the epoch; `route` None is all routes."""

    since: float
    until: float
    route: str | None = None

    @classmethod
    def of(cls, parameters: Mapping[str, str], scope: PageScope, now: float) -> IncidentRequest:
        """Parses a request. A time of the day is in UTC, the last one that has passed.

        Raises ParameterError: a parameter is unknown, missing or invalid.
        """
        check_names(parameters, PARAMETERS)
        given = {name: value for name, value in parameters.items() if value}
        route = given.get("route")
        if route is not None and scope.routes and route not in (*scope.routes, "other"):
            raise ParameterError(f"route: {route!r:.100} is not configured; use one of: {', '.join(scope.routes)}")
        since, until = _moment(given, "since", now), _moment(given, "until", now)
        if since is None or not now - MAX_SECONDS <= since < now:
            raise ParameterError("since: give a time of the last 30 days; write 14:00 (UTC), 2h or 2026-01-31T12:00")
        if until is not None and until <= since:
            raise ParameterError("until: is not later than since; give a later time")
        return cls(since, now if until is None else min(until, now), route)


def _moment(values: Mapping[str, str], name: str, now: float) -> float | None:
    match = _TIME_OF_DAY.fullmatch(values.get(name, "").strip())
    if match is None:
        return moment(values, name, now)
    at = now // DAY * DAY + int(match[1]) * 3600 + int(match[2]) * 60
    return at if at <= now else at - DAY


def incident_routes(site: Site) -> list[Route]:
    """The route of the file. It has a thread of its own: the search for causes takes time."""
    own = site.with_own_thread(4 * RESPONSE_SIZE)

    def answer(request: Request) -> Response:
        now, scope = own.clock(), own.scope()
        wanted = IncidentRequest.of(request.query_params, scope, now)
        latest, address = own.board.latest() or Snapshot(at=now), str(request.base_url).rstrip("/")
        text = Incident(wanted, own.store, latest, scope, now=now, address=address).text()
        name = re.sub(r"[^0-9]+", "-", clock(wanted.since)[: len("2026-01-31 12:00")])
        headers = {"Content-Disposition": f'attachment; filename="incident-{name}.md"'}
        return Response(text.encode("utf-8", "replace"), 200, headers, "text/markdown; charset=utf-8")

    async def serve(request: Request) -> ASGIApp:
        return await own.limit.answer(lambda: answer(request), RESPONSE_SIZE)

    return [Route(PATH, serve)]


@dataclass(frozen=True)
class Incident:
    """The sections of the file, each as blocks of Markdown."""

    wanted: IncidentRequest
    store: Store
    snapshot: Snapshot
    scope: PageScope
    now: float
    address: str

    def text(self) -> str:
        """The whole file. Raises StoreError: the store cannot be read."""
        sections = (self.head, self.figures, self.alarms, self.causes, self.answers, self.canaries, self.events)
        return "\n\n".join([part for section in sections for part in section()] + list(self.links())) + "\n"

    @cached_property
    def view(self) -> figure_replies.Snapshot:
        """The overview."""
        return overview(self.snapshot, self.scope, now=self.now)

    def head(self) -> Iterator[str]:
        """What it is about, and what it was written from."""
        place = "all routes" if self.wanted.route is None else f"route {code(self.wanted.route)}"
        yield f"# Incident on {place}, {_time(self.wanted.since)} to {_time(self.wanted.until)} UTC"
        yield f"**{self.view['headline']}**, as of {_time(self.now)} UTC."
        versions = {name: version for name, (_, version) in sorted(self.snapshot.judges.items())}
        judges = [f"{code(name)} version {code(version)}" for name, version in versions.items()]
        config = code(self.scope.fingerprint) if self.scope.fingerprint else UNKNOWN
        yield f"ragwatch {__version__}; configuration {config}; judges: {', '.join(judges) or UNKNOWN}."

    def figures(self) -> Iterator[str]:
        """Before and since by route, and the levels at the time of writing."""
        routes = [one for one in self.view["routes"] if self.wanted.route in (None, one["route"])]
        yield "## Figures"
        for route in routes[:MAX_ROUTES]:
            name = route["route"]
            yield f"### Route {code(name)}"
            yield from self._changes(name)
            yield from _levels(route, self.view["window"])
        if len(routes) > MAX_ROUTES:
            yield f"{len(routes) - MAX_ROUTES} more routes are left out; ask for one with `route`."
        if not routes:
            yield "No route is known."

    def _changes(self, route: str) -> Iterator[str]:
        """As on the page that compares before and after."""
        asked = ChangeRequest(self.wanted.since, route=route)
        length = self.wanted.until - self.wanted.since
        bucket = FINE if self.wanted.since - length >= self.now - FINE_SECONDS + COARSE else COARSE
        seconds = max(1, int(length // bucket)) * bucket  # in whole buckets as they are stored
        view, _ = changes(asked, self.store, self.scope, now=self.now, seconds=seconds)
        rows = [[_words(row["name"]), *_compared(row)] for row in view["rows"]]
        sides = view["sides"]
        period = f"{_time(sides['start'])} to {_time(min(sides['after'], self.now))}"
        yield f"Judge's mean, {period}, against {_time(sides['before'])} to {_time(sides['end'])}:"
        head = ["quantity", "before", "since", "change", "n before", "n since", "conclusion"]
        yield table(head, rows) if rows else f"{UNKNOWN.capitalize()}: no answer of either time is judged."

    def alarms(self) -> Iterator[str]:
        """Those that stood at some time of the incident."""
        yield "## Alarms"
        rows = list(self._alarms(drift(self.snapshot, self.store, now=self.now, address=self.address)))
        head = ["about", "what", "route", "change began", "raised", "ended", "stage that changed"]
        yield table(head, rows) if rows else "No drift alarm stood in this time."

    def _alarms(self, view: Drift) -> Iterator[list[str]]:
        for row in view["answers"]:
            stage = row["changed_stage"]
            named = code(stage["stage"]) if row["alarm"] and stage else UNKNOWN
            yield from self._of("answers", row["quantity"], row, Gauge.DRIFT_BEGAN, named)
        for one in view["segments"]:
            if self._concerns(one["route"], one["began"], self.now):
                what = f"{_words(one['quantity'])} of {code(one['segment'])} {code(one['value'])}"
                yield ["segment", what, code(one["route"]), _time(one["began"]), UNKNOWN, _ACTIVE, UNKNOWN]
        for signal in view["traffic"]:
            yield from self._of("traffic", signal["signal"], signal, Gauge.TRAFFIC_DRIFT_BEGAN, _NO_STAGE)
        for judge in view["judges"]:
            if judge["alarm"]:
                yield ["judge", code(judge["judge"]), "all", UNKNOWN, _time(judge["read_at"]), _ACTIVE, _NO_STAGE]

    def _of(
        self, about: str, name: str, row: AnswerDrift | TrafficDrift, began: Gauge, stage: str
    ) -> Iterator[list[str]]:
        """Rows of the alarms of one detector; begin and stage are those of the alarm that stands."""
        for number, past in enumerate(row["past"]):
            standing, end = row["alarm"] and number == 0, past["back"]
            if not self._concerns(row["route"], past["at"], self.now if standing else end):
                continue
            start = self.snapshot.gauges.get((began, (name, row["route"]))) if standing else None
            ended = _ACTIVE if standing else _time(end) if end is not None else "acknowledged, or unknown"
            named = stage if standing or stage == _NO_STAGE else UNKNOWN
            yield [about, _words(name), code(row["route"]), _time(start), _time(past["at"]), ended, named]

    def _concerns(self, route: str, raised: float | None, ended: float | None) -> bool:
        """Whether an alarm is of the route and stood in the time; without a known end, whether it was raised then."""
        begin = self.wanted.since if raised is None else raised
        end = begin if ended is None else ended
        return self.wanted.route in (None, route) and begin < self.wanted.until and end >= self.wanted.since

    def causes(self) -> Iterator[str]:
        """What failing answers have in common, as on the page of causes."""
        yield "## Cause"
        question = CauseQuestion(self.wanted.since, self.wanted.until, self.wanted.route)
        view = causes_view(self.store.answers, question, self.scope)
        if not view["answers"]:
            yield f"{UNKNOWN.capitalize()}: no answer of this time is judged."
            return
        yield f"A stage is at fault in {view['failing']:,} of {view['answers']:,} answers ({view['share'] or 0.0:.0%})."
        causes = (f"- {_cause(cause)}" for cause in view["causes"][:MAX_CAUSES])
        yield "\n".join(causes) or "No part of the answers fails more than the rest, beyond chance."

    def answers(self) -> Iterator[str]:
        """The worst ones, cut; texts are stored redacted."""
        yield "## Worst answers"
        drifted = [alarm for alarm in self.view["drift"] if alarm["kind"] == "answers"]  # ordered by name
        standing = [alarm["name"] for alarm in drifted if alarm["route"] in self._routes()]
        quantity = quantity_of(standing[0]) if standing else Quantity.FAITHFULNESS
        since, until, route = self.wanted.since, self.wanted.until, self.wanted.route
        query = Query(route=route, since=since, until=until, quantity=quantity, worst=True, limit=MAX_ANSWERS)
        worst = self.store.summaries(query)
        shown(stored.verdict.key for stored in worst)
        for number, stored in enumerate(worst, 1):
            yield from self._answer(number, stored, quantity)
        if not worst:
            yield "No answer of this time is judged."

    def _routes(self) -> list[str]:
        return [self.wanted.route] if self.wanted.route is not None else [*self.scope.routes, "other"]

    def _answer(self, number: int, stored: StoredVerdict, quantity: Quantity) -> Iterator[str]:
        verdict, sample = stored.verdict, stored.sample or {}
        figure = f"{_words(quantity)} {_number(verdict.scores.get(quantity), '.2f')}"
        page = link("the answer", f"{self.address}/samples/{verdict.key}")
        place = f"route {code(verdict.route)}, {_time(verdict.at)} UTC, {page}"
        yield f"{number}. {figure}, at fault: {verdict.stage or UNKNOWN}, {place}"
        for name, most in (("question", QUESTION_CHARS), ("answer", ANSWER_CHARS)):
            text = sample.get(name)
            yield block(text, most) if isinstance(text, str) else f"The {name} is not stored."

    def canaries(self) -> Iterator[str]:
        """The last run of each suite."""
        yield "## Canaries"
        view = canaries(self.store, suites_of(self.scope, self.snapshot), now=self.now)
        head = ["suite", "last run", "degraded", "failed", "recall", "mrr"]
        yield table(head, map(_suite, view["suites"])) if view["suites"] else "No canary suite is configured."

    def events(self) -> Iterator[str]:
        """Deployments and the like, from as long before the incident as it took."""
        yield "## Events"
        begin = self.wanted.since - max(3600.0, self.wanted.until - self.wanted.since)
        events = [event for event in self.store.events(begin) if event.at <= self.wanted.until][-MAX_EVENTS:]
        rows = [[_time(event.at), _words(event.kind), code(event.detail)] for event in events]
        yield table(["time (UTC)", "kind", "event"], rows) if rows else f"No event since {_time(begin)} UTC."

    def links(self) -> Iterator[str]:
        """The pages that say the same, and more."""
        since, until = f"{self.wanted.since:.0f}", f"{self.wanted.until:.0f}"
        route = {} if self.wanted.route is None else {"route": self.wanted.route}
        period, first = urlencode({**route, "since": since, "until": until}), {"route": self._routes()[0]}
        pages = {
            "overview": "",
            "before and after": f"changes?{urlencode({**first, 'at': since})}",
            "causes": f"causes?{period}",
            "answers": f"samples?{period}",
            "trends": f"trends?{urlencode(first)}",
            "drift": "drift",
            "canaries": "canaries",
        }
        yield "## Pages"
        yield "\n".join(f"- {link(words, f'{self.address}/{page}')}" for words, page in pages.items())


def _cause(cause: CauseLine) -> str:
    failing, low, high, others = (_number(cause[name], ".0%") for name in ("failing", "low", "high", "others"))
    ended = "" if cause["ended"] is None else f", ended {_time(cause['ended'])}"
    figures = f"fails in {failing} ({low} to {high}), others in {others}; n {cause['n']:,}"
    return f"{code(cause['attribute'])} {code(cause['value'])}: {figures}; first seen {_time(cause['since'])}{ended}"


def _levels(route: RouteFigures, window: str) -> Iterator[str]:
    """As on the overview."""
    if stages := [f"{one['stage']} {one['share']:.0%}" for one in route["stages"] if one["stage"] != "none"]:
        yield f"Stage at fault in the last {window}: {', '.join(stages)} of the answers."
    for judge in route["judges"]:
        rows = [_figure(figure) for figure in judge["figures"] if "value" in figure]
        if not rows:
            yield f"No figure of {code(judge['judge'])} in the last {window}: {judge['why'] or 'no data'}."
            continue
        yield f"At the time of writing, judge {code(judge['judge'])}, the last {window}:"
        yield table(["quantity", "level", "judge's mean", "threshold", "n", "state"], rows)


def _figure(figure: Figure) -> list[str]:
    level, limit, shown = figure.get("corrected"), figure["threshold"], UNKNOWN
    if level is not None:
        shown = f"{level['value']:.2f} ({level['low']:.2f} to {level['high']:.2f})"
        said = calibration_status(level["labels"], level["labels_given"])
        shown += said and f", {said}"
    mean = f"{figure['value']:.3f} ({figure['low']:.3f} to {figure['high']:.3f})"
    sign = "at most" if figure["lower_is_better"] else "at least"
    threshold = "none" if limit is None else f"{sign} {limit:g}"
    return [_words(figure["quantity"]), shown, mean, threshold, f"{figure['n']:,}", _STATES[figure["state"]]]


def _compared(row: ChangeRow) -> list[str]:
    before, after, change = row["before"], row["after"], row["difference"]
    moved = UNKNOWN if change is None else f"{change['value']:+.3f}"
    if change is not None and change["low"] is not None:
        moved += f" ({change['low']:+.3f} to {change['high']:+.3f})"
    return [
        *(_number(side and side["value"], ".3f") for side in (before, after)),
        moved,
        *(f"{0 if side is None else side['n']:,}" for side in (before, after)),
        row["conclusion"] or UNKNOWN,
    ]


def _suite(suite: Suite) -> list[str]:
    asked, figures = suite["canaries"], [_number(one, ".3f") for one in (suite.get("recall"), suite.get("mrr"))]
    counts = [f"{len(suite['degraded'])} of {asked}", f"{len(suite['failed'])} of {asked}"]
    return [code(suite["suite"]), _time(suite["at"]), *(counts if suite["at"] else [UNKNOWN] * 2), *figures]


def _words(name: str) -> str:
    """A name of a quantity or of a kind, which has no more than letters, digits and underscores."""
    return re.sub(r"[^\w.@-]", " ", name).replace("_", " ").replace("@", " at ")


def _number(value: float | None, form: str) -> str:
    return UNKNOWN if value is None else format(value, form)


def _time(at: float | None) -> str:
    return UNKNOWN if at is None else clock(at)[: len("2026-01-31 12:00")]


def code(text: object) -> str:
    r"""Returns a short text as a code span on one line, fit for a table.

    >>> code("a`b | @all\n<b>"), code("")
    ('``a`b ¦ @all <b>``', '`(empty)`')
    """
    line = " ".join(_visible(str(text)).split()).replace("|", "¦") or "(empty)"
    line = shortened(line, MAX_SPAN_CHARS)
    ticks = "`" * (_longest(line) + 1)
    pad = " " if "`" in (line[0], line[-1]) else ""
    return f"{ticks}{pad}{line}{pad}{ticks}"


def block(text: str, most: int) -> str:
    r"""Returns the beginning of a text as a code block.

    >>> block("a\n```\nb", 100).splitlines()
    ['````text', 'a', '```', 'b', '````']
    """
    shown = _visible("\n".join(text[:most].splitlines()))
    fence = "`" * max(3, _longest(shown) + 1)
    return f"{fence}text\n{shown}{'…' if len(text) > most else ''}\n{fence}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a table of cells that are Markdown already."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def link(words: str, address: str) -> str:
    """Returns a link to an address of ragwatch, with words of its own.

    >>> link("causes", "http://x/causes?a=<b> c")
    '[causes](<http://x/causes?a=%3Cb%3E%20c>)'
    """
    return f"[{words}](<{''.join(filter(str.isprintable, address.translate(_QUOTED)))}>)"


def _visible(text: str) -> str:
    """The text with a mark in the place of what is not seen: control characters, marks of direction, torn escapes."""
    return "".join(char if char in _SEEN or unicodedata.category(char) not in _HIDDEN else "\ufffd" for char in text)


def _longest(text: str) -> int:
    return max(map(len, _TICKS.findall(text)), default=0)
