"""Drift page: what is watched for a change, how much speaks for one, since when an alarm stands, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from shlex import quote
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from ragwatch import __version__
from ragwatch.board import Board
from ragwatch.core.scores import LOW_IS_GOOD
from ragwatch.core.snapshot import Gauge, Gauges, Snapshot
from ragwatch.errors import StoreError
from ragwatch.ports import NoteStore, StoredRun
from ragwatch.web.pages import page
from ragwatch.web.reply import json_reply
from ragwatch.web.request_limit import MIB, RequestLimit

KIND, TRAFFIC_KIND, JUDGE_KIND = "drift", "traffic_drift", "anchor"
PAST_ALARMS = 5
SIZE = 4 * MIB  # that making one takes, about
_DEFAULT_ADDRESS = "http://127.0.0.1:10477"
_LOW_IS_GOOD = frozenset(map(str, LOW_IS_GOOD))
_HEADLINES = {
    "bad": "Answers have drifted",
    "unsure": "Something has changed: a judge, or the traffic",
    "good": "Nothing drifts",
    "silent": "No drift figures yet",
    "learning": "Learning what is ordinary",
}
_STATUS_OUT_OF_ORDER = 503
_OF_ANSWERS = (Gauge.DRIFT_ALARM, Gauge.DRIFT_EVIDENCE, Gauge.BAND_MEAN)


def drift_routes(board: Board, store: NoteStore | None, clock: Callable[[], float], turns: RequestLimit) -> list[Route]:
    """`/drift`, and the same as JSON.

    Args:
        board: Where the latest Snapshot hangs.
        store: Keeps past alarms; None knows none.
        clock: Seconds since the epoch.
        turns: When it is a request's turn.
    """

    def looked(request: Request) -> tuple[dict[str, Any], int]:
        view = drift(board.look(), store, now=clock(), address=str(request.base_url).rstrip("/"))
        return view, 200 if view["error"] is None else _STATUS_OUT_OF_ORDER

    def page_of(request: Request) -> Response:
        view, status = looked(request)
        return HTMLResponse(page("drift.html", {"version": __version__, **view}), status)

    async def shown(request: Request) -> ASGIApp:
        return await turns.answer(lambda: page_of(request), SIZE)

    async def told(request: Request) -> ASGIApp:
        return await turns.answer(lambda: json_reply(*looked(request)), SIZE)

    return [Route("/drift", shown), Route("/api/v1/drift", told)]


def drift(snapshot: Snapshot | None, store: NoteStore | None, *, now: float, address: str) -> dict[str, Any]:
    """All that the page of drift shows. Where the store cannot be read, figures stand without their past.

    Args:
        snapshot: The latest, None before the first digest.
        store: Keeps past alarms; None knows none.
        now: Seconds since the epoch.
        address: Where we are asked, for commands.
    """
    gauges: Gauges = {} if snapshot is None else snapshot.gauges
    try:
        past, error = _past(gauges, store), None
    except StoreError as broken:
        past, error = {}, f"the store cannot be read: {broken}"
    look = _DriftRows(gauges, past, now, address)
    answers = [look.answer(*labels) for labels in _of(gauges, *_OF_ANSWERS)]
    traffic = [look.traffic(*labels) for labels in _of(gauges, Gauge.TRAFFIC_DRIFT_EVIDENCE)]
    judges = [look.judge(*labels) for labels in _of(gauges, Gauge.JUDGE_DRIFT_FLIPS, Gauge.JUDGE_DRIFT_ALARM)]
    state = _state(answers, [*traffic, *judges])
    return {
        "at": None if snapshot is None else snapshot.at,
        "now": now,
        "error": error,
        "state": state,
        "headline": _HEADLINES["learning" if state == "silent" and answers else state],
        "alarms": sum(each["alarm"] for each in answers),
        "watched": sum(not each["learning"] for each in answers),
        "answers": sorted(answers, key=lambda each: not each["alarm"]),
        "traffic": sorted(traffic, key=lambda each: not each["alarm"]),
        "judges": sorted(judges, key=lambda each: not each["alarm"]),
    }


def _state(answers: list[dict[str, Any]], others: list[dict[str, Any]]) -> str:
    if any(each["alarm"] for each in answers):
        return "bad"
    if any(each["alarm"] for each in others):
        return "unsure"
    return "good" if others or not all(each["learning"] for each in answers) else "silent"


def _of(gauges: Gauges, *wanted: Gauge) -> list[tuple[str, ...]]:
    """Labels under which one of these gauges has a value."""
    return sorted({labels for gauge, labels in gauges if gauge in wanted})


def _past(gauges: Gauges, store: NoteStore | None) -> dict[tuple[str, str], list[StoredRun]]:
    """The newest runs by kind and name, the newest first."""
    if store is None:
        return {}
    names = [
        *((KIND, "/".join(each)) for each in _of(gauges, *_OF_ANSWERS)),
        *((TRAFFIC_KIND, "/".join(each)) for each in _of(gauges, Gauge.TRAFFIC_DRIFT_EVIDENCE)),
        *((JUDGE_KIND, "/".join(each)) for each in _of(gauges, Gauge.JUDGE_DRIFT_FLIPS, Gauge.JUDGE_DRIFT_ALARM)),
    ]
    return {(kind, name): store.runs(kind, name, PAST_ALARMS) for kind, name in names}


class _DriftRows:
    """Figures and past alarms, as rows."""

    def __init__(
        self, gauges: Gauges, past: Mapping[tuple[str, str], list[StoredRun]], now: float, address: str
    ) -> None:
        self._gauges = gauges
        self._past = past
        self._now = now
        self._address = address

    def answer(self, quantity: str, route: str) -> dict[str, Any]:
        """One quantity on one route."""
        labels = (quantity, route)
        evidence, threshold = self._value(Gauge.DRIFT_EVIDENCE, labels), self._value(Gauge.DRIFT_THRESHOLD, labels)
        alarm = bool(self._value(Gauge.DRIFT_ALARM, labels))
        runs = self._past.get((KIND, f"{quantity}/{route}"), [])
        baseline = self._value(Gauge.DRIFT_BASELINE, labels)
        return {
            "quantity": quantity,
            "route": route,
            "lower_is_better": quantity in _LOW_IS_GOOD,
            "evidence": evidence,
            "threshold": threshold,
            "share": None if evidence is None or not threshold else min(max(evidence / threshold, 0.0), 1.0),
            "baseline": baseline,
            "learning": evidence is None and not alarm,
            "band": self._band(labels),
            **self._alarm(alarm, runs),
            "judge_moved": bool(alarm and runs and runs[0].body.get("judge_moved")),
            "past": [{"at": run.at, "evidence": run.body.get("evidence")} for run in runs],
            "acknowledge": self._command("--quantity", quantity, "--route", route) if alarm else None,
            "samples": _samples(quantity, route, baseline, runs),
        }

    def traffic(self, signal: str, route: str) -> dict[str, Any]:
        """One signal of all traffic on one route."""
        alarm = bool(self._value(Gauge.TRAFFIC_DRIFT_ALARM, (signal, route)))
        runs = self._past.get((TRAFFIC_KIND, f"{signal}/{route}"), [])
        body = runs[0].body if alarm and runs else {}
        return {
            "signal": signal,
            "route": route,
            "evidence": self._value(Gauge.TRAFFIC_DRIFT_EVIDENCE, (signal, route)),
            "threshold": body.get("threshold"),
            **self._alarm(alarm, runs),
            "cut": body.get("cut"),
            "direction": body.get("direction"),
            "acknowledge": self._command("--quantity", signal, "--route", route) if alarm else None,
        }

    def judge(self, judge: str) -> dict[str, Any]:
        """One judge on its fixed samples."""
        alarm = bool(self._value(Gauge.JUDGE_DRIFT_ALARM, (judge,)))
        runs = self._past.get((JUDGE_KIND, judge), [])
        body = runs[0].body if runs else {}
        return {
            "judge": judge,
            "flips": self._value(Gauge.JUDGE_DRIFT_FLIPS, (judge,)),
            "read_at": runs[0].at if runs else None,
            "read": body.get("read"),
            "version": body.get("version"),
            "since_version": body.get("since"),
            "alarm": alarm,
            "acknowledge": self._command("--judge", judge) if alarm else None,
        }

    def _band(self, labels: tuple[str, ...]) -> dict[str, Any] | None:
        """The day's mean in the band that holds at every look; None before the first score."""
        wanted = {
            "value": Gauge.BAND_MEAN,
            "low": Gauge.BAND_LOW,
            "high": Gauge.BAND_HIGH,
            "scores": Gauge.BAND_SCORES,
            "since": Gauge.BAND_SINCE,
        }
        found = {name: self._value(gauge, labels) for name, gauge in wanted.items()}
        return None if None in found.values() else found

    def _value(self, gauge: Gauge, labels: tuple[str, ...]) -> float | None:
        return self._gauges.get((gauge, labels))

    def _alarm(self, alarm: bool, runs: list[StoredRun]) -> dict[str, Any]:  # noqa: FBT001 - it is what the row says
        since = runs[0].at if alarm and runs else None
        return {"alarm": alarm, "since": since, "since_seconds": None if since is None else max(self._now - since, 0.0)}

    def _command(self, *options: str) -> str:
        """For a shell. The address goes along where it is not the one that the command knows."""
        where = () if self._address == _DEFAULT_ADDRESS else ("--url", self._address)
        return " ".join(map(quote, ("ragwatch", "acknowledge", *options, *where)))


def _samples(quantity: str, route: str, baseline: float | None, runs: list[StoredRun]) -> str:
    """Address of the answers on the worse side of the baseline, the newest first."""
    found = {"route": route, "quantity": quantity}
    if runs and runs[0].body.get("judge"):
        found["judge"] = str(runs[0].body["judge"])
    if baseline is not None:
        found["above" if quantity in _LOW_IS_GOOD else "below"] = f"{baseline:.4g}"
    return f"samples?{urlencode(found)}"
