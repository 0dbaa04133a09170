"""Serves the page of causes and its data as JSON. What was found is kept for a while, because it takes time to find."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import thread_time
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from ragwatch import __version__
from ragwatch.core.sample import OTHER
from ragwatch.errors import StoreError
from ragwatch.model.quantities import Quantity
from ragwatch.ports import Store
from ragwatch.web.audit_trail import shown
from ragwatch.web.causes import DEFAULT_WINDOW, CauseQuestion, CausesView, causes_view, question_of
from ragwatch.web.pages import REFRESH, page, refreshing
from ragwatch.web.reply import json_reply
from ragwatch.web.request_limit import MIB, RequestLimit
from ragwatch.web.samples import METADATA_PREFIX, ParameterError
from ragwatch.web.scope import PageScope

RESPONSE_SIZE = 4 * MIB  # approximate memory for one response
LEAST_SECONDS, SHARE = 5.0, 60.0  # what was found is kept so long, or so many times as long as it took
MAX_KEPT = 32
WINDOWS = ("15m", "1h", "6h", "24h", "7d")
_BAD_REQUEST, _SERVICE_UNAVAILABLE = 400, 503

Pairs = Sequence[tuple[str, str]]


class KeptCauses(CausesView):
    """What was found, and when."""

    at: float


class CauseCache:
    """What was found last, by question. One thread at a time.

    Args:
        clock: Seconds since the epoch.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._kept: dict[tuple[CauseQuestion, str], tuple[float, KeptCauses]] = {}

    def get(self, question: CauseQuestion, scope: PageScope, find: Callable[[], CausesView]) -> KeptCauses:
        """Return what was found a short while ago, or find it now."""
        now, key = self._clock(), (question, str(scope))
        kept = self._kept.get(key)
        if kept is None or not now < kept[0] <= now + LEAST_SECONDS * SHARE:  # too old, or the clock was set back
            begin = thread_time()
            view: KeptCauses = {**find(), "at": now}
            kept = (now + max(LEAST_SECONDS, SHARE * (thread_time() - begin)), view)
            self._kept.pop(key, None)
            self._kept[key] = kept
            while len(self._kept) > MAX_KEPT:
                del self._kept[next(iter(self._kept))]
        return kept[1]


def cause_routes(store: Store | None, scope: Callable[[], PageScope], clock: Callable[[], float]) -> list[Route]:
    """Routes of the page of causes and of its data as JSON. They have a thread of their own.

    Args:
        store: Store of the verdicts; None for no verdicts.
        scope: Returns the names in the current configuration.
        clock: Seconds since the epoch.
    """
    limit = RequestLimit(threads=1, total=8 * RESPONSE_SIZE, seconds=10.0)
    cache = CauseCache(clock)

    def view_of(pairs: Pairs) -> tuple[dict[str, object], int]:
        current, now = scope(), clock()
        try:
            question = question_of(pairs, current, now=now)
            if store is None:
                return {"error": None, "causes": [], "answers": 0, "at": now}, 200
            view = cache.get(question, current, lambda: causes_view(store.answers, question, current))
        except ParameterError as invalid:
            return {"error": str(invalid)}, _BAD_REQUEST
        except StoreError as failure:
            return {"error": f"the store cannot be read: {failure}"}, _SERVICE_UNAVAILABLE
        shown(key for cause in view["causes"] for key in cause["examples"])
        return {"error": None, **view}, 200

    def render(query: Pairs) -> Response:
        pairs, more = [pair for pair in query if pair[0] != REFRESH], refreshing(query)
        view, status = view_of(pairs)
        context = {"version": __version__, "now": clock(), "form": form(pairs, scope()), "view": view, **more}
        context["slice_filter"] = slice_filter
        return HTMLResponse(page("causes.html", {**context, "error": view["error"]}), status)

    async def html(request: Request) -> ASGIApp:
        pairs = request.query_params.multi_items()
        return await limit.answer(lambda: render(pairs), RESPONSE_SIZE)

    async def json(request: Request) -> ASGIApp:
        pairs = request.query_params.multi_items()
        return await limit.answer(lambda: _json(*view_of(pairs)), RESPONSE_SIZE)

    return [Route("/causes", html), Route("/api/v1/causes", json)]


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


def _json(view: dict[str, object], status: int) -> Response:
    return json_reply({"version": __version__, **view} if view["error"] is None else {"error": view["error"]}, status)


def form(pairs: Pairs, scope: PageScope) -> dict[str, object]:
    """Fields of the form: options, current values, and the windows as links."""
    current = {name: value for name, value in pairs if value}
    window = "" if "since" in current else current.get("window", DEFAULT_WINDOW)
    kept = [(name, value) for name, value in pairs if value and name not in ("window", "since", "until")]
    return {
        "current": {"route": current.get("route", ""), "quantity": current.get("quantity", ""), "window": window},
        "routes": list(dict.fromkeys((*scope.routes, OTHER))),
        "quantities": [name for name in (*map(str, Quantity), *scope.criteria) if _is_limited(name, scope)],
        "windows": [
            {"name": name, "address": f"?{urlencode([*kept, ('window', name)], errors='replace')}"} for name in WINDOWS
        ],
    }


def _is_limited(quantity: str, scope: PageScope) -> bool:
    return quantity in scope.thresholds or any(quantity in limits for limits in scope.route_thresholds.values())
