"""Renders pages as HTML that works without scripts, from the same data that the API serves as JSON.

The overview follows the questions of an on-call engineer: answer quality, stage at fault, examples, sources, judges.
Texts of samples are always autoescaped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from ragwatch import __version__
from ragwatch.board import Board
from ragwatch.errors import StoreError, UnsearchableError
from ragwatch.model.quantities import LOW_IS_GOOD
from ragwatch.model.quantity_row import UnknownReason
from ragwatch.ports import RecordedEvent, Store
from ragwatch.statistics.estimators.level import calibration_status
from ragwatch.web.json_values import ParameterError, json_reply
from ragwatch.web.pages.figure_replies import Event, Figure
from ragwatch.web.request_limit import RequestLimit
from ragwatch.web.samples import shortened, span_of
from ragwatch.web.scope import PageScope
from ragwatch.web.server.guard import FIELD, FORM_TOKEN

REFRESH, REFRESH_SECONDS = "refresh", 30
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_KIBI = 1024
ANSWER_CHARS, CONTEXT_CHARS, QUESTION_CHARS, QUOTE_CHARS = 20_000, 6_000, 4_000, 1_000  # of stored texts on a page
MAX_TURNS, MAX_METADATA = 20, 30
_PAGES = Environment(
    loader=PackageLoader("ragwatch.web"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def page(template: str, view: Mapping[str, object]) -> str:
    """Renders a page as HTML. Unpaired surrogates (from a truncated escape in a log) become `?`."""
    return _PAGES.get_template(template).render({"version": __version__, **view}).encode("utf-8", "replace").decode()


View = Callable[[Request], tuple[Mapping[str, object], int]]
"""Returns the data of a page or a reply, and the status of the response."""


@dataclass(frozen=True, slots=True)
class Site:
    """What pages and replies are made from."""

    board: Board  # holds the latest Snapshot
    store: Store  # of the verdicts, samples and trends
    scope: Callable[[], PageScope]  # returns the names in the current configuration
    clock: Callable[[], float]  # seconds since the epoch
    limit: RequestLimit  # limits concurrent requests

    def with_own_thread(self, total: int) -> Site:
        """The same for what takes time to build: one at a time, and `total` bytes of its own."""
        return replace(self, limit=RequestLimit(threads=1, total=total, seconds=10.0))

    def reply(self, path: str, view: View, size: int) -> Route:
        """The route of data as JSON; `size` is the approximate memory for one response."""

        async def serve(request: Request) -> ASGIApp:
            return await self.limit.answer(lambda: json_reply(*view(request)), size)

        return Route(path, serve)

    def page(
        self,
        path: str,
        template: str,
        view: View,
        size: int,
        *,
        invalid: Callable[[Request, str], Mapping[str, object]] | None = None,
        refreshes: bool = False,
    ) -> Route:
        """The route of a page; `size` is the approximate memory for one response.

        `invalid` returns the data of a page that says why there is none; without it, the reply is that of the API. With
        `refreshes`, people may choose that the page loads itself again.
        """

        def render(request: Request) -> Response:
            try:
                data, status = view(request)
            except (ParameterError, UnsearchableError, StoreError) as error:
                if invalid is None:
                    raise
                unread = isinstance(error, StoreError) and not isinstance(error, UnsearchableError)
                why = f"the store cannot be read: {error}" if unread else str(error)
                data, status = invalid(request, why), 503 if unread else 400
            more = refreshing(request.query_params.multi_items()) if refreshes else {}
            frame = {
                FIELD: request.scope.get(FORM_TOKEN),
                "here": path.strip("/").partition("/")[0],
                "now": self.clock(),
            }
            return HTMLResponse(page(template, {**frame, **more, **data}), status)

        async def serve(request: Request) -> ASGIApp:
            return await self.limit.answer(lambda: render(request), size)

        return Route(path, serve)

    def page_and_reply(
        self,
        path: str,
        template: str,
        view: View,
        size: int,
        *,
        drawn: Callable[[Any], Mapping[str, object]] = lambda data: data,
        invalid: Callable[[Request, str], Mapping[str, object]] | None = None,
        refreshes: bool = False,
    ) -> list[Route]:
        """The routes of a page and of the same data as JSON, below `/api/v1`; `drawn` adds what the page alone has."""

        def shown(request: Request) -> tuple[Mapping[str, object], int]:
            data, status = view(request)
            return drawn(data), status

        refused = None if invalid is None else lambda request, why: drawn(invalid(request, why))
        page = self.page(path, template, shown, size, invalid=refused, refreshes=refreshes)
        return [page, self.reply(f"/api/v1{path}", view, size)]


def event_line(event: RecordedEvent) -> Event:
    """An event as JSON values."""
    return {"at": event.at, "kind": event.kind, "detail": event.detail}


def refreshing(pairs: Iterable[tuple[str, str]]) -> dict[str, object]:
    """Whether a page loads itself again, which people choose (`refresh=yes`), and the address of the other choice.

    >>> refreshing([("window", "1h")])["refresh"]
    {'on': False, 'seconds': 30, 'other': '?window=1h&refresh=yes'}
    """
    query = list(pairs)
    kept = [pair for pair in query if pair[0] != REFRESH]
    on = (REFRESH, "yes") in query
    other = urlencode(kept if on else [*kept, (REFRESH, "yes")], errors="replace")
    return {"refresh": {"on": on, "seconds": REFRESH_SECONDS, "other": f"?{other}"}}


def ago(seconds: float | None) -> str:
    """Formats an age.

    >>> ago(4), ago(200), ago(7300), ago(400000), ago(None)
    ('just now', '3 min ago', '2 h ago', '4 d ago', 'never')
    """
    if seconds is None:
        return "never"
    return "just now" if seconds < _MINUTE else f"{duration(seconds)} ago"


def duration(seconds: float) -> str:
    """Formats a duration.

    >>> duration(0.04), duration(1.5), duration(200), duration(7300)
    ('0 s', '2 s', '3 min', '2 h')
    """
    for span, unit in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min")):
        if seconds >= span:
            return f"{int(seconds // span)} {unit}"
    return f"{seconds:.0f} s"


def size(count: float) -> str:
    """Formats a number of bytes.

    >>> size(17), size(2048), size(5 * 1024**3), size(3000 * 1024**4)
    ('17 B', '2.0 KiB', '5.0 GiB', '3000.0 TiB')
    """
    power = 0
    while count >= _KIBI and power < 4:
        count, power = count / _KIBI, power + 1
    return f"{count:.{min(power, 1)}f} {('B', 'KiB', 'MiB', 'GiB', 'TiB')[power]}"


def clock(at: float) -> str:
    """Formats a Unix time in UTC, to the second.

    >>> clock(0)
    '1970-01-01 00:00:00'
    """
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return "unknown"


def iso(at: float) -> str:
    """Formats a Unix time as ISO 8601, for programs.

    >>> iso(0)
    '1970-01-01T00:00:00Z'
    """
    return "" if (text := clock(at)) == "unknown" else f"{text.replace(' ', 'T')}Z"


def stale(figure: Figure, window: str) -> bool:
    """Whether the newest answer of a figure is older than its window.

    >>> stale({"age_seconds": 1000.0}, "15m"), stale({"age_seconds": 800.0}, "15m"), stale({"age_seconds": None}, "15m")
    (True, False, False)
    """
    age, span = figure["age_seconds"], span_of(window)
    return age is not None and span is not None and age > span


def points(history: Sequence[Mapping[str, object]], figure: str) -> str:
    """Formats the known values of a figure as points of an SVG polyline, 10 units per run and 40 units from 0 to 1.

    >>> points([{"recall": 1.0}, {"recall": None}, {"recall": 0.5}], "recall")
    '5,2 25,22'
    """
    known = ((index, value) for index, run in enumerate(history) if isinstance(value := run[figure], int | float))
    return " ".join(f"{10 * index + 5},{round(42 - 40 * value, 1):g}" for index, value in known)


_FILTERS = (ago, duration, size, clock, iso, stale, points, calibration_status)
_PAGES.globals.update(
    unscored=UnknownReason.NOT_READ.text,
    low_is_good=LOW_IS_GOOD,
    answer_chars=ANSWER_CHARS,
    context_chars=CONTEXT_CHARS,
    question_chars=QUESTION_CHARS,
    max_turns=MAX_TURNS,
    max_metadata=MAX_METADATA,
)
_PAGES.filters.update({function.__name__: function for function in _FILTERS})
_PAGES.filters.update(shortened=lambda text, limit=QUOTE_CHARS: shortened(str(text), limit))
_PAGES.filters.update(humanize=lambda name: name.replace("_", " "), thousands="{:,.0f}".format)
