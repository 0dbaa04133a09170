"""Samples page: the verdicts that a request asks for, newest first, in pages that neither skip nor repeat one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from math import inf, nextafter
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from ragwatch import __version__
from ragwatch.core.sample import OTHER
from ragwatch.core.scores import LOW_IS_GOOD, Quantity
from ragwatch.core.stage import Stage
from ragwatch.errors import StoreError
from ragwatch.ports import Query, Store, StoredVerdict
from ragwatch.web import samples
from ragwatch.web.pages import clock as instant
from ragwatch.web.pages import page
from ragwatch.web.request_limit import MIB, RequestLimit
from ragwatch.web.sample_page import cut, sample
from ragwatch.web.scope import PageScope

FIELDS = ("route", "judge", "stage", "outcome", "quantity", "below", "above", "since", "until", "limit")
LIMITS = ("25", "50", "100", "250", "500")
COLUMNS = (Quantity.FAITHFULNESS, Quantity.CONTEXT_PRECISION, Quantity.ANSWER_RELEVANCY)
QUESTION_CHARS = 240
MANY_SIZE, ONE_SIZE = 8 * MIB, 16 * MIB  # that making a page takes, about
_BAD, _NOT_FOUND, _OUT_OF_ORDER = 400, 404, 503

Pairs = Sequence[tuple[str, str]]


def sample_routes(
    store: Store | None, scope: Callable[[], PageScope], clock: Callable[[], float], turns: RequestLimit
) -> list[Route]:
    """`/samples` and `/samples/KEY`.

    Args:
        store: Holds the verdicts; None shows none.
        scope: What configuration names at present.
        clock: Seconds since the epoch.
        turns: When it is a request's turn.
    """

    async def many(request: Request) -> ASGIApp:
        pairs = request.query_params.multi_items()
        return await turns.answer(lambda: _many(pairs, store, scope(), clock()), MANY_SIZE)

    async def one(request: Request) -> ASGIApp:
        key, judge = request.path_params["key"], request.query_params.get("judge")
        return await turns.answer(lambda: _one(key, judge, store, scope()), ONE_SIZE)

    return [Route("/samples", many), Route("/samples/{key}", one)]


def _many(pairs: Pairs, store: Store | None, scope: PageScope, now: float) -> Response:
    given = [(name, value) for name, value in pairs if value]  # a form sends its empty fields too
    view: dict[str, Any] = {"found": [], "older": None, "crowded": False}
    status = 200
    error = None
    try:
        view = listing(given, store, now=now)
    except samples.ParameterError as wrong:
        error, status = str(wrong), _BAD
    except StoreError as broken:
        error, status = f"the store cannot be read: {broken}", _OUT_OF_ORDER
    around = {"version": __version__, "now": now, "error": error, "form": form(given, scope), "chips": chips(given)}
    newest = None if "until" not in dict(given) else _without(given, "until")
    return HTMLResponse(page("samples.html", {**around, **view, "newest": newest, "columns": columns(given)}), status)


def _one(key: str, judge: str | None, store: Store | None, scope: PageScope) -> Response:
    error, status, view = None, 200, None
    try:
        view = sample(store, key, scope, judge=judge) if store and samples.KEY.fullmatch(key) else None
        if view is None:
            error, status = "There is no sample with this key, or retention has taken it.", _NOT_FOUND
    except StoreError as broken:
        error, status = f"The store cannot be read: {broken}", _OUT_OF_ORDER
    body = page("sample.html", {"version": __version__, "error": error, "root": "../", "sample": view})
    return HTMLResponse(body, status)


def listing(given: Pairs, store: Store | None, *, now: float) -> dict[str, Any]:
    """Verdicts as rows of a table, and where older ones begin.

    Raises:
        ParameterError: A parameter is unknown, repeated, or has no meaning.
        StoreError: The store cannot be read.
    """
    query = samples.query_of(given, now=now)
    found, until, crowded = ([], None, False) if store is None else leaf(store, query)
    fixed = [*_fixed(given, now), *([] if until is None else [("until", repr(until))])]
    return {
        "found": [row(each) for each in found],
        "older": None if until is None else f"?{urlencode(fixed)}",
        "crowded": crowded,
    }


def leaf(store: Store, query: Query) -> tuple[list[StoredVerdict], float | None, bool]:
    """One page of verdicts, the `until` of the next page (None: this is the last), and whether some fit on none.

    A page ends between two instants, because `until` cannot cut one instant in two. Where more verdicts than a page
    holds are of one instant, the page holds them all, as far as a search may go.
    """
    found = store.summaries(_narrowed(query, limit=query.limit + 1))
    if len(found) <= query.limit:
        return found, None, False
    begun = found[-1].verdict["at"]
    whole = [each for each in found if each.verdict["at"] != begun]
    if whole:
        return whole, float(whole[-1].verdict["at"]), False
    crowd = store.summaries(_narrowed(query, limit=samples.MOST + 1, since=begun, until=nextafter(begun, inf)))
    older = store.summaries(_narrowed(query, limit=1, until=begun))
    return crowd[: samples.MOST], float(begun) if older else None, len(crowd) > samples.MOST


def _narrowed(query: Query, *, limit: int, since: float | None = None, until: float | None = None) -> Query:
    return replace(
        query,
        since=query.since if since is None else since,
        until=query.until if until is None else until,
        limit=limit,
    )


def row(found: StoredVerdict) -> dict[str, Any]:
    """A verdict as one row."""
    verdict = found.verdict
    question = None if found.sample is None else found.sample.get("question")
    return {
        "key": verdict["key"],
        "at": verdict["at"],
        "route": verdict["route"],
        "judge": verdict["judge_name"],
        "outcome": verdict["outcome"],
        "reason": verdict["reason"],
        "stage": verdict["stage"],
        "scores": verdict["scores"],
        "kept": found.sample is not None,
        "question": None if question is None else cut(question, QUESTION_CHARS)["text"],
        "damage": found.damage,
    }


def columns(given: Pairs) -> list[dict[str, Any]]:
    """Quantities to show, the one that is asked for first.

    >>> [each["quantity"] for each in columns([("quantity", "contradiction")])][:2]
    ['contradiction', 'faithfulness']
    """
    asked = dict(given).get("quantity")
    wanted = [Quantity(asked)] if asked in set(Quantity) else []
    shown = dict.fromkeys((*wanted, *COLUMNS))
    return [{"quantity": str(each), "low_is_good": each in LOW_IS_GOOD, "asked": each in wanted} for each in shown]


def form(given: Pairs, scope: PageScope) -> dict[str, Any]:
    """Fields of the search: what may be chosen, and what is."""
    values = dict.fromkeys(FIELDS, "") | {name: value for name, value in given if name in FIELDS}
    offered: dict[str, Iterable[str]] = {
        "route": (*scope.routes, OTHER),
        "judge": scope.judges,
        "stage": map(str, Stage),
        "outcome": map(str, samples.Outcome),
        "quantity": map(str, Quantity),
        "limit": LIMITS,
    }
    values["limit"] = values["limit"] or "50"
    return {
        "given": values,
        "choices": {name: _with(each, values[name]) for name, each in offered.items()},
    }


def _with(offered: Iterable[str], value: str) -> list[str]:
    """What may be chosen, with what is: an answer may be of a route that is no longer configured."""
    return list(dict.fromkeys(each for each in (*offered, value) if each))


def chips(given: Pairs) -> list[dict[str, str]]:
    """What narrows the search, each with the same search without it."""
    return [{"name": name, "value": _told(name, value), "without": _without(given, name)} for name, value in given]


def _told(name: str, value: str) -> str:
    if name not in ("since", "until"):
        return value
    try:
        return instant(float(value))
    except ValueError:
        return value if samples.span_of(value) is None else f"{value} ago"


def _without(given: Pairs, name: str) -> str:
    return f"?{urlencode([each for each in given if each[0] != name])}"


def _fixed(given: Pairs, now: float) -> list[tuple[str, str]]:
    """The search without its end; `since 1h` is the same hour on every page."""
    kept: list[tuple[str, str]] = []
    for name, value in given:
        past = samples.span_of(value.strip()) if name == "since" else None
        if name != "until":
            kept.append((name, value if past is None else repr(now - past)))
    return kept
