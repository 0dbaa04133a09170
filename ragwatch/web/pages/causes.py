"""Reads judged answers and finds what failing ones have in common, for the page, the API and the command.

The page keeps what was found for a while, because it takes time to find.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import floor
from time import monotonic, thread_time
from typing import NamedTuple
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.routing import Route

from ragwatch import __version__
from ragwatch.model.quantities import LOW_IS_GOOD, Quantity, is_worse
from ragwatch.model.sample import OTHER
from ragwatch.model.stages import Stage
from ragwatch.ports import AnswerQuery, ScoreRow
from ragwatch.statistics.causes.line import Clock, findings_line
from ragwatch.statistics.causes.search import FALSE_DISCOVERY_RATE, find_causes
from ragwatch.statistics.causes.slices import Answer
from ragwatch.statistics.causes.traits import Traits, without_texts
from ragwatch.web import samples
from ragwatch.web.audit_trail import shown
from ragwatch.web.json_values import ParameterError
from ragwatch.web.pages.drift_replies import Causes, CausesLine
from ragwatch.web.pages.pages import REFRESH, Site
from ragwatch.web.pages.pages import clock as instant
from ragwatch.web.request_limit import MIB
from ragwatch.web.samples import METADATA_PREFIX
from ragwatch.web.scope import PageScope

MAX_ANSWERS = 20_000
READ_SECONDS = 5.0
"""Limits of a search, which takes up to 60 MB meanwhile; there is one at a time."""
DEFAULT_WINDOW = "24h"
_PAGE_ROWS = 1000
_KINDS = {"metadata": dict, "words": list, "contexts": list, "cited": list}
PARAMETERS = ("route", "judge", "quantity", "below", "above", "window", "since", "until")
_FROM_SAMPLES = ("sort", "limit")  # of addresses of the samples page; they have no meaning here

Page = Callable[[AnswerQuery], list[tuple[ScoreRow, Traits | None]]]
"""See `ports.Store.answers`."""


@dataclass(frozen=True, slots=True)
class CauseQuestion:
    """What is asked: what do failing answers of a route and a time have in common?"""

    since: float  # time of the first answer, in seconds since the epoch
    until: float | None = None  # answers are older than this; None for all
    route: str | None = None  # none for all routes
    judge: str | None = None  # none for the judge with most verdicts, and others where it has none
    quantity: Quantity | None = None  # none for any stage at fault
    limit: float | None = None  # the worst good score; None for the threshold of each route

    def fails(self, row: ScoreRow, scope: PageScope) -> bool | None:
        """Whether a judged answer fails; None if that is unknown: no score, no threshold, or no stage."""
        if self.quantity is None:
            return None if row.stage is None else row.stage != Stage.NONE
        value = (row.scores or {}).get(self.quantity)
        limit = scope.threshold(self.quantity, row.route) if self.limit is None else self.limit
        return None if value is None or limit is None else is_worse(self.quantity, value, value, limit)


def question_of(parameters: Iterable[tuple[str, str]], scope: PageScope, *, now: float) -> CauseQuestion:
    """Parses a request. It also takes the addresses of searches for samples, as alerts link to them.

    The time begins at a full window (a full hour for 1h), so that looking again and again is one sequential look.

    Raises ParameterError: A parameter is unknown, repeated or invalid.
    """
    values: dict[str, str] = {}
    for name, value in parameters:
        if name not in (*PARAMETERS, *_FROM_SAMPLES):
            raise ParameterError(f"{name}: not a parameter; there are {', '.join(PARAMETERS)}")
        if name in values:
            raise ParameterError(f"{name}: given twice")
        if value and name not in _FROM_SAMPLES:
            values[name] = value
    window = values.pop("window", DEFAULT_WINDOW)
    age = samples.span_of(values["since"].strip()) if "since" in values else samples.span_of(window)
    if age is None and "since" not in values:
        raise ParameterError("window: not a duration; write 15m, 24h or 7d")
    query = samples.query_of(values.items(), now=now, criteria=scope.criteria)
    if "above" in values and "below" in values:
        raise ParameterError("below: give below or above, whichever is bad, not both")
    limit = query.above if query.quantity in LOW_IS_GOOD else query.below
    if limit is None and ("above" in values or "below" in values):
        raise ParameterError(
            f"{query.quantity}: is bad {'above' if query.quantity in LOW_IS_GOOD else 'below'} a limit"
        )
    if query.quantity is not None and limit is None:
        routes = {*scope.route_thresholds, ""} if query.route is None else {query.route}
        if all(scope.threshold(query.quantity, name) is None for name in routes):
            raise ParameterError(f"quantity: {query.quantity} has no threshold; add one, or give below or above")
    return CauseQuestion(
        since=(query.since or 0.0) if age is None else _begin(now - age, age),
        until=query.until,
        route=query.route,
        judge=query.judge,
        quantity=query.quantity,
        limit=limit,
    )


def _begin(since: float, age: float) -> float:
    """Begin of the full window that contains an instant."""
    return floor(since / age) * age if age >= 1.0 else since


class ReadAnswers(NamedTuple):
    """Answers as they are stored."""

    answers: Sequence[Answer]  # one for each sample
    judge: str | None  # the judge with most of the verdicts; None without answers
    unknown: int  # number of answers of which is not known whether they fail
    without_traits: int  # number of answers of which no traits are stored
    complete: bool  # whether all were read; otherwise the newest


def read_answers(
    page: Page, question: CauseQuestion, scope: PageScope, *, clock: Callable[[], float] = monotonic
) -> ReadAnswers:
    """Reads judged answers, the newest first, until MAX_ANSWERS or READ_SECONDS.

    Raises StoreError: the store cannot be read.
    """
    until = float("inf") if question.until is None else question.until
    query = AnswerQuery(question.since, until, question.route, question.judge, limit=_PAGE_ROWS)
    by_judge: dict[str, dict[str, Answer]] = {}
    shared: dict[str, str] = {}
    unknown = without_traits = rows = 0
    end, complete = clock() + READ_SECONDS, False
    while rows < MAX_ANSWERS and clock() < end:
        stored = page(query)
        for row, traits in stored:
            fails = question.fails(row, scope)
            known = _known(traits, scope, shared)
            if fails is None or known is None:
                unknown += fails is None
                without_traits += fails is not None
                continue
            by_judge.setdefault(row.judge, {})[row.key] = Answer(
                key=row.key,
                seq=row.seq,
                at=row.at,
                route=row.route,
                judge=f"{row.judge} {row.version}",
                probability=row.probability,
                failing=fails,
                traits=known,
            )
        rows += len(stored)
        if complete := len(stored) < query.limit:
            break
        query = replace(query, before=(stored[-1][0].at, stored[-1][0].seq))
    order = sorted(by_judge, key=lambda judge: len(by_judge[judge]), reverse=True)
    answers: dict[str, Answer] = {}
    for judge in reversed(order):  # the first one has the last word
        answers |= by_judge[judge]
    return ReadAnswers(tuple(answers.values()), order[0] if order else None, unknown, without_traits, complete)


def _known(traits: Traits | None, scope: PageScope, shared: dict[str, str]) -> Traits | None:
    """Traits of all answers alike: where texts of some are not kept, words of none are looked at.

    A text is held once in memory: `shared` has those of other answers.
    """
    if traits is None or any(not isinstance(traits.get(name), kind) for name, kind in _KINDS.items()):
        return None
    kept = traits if scope.texts == "all" else without_texts(traits)
    share = shared.setdefault
    return {
        **kept,
        "contexts": tuple([None if one is None else share(one, one) for one in kept["contexts"]]),
        "words": tuple([share(word, word) for word in kept["words"]]),
        "metadata": {share(key, key): share(value, value) for key, value in kept["metadata"].items()},
    }


def causes_view(page: Page, question: CauseQuestion, scope: PageScope, *, clock: Clock | None = None) -> CausesLine:
    """Finds the causes; `clock` formats the times in their texts, in UTC; by default as pages do.

    Raises StoreError: the store cannot be read.
    """
    read = read_answers(page, question, scope)
    findings = find_causes(read.answers, confidence=scope.confidence)
    return {
        **findings_line(findings, clock or partial(short_clock, now=findings.end or 0.0)),
        "route": question.route,
        "judge": question.judge or read.judge,
        "quantity": None if question.quantity is None else str(question.quantity),
        "limit": question.limit,
        "since": question.since,
        "until": question.until,
        "unknown": read.unknown,
        "without_traits": read.without_traits,
        "complete": read.complete,
        "texts": scope.texts,
        "false_discovery_rate": FALSE_DISCOVERY_RATE,
        "samples": _samples_address(question, scope),
    }


def short_clock(at: float, now: float) -> str:
    """A time of the day of `now` as `14:10`, another one with its date.

    >>> short_clock(86400.0, now=90000.0), short_clock(0.0, now=90000.0)
    ('00:00', '1970-01-01 00:00')
    """
    day, _, time = instant(at).rpartition(" ")
    minutes = time[: len("00:00")]
    return minutes if day == instant(now).rpartition(" ")[0] else f"{day} {minutes}"


def _samples_address(question: CauseQuestion, scope: PageScope) -> str:
    """Address of the answers, the worst first."""
    pairs = [("route", question.route), ("judge", question.judge)]
    if question.quantity is not None:
        limit = question.limit
        if limit is None:
            limit = scope.threshold(question.quantity, question.route or "")
        bad = "above" if question.quantity in LOW_IS_GOOD else "below"
        shown = None if limit is None else f"{limit:.4g}"
        pairs += [("quantity", str(question.quantity)), (bad, shown), ("sort", "worst")]
    pairs.append(("since", f"{question.since:.0f}"))
    return f"samples?{urlencode([(name, value) for name, value in pairs if value is not None], errors='replace')}"


RESPONSE_SIZE = 4 * MIB  # approximate memory for one response
LEAST_SECONDS, SHARE = 5.0, 60.0  # what was found is kept so long, or so many times as long as it took
MAX_KEPT = 32
WINDOWS = ("15m", "1h", "6h", "24h", "7d")


Pairs = Sequence[tuple[str, str]]


class CauseCache:
    """What was found last, by question. One thread at a time."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._kept: dict[tuple[CauseQuestion, str], tuple[float, Causes]] = {}

    def get(self, question: CauseQuestion, scope: PageScope, find: Callable[[], CausesLine]) -> Causes:
        """Return what was found a short while ago, or find it now."""
        now, key = self._clock(), (question, str(scope))
        kept = self._kept.get(key)
        if kept is None or not now < kept[0] <= now + LEAST_SECONDS * SHARE:  # too old, or the clock was set back
            begin = thread_time()
            view: Causes = {**find(), "version": __version__, "error": None, "at": now}
            kept = (now + max(LEAST_SECONDS, SHARE * (thread_time() - begin)), view)
            self._kept.pop(key, None)
            self._kept[key] = kept
            while len(self._kept) > MAX_KEPT:
                del self._kept[next(iter(self._kept))]
        return kept[1]


def cause_routes(site: Site) -> list[Route]:
    """Routes of the page of causes and of its data as JSON. They have a thread of their own."""
    own = site.with_own_thread(8 * RESPONSE_SIZE)
    cache = CauseCache(site.clock)

    def view(request: Request) -> tuple[Causes, int]:
        scope = site.scope()
        question = question_of(_pairs(request), scope, now=site.clock())
        causes = cache.get(question, scope, lambda: causes_view(site.store.answers, question, scope))
        shown(key for cause in causes["causes"] for key in cause["examples"])
        return causes, 200

    def context(request: Request, causes: Causes | None, error: str | None) -> dict[str, object]:
        pairs, scope = _pairs(request), site.scope()
        route = dict(pairs).get("route")
        query = urlencode({"route": route} if route else {}, errors="replace")
        return {
            "form": form(pairs, scope),
            "view": causes,
            "error": error,
            "slice_filter": slice_filter,
            "segments": {f"{METADATA_PREFIX}{key}": f"segments/{quote(key)}?{query}" for key in scope.segments},
            "short": short_clock,
        }

    return [
        own.page(
            "/causes",
            "causes.html",
            lambda request: (context(request, view(request)[0], None), 200),
            RESPONSE_SIZE,
            invalid=lambda request, why: context(request, None, why),
            refreshes=True,
        ),
        own.reply("/api/v1/causes", view, RESPONSE_SIZE),
    ]


def _pairs(request: Request) -> Pairs:
    return [pair for pair in request.query_params.multi_items() if pair[0] != REFRESH]


def slice_filter(cause: Mapping[str, object]) -> str:
    """The parameter of a search for the answers of a slice; empty if a search has none for its attribute.

    >>> slice_filter({"attribute": "metadata.release", "value": "v2"})
    'metadata.release=v2'
    >>> slice_filter({"attribute": "hour", "value": "3"})
    ''
    """
    name = str(cause["attribute"])
    known = name in ("context", "top_context") or name.startswith(METADATA_PREFIX)
    return urlencode([(name, cause["value"])], errors="replace") if known else ""


def form(pairs: Pairs, scope: PageScope) -> dict[str, object]:
    """Fields of the form: options, current values, and the windows as links."""
    given = [(name, value) for name, value in pairs if value]
    current, kept = dict(given), [pair for pair in given if pair[0] not in ("window", "since", "until")]
    window = "" if "since" in current else current.get("window", DEFAULT_WINDOW)
    limited = set(scope.thresholds).union(*scope.route_thresholds.values())
    return {
        "current": {"route": current.get("route", ""), "quantity": current.get("quantity", ""), "window": window},
        "routes": list(dict.fromkeys((*scope.routes, OTHER))),
        "quantities": [name for name in (*map(str, Quantity), *scope.criteria) if name in limited],
        "windows": [
            {"name": name, "address": f"?{urlencode([*kept, ('window', name)], errors='replace')}"} for name in WINDOWS
        ],
    }
