"""Serves the page that says what acknowledging a drift alarm does, and asks whether to do it."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from ragwatch import __version__
from ragwatch.board import Board
from ragwatch.web.forms import FIELD, FORM_TOKEN
from ragwatch.web.overview import active_alarms
from ragwatch.web.pages import page

_NAMES = ("quantity", "route", "judge")


def acknowledge_routes(board: Board) -> list[Route]:
    """Route of the page. Its form is sent to `/-/drift/acknowledge`.

    Args:
        board: Holds the latest Snapshot, which has the active alarms.
    """

    async def show(request: Request) -> Response:
        asked = {name: value for name in _NAMES if (value := request.query_params.get(name))}
        snapshot = board.latest()
        alarms = [] if snapshot is None else active_alarms(snapshot)
        alarm = next((alarm for alarm in alarms if alarm_query(alarm) == asked), None)
        view = {
            "version": __version__,
            "at": None if snapshot is None else snapshot.at,
            "alarm": alarm,
            "query": urlencode(asked, errors="replace"),
            FIELD: request.scope.get(FORM_TOKEN),
        }
        return HTMLResponse(page("acknowledge.html", view))

    return [Route("/acknowledge", show)]


def alarm_query(alarm: Mapping[str, str]) -> dict[str, str]:
    """Parameters of the address that acknowledges an alarm.

    >>> alarm_query({"kind": "judge", "name": "claude", "route": ""})
    {'judge': 'claude'}
    >>> alarm_query({"kind": "answers", "name": "faithfulness", "route": "search"})
    {'quantity': 'faithfulness', 'route': 'search'}
    """
    if alarm["kind"] == "judge":
        return {"judge": alarm["name"]}
    return {"quantity": alarm["name"], "route": alarm["route"]}
