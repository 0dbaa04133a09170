"""Serves the page of causes and its data as JSON. What was found is kept for a while, because it takes time to find."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from time import thread_time
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.routing import Route

from ragwatch import __version__
from ragwatch.core.sample import OTHER
from ragwatch.model.quantities import Quantity
from ragwatch.web.audit_trail import shown
from ragwatch.web.causes import DEFAULT_WINDOW, CauseQuestion, causes_view, question_of, short_clock
from ragwatch.web.drift_replies import Causes, CausesLine
from ragwatch.web.pages import REFRESH, Site
from ragwatch.web.request_limit import MIB, RequestLimit
from ragwatch.web.samples import METADATA_PREFIX
from ragwatch.web.scope import PageScope

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
    own = replace(site, limit=RequestLimit(threads=1, total=8 * RESPONSE_SIZE, seconds=10.0))
    cache = CauseCache(site.clock)

    def view(request: Request) -> tuple[Causes, int]:
        scope = site.scope()
        question = question_of(_pairs(request), scope, now=site.clock())
        answers = (lambda _: []) if site.store is None else site.store.answers
        causes = cache.get(question, scope, lambda: causes_view(answers, question, scope))
        shown(key for cause in causes["causes"] for key in cause["examples"])
        return causes, 200

    def context(request: Request, causes: Causes | None, error: str | None) -> dict[str, object]:
        pairs, scope = _pairs(request), site.scope()
        route = dict(pairs).get("route")
        query = urlencode({"route": route} if route else {}, errors="replace")
        return {
            "now": site.clock(),
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
    current = {name: value for name, value in pairs if value}
    window = "" if "since" in current else current.get("window", DEFAULT_WINDOW)
    kept = [(name, value) for name, value in pairs if value and name not in ("window", "since", "until")]
    limited = set(scope.thresholds).union(*scope.route_thresholds.values())
    return {
        "current": {"route": current.get("route", ""), "quantity": current.get("quantity", ""), "window": window},
        "routes": list(dict.fromkeys((*scope.routes, OTHER))),
        "quantities": [name for name in (*map(str, Quantity), *scope.criteria) if name in limited],
        "windows": [
            {"name": name, "address": f"?{urlencode([*kept, ('window', name)], errors='replace')}"} for name in WINDOWS
        ],
    }
