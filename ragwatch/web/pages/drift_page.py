"""Serves the drift page: monitored quantities, evidence, active and past alarms, and how to acknowledge them."""

from collections.abc import Mapping
from dataclasses import dataclass
from shlex import quote
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.routing import Route

from ragwatch.errors import StoreError
from ragwatch.model.quantities import LOW_IS_GOOD
from ragwatch.ports import Store, StoredRun
from ragwatch.statistics.snapshot import Gauge, Gauges, Snapshot
from ragwatch.statistics.trends import evidence_words
from ragwatch.web.pages.drift_replies import (
    Alarmed,
    AnswerDrift,
    Band,
    DatedAlarm,
    Drift,
    JudgeDrift,
    PastAlarm,
    SegmentDrift,
    TrafficDrift,
)
from ragwatch.web.pages.figure_replies import Alarm
from ragwatch.web.pages.overview import active_alarms
from ragwatch.web.pages.pages import Site, event_line
from ragwatch.web.request_limit import MIB

KIND, TRAFFIC_KIND, JUDGE_KIND = "drift", "traffic_drift", "anchor"
PAST_ALARMS = 5
EVENT_SECONDS, MAX_EVENTS, MAX_EVENT_ROUTES = 7 * 86400.0, 50, 5
RESPONSE_SIZE = 4 * MIB  # approximate memory for one response
_DEFAULT_ADDRESS = "http://127.0.0.1:10477"
_HEADLINES = {
    "bad": "Answer quality has drifted",
    "unsure": "A judge or the traffic has drifted",
    "good": "No drift detected",
    "silent": "No drift data yet",
    "learning": "Learning baselines",
}
_ANSWER_GAUGES = (Gauge.DRIFT_ALARM, Gauge.DRIFT_EVIDENCE, Gauge.BAND_MEAN)
_JUDGE_GAUGES = (Gauge.JUDGE_DRIFT_FLIPS, Gauge.JUDGE_DRIFT_ALARM)


def drift_routes(site: Site) -> list[Route]:
    """Routes of the drift page and of its data as JSON."""

    def view(request: Request) -> tuple[Drift, int]:
        shown = drift(site.board.latest(), site.store, now=site.clock(), address=str(request.base_url).rstrip("/"))
        return shown, 200 if shown["error"] is None else 503

    return site.page_and_reply("/drift", "drift.html", view, RESPONSE_SIZE, refreshes=True)


def drift(snapshot: Snapshot | None, store: Store, *, now: float, address: str) -> Drift:
    """Builds the data of the page; without past alarms and events if the store cannot be read, see `error`."""
    try:
        return _drift(snapshot, store, now, address)
    except StoreError as failure:
        return {**_drift(snapshot, None, now, address), "error": f"the store cannot be read: {failure}"}


def _drift(snapshot: Snapshot | None, store: Store | None, now: float, address: str) -> Drift:
    gauges: Gauges = {} if snapshot is None else snapshot.gauges
    events = [] if store is None else store.events(now - EVENT_SECONDS)
    rows = _DriftRows(gauges, store, now, address)
    paused = {labels[:2] for labels in _labels_of(gauges, Gauge.DRIFT_PAUSED)}
    answers = [rows.answer(*labels) for labels in sorted({*_labels_of(gauges, *_ANSWER_GAUGES), *paused})]
    traffic = [rows.traffic(*labels) for labels in _labels_of(gauges, Gauge.TRAFFIC_DRIFT_EVIDENCE)]
    segments = _labels_of(gauges, Gauge.SEGMENT_DRIFT_ALARM)
    judges = [rows.judge(*labels) for labels in _labels_of(gauges, *_JUDGE_GAUGES)]
    others: list[Alarmed] = [*traffic, *judges]
    state = "good" if others or not all(row["learning"] for row in answers) else "silent"
    if any(row["alarm"] for row in answers):
        state = "bad"
    elif any(row["alarm"] for row in others):
        state = "unsure"
    return {
        "at": None if snapshot is None else snapshot.at,
        "now": now,
        "error": None,
        "state": state,
        "headline": _HEADLINES["learning" if state == "silent" and answers else state],
        "alarms": sum(row["alarm"] for row in answers),
        "watched": sum(not row["learning"] for row in answers),
        "answers": sorted(answers, key=lambda row: not row["alarm"]),
        "segments": [rows.segment(labels) for labels in segments if gauges[Gauge.SEGMENT_DRIFT_ALARM, labels]],
        "segments_watched": len(segments),
        "traffic": sorted(traffic, key=lambda row: not row["alarm"]),
        "traffic_paused": [
            {"signal": signal, "route": route, "paused": reason}
            for signal, route, reason in _labels_of(gauges, Gauge.TRAFFIC_DRIFT_PAUSED)
        ],
        "judges": sorted(judges, key=lambda row: not row["alarm"]),
        "events": [event_line(event) for event in reversed(events[-MAX_EVENTS:])],
        "event_routes": sorted({row["route"] for row in answers})[:MAX_EVENT_ROUTES],
    }


def _labels_of(gauges: Gauges, *selected: Gauge) -> list[tuple[str, ...]]:
    """Labels for which one of the selected gauges has a value."""
    return sorted({labels for gauge, labels in gauges if gauge in selected})


@dataclass(frozen=True, slots=True)
class _DriftRows:
    """Builds rows from gauges and past alarms."""

    _gauges: Gauges
    _store: Store | None
    _now: float
    _address: str

    def answer(self, quantity: str, route: str) -> AnswerDrift:
        labels = (quantity, route)
        dated, last = self._dated(KIND, labels, Gauge.DRIFT_ALARM)
        evidence, threshold = self._value(Gauge.DRIFT_EVIDENCE, labels), self._value(Gauge.DRIFT_THRESHOLD, labels)
        body = last if dated["alarm"] else {}
        baseline = self._value(Gauge.DRIFT_BASELINE, labels)
        paused = (place[2] for gauge, place in self._gauges if gauge is Gauge.DRIFT_PAUSED and place[:2] == labels)
        return {
            **dated,
            "quantity": quantity,
            "route": route,
            "lower_is_better": quantity in LOW_IS_GOOD,
            "evidence": evidence,
            "threshold": threshold,
            "share": None if evidence is None or not threshold else min(max(evidence / threshold, 0.0), 1.0),
            "words": None if evidence is None or not threshold else evidence_words(evidence, threshold),
            "baseline": baseline,
            "learning": evidence is None and not dated["alarm"],
            "paused": next(paused, None),
            "changed_stage": body.get("changed_stage"),
            "band": self._band(labels),
            "judge_moved": bool(body.get("judge_moved")),
            "samples": _samples(quantity, route, baseline, str(last.get("judge") or "")),
        }

    def _runs(self, kind: str, *labels: str) -> list[StoredRun]:
        """The newest stored alarms and their ends, newest first."""
        return [] if self._store is None else self._store.runs(kind, "/".join(labels), 2 * PAST_ALARMS)

    def _dated(self, kind: str, labels: tuple[str, str], gauge: Gauge) -> tuple[DatedAlarm, Mapping[str, Any]]:
        """Whether an alarm stands and since when, past alarms with their ends, and what is stored of the newest."""
        newest, alarm = self._runs(kind, *labels), bool(self._value(gauge, labels))
        runs = [run for run in newest if run.failing][:PAST_ALARMS]
        ends = {run.body.get("seq"): run.body.get("since") for run in newest if not run.failing}
        past: list[PastAlarm] = [
            {"at": run.at, "evidence": run.body.get("evidence"), "back": ends.get(run.body.get("seq"))} for run in runs
        ]
        since = runs[0].at if alarm and runs else None
        return {
            "alarm": alarm,
            "since": since,
            "since_seconds": None if since is None else max(self._now - since, 0.0),
            "back": past[0]["back"] if past and not alarm else None,
            "past": past,
            "acknowledge": self._command("--quantity", labels[0], "--route", labels[1]) if alarm else None,
        }, runs[0].body if runs else {}

    def segment(self, labels: tuple[str, ...]) -> SegmentDrift:
        quantity, route, segment, value = labels
        return {
            "quantity": quantity,
            "route": route,
            "segment": segment,
            "value": value,
            "began": self._value(Gauge.SEGMENT_DRIFT_BEGAN, labels),
            "before": self._value(Gauge.SEGMENT_DRIFT_BEFORE, labels),
            "mean": self._value(Gauge.SEGMENT_DRIFT_SINCE, labels),
            "answers": self._value(Gauge.SEGMENT_DRIFT_ANSWERS, labels),
            "acknowledge": self._command("--quantity", quantity, "--route", route),
        }

    def traffic(self, signal: str, route: str) -> TrafficDrift:
        labels = (signal, route)
        dated, last = self._dated(TRAFFIC_KIND, labels, Gauge.TRAFFIC_DRIFT_ALARM)
        body = last if dated["alarm"] else {}
        evidence = self._value(Gauge.TRAFFIC_DRIFT_EVIDENCE, labels)
        limit = self._value(Gauge.TRAFFIC_DRIFT_THRESHOLD, labels) or body.get("threshold")
        return {
            **dated,
            "signal": signal,
            "route": route,
            "evidence": evidence,
            "words": None if evidence is None or not limit else evidence_words(evidence, limit),
            "threshold": body.get("threshold"),
            "cut": body.get("cut"),
            "direction": body.get("direction"),
        }

    def judge(self, judge: str) -> JudgeDrift:
        alarm, runs = bool(self._value(Gauge.JUDGE_DRIFT_ALARM, (judge,))), self._runs(JUDGE_KIND, judge)
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

    def _band(self, labels: tuple[str, ...]) -> Band | None:
        """Mean and confidence sequence of the day; None before the first score."""
        mean, low, high = (self._value(gauge, labels) for gauge in (Gauge.BAND_MEAN, Gauge.BAND_LOW, Gauge.BAND_HIGH))
        scores, since = (self._value(gauge, labels) for gauge in (Gauge.BAND_SCORES, Gauge.BAND_SINCE))
        if mean is None or low is None or high is None or scores is None or since is None:
            return None
        return {"value": mean, "low": low, "high": high, "scores": scores, "since": since}

    def _value(self, gauge: Gauge, labels: tuple[str, ...]) -> float | None:
        return self._gauges.get((gauge, labels))

    def _command(self, *options: str) -> str:
        """Shell command to acknowledge an alarm; has `--url` unless the address is the default."""
        url = () if self._address == _DEFAULT_ADDRESS else ("--url", self._address)
        return " ".join(map(quote, ("ragwatch", "acknowledge", *options, *url)))


def _samples(quantity: str, route: str, baseline: float | None, judge: str) -> str:
    """URL of the answers that are worse than the baseline, newest first."""
    parameters = {"route": route, "quantity": quantity} | ({"judge": judge} if judge else {})
    if baseline is not None:
        parameters["above" if quantity in LOW_IS_GOOD else "below"] = f"{baseline:.4g}"
    return f"samples?{urlencode(parameters)}"


def acknowledge_routes(site: Site) -> list[Route]:
    """Route of the page. Its form is sent to `/-/drift/acknowledge`."""

    def view(request: Request) -> tuple[dict[str, object], int]:
        asked = {name: value for name in ("quantity", "route", "judge") if (value := request.query_params.get(name))}
        snapshot = site.board.latest()
        alarms = [] if snapshot is None else active_alarms(snapshot)
        alarm = next((alarm for alarm in alarms if alarm_query(alarm) == asked), None)
        at = None if snapshot is None else snapshot.at
        return {"at": at, "alarm": alarm, "query": urlencode(asked, errors="replace")}, 200

    return [site.page("/acknowledge", "acknowledge.html", view, MIB)]


def alarm_query(alarm: Alarm) -> dict[str, str]:
    """Parameters of the address that acknowledges an alarm."""
    if alarm["kind"] == "judge":
        return {"judge": alarm["name"]}
    return {"quantity": alarm["name"], "route": alarm["route"]}
