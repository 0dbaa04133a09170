"""The drift page: alarms with time and command; missing data is not called healthy."""

import re
from collections import Counter
from dataclasses import replace
from html import unescape
from shlex import split
from typing import Any

import httpx
import pytest
from support import asked
from support.snapshots import AT, small

from ragwatch.ports import RecordedEvent, Store, StoredRun
from ragwatch.statistics.snapshot import Gauge, Snapshot
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.web import PageScope
from ragwatch.web.pages.drift_page import drift

HERE = "http://127.0.0.1:10477"
HOSTILE = "a'b; rm -rf $HOME <script>alert(1)</script>"


def watched(
    quantity: str, route: str, evidence: float, *, alarm: float = 0.0, baseline: float | None = 0.9
) -> dict[Any, float]:
    """Gauges of one detector whose threshold is 120."""
    gauges = {
        (Gauge.DRIFT_EVIDENCE, (quantity, route)): evidence,
        (Gauge.DRIFT_THRESHOLD, (quantity, route)): 120.0,
        (Gauge.DRIFT_ALARM, (quantity, route)): alarm,
    }
    return gauges if baseline is None else gauges | {(Gauge.DRIFT_BASELINE, (quantity, route)): baseline}


def banded(low: float, high: float) -> dict[Any, float]:
    """Gauges of a confidence sequence that runs since an hour."""
    band = {Gauge.BAND_LOW: low, Gauge.BAND_HIGH: high, Gauge.BAND_MEAN: (low + high) / 2}
    band |= {Gauge.BAND_SCORES: 1234.0, Gauge.BAND_SINCE: AT - 3600.0}
    return {(gauge, ("faithfulness", "search")): value for gauge, value in band.items()}


def alarmed(store: Store, name: str, age: float, **body: Any) -> None:
    """An alarm so many seconds ago."""
    whole = {"at": AT - age, "seq": 7, "evidence": 121.5, "threshold": 120.0, "scores": 300.0, **body}
    store.record_run(StoredRun("drift", name, AT - age, failing=True, body=whole), Counter())


def showing(*gauges: dict[Any, float]) -> Snapshot:
    """The small Snapshot with these gauges."""
    return replace(small(), gauges={key: value for part in gauges for key, value in part.items()})


async def get(snapshot: Snapshot | None, store: Store | None, path: str, base: str = HERE) -> httpx.Response:
    """A page of the application."""
    return await asked.get(store, path, scope=PageScope(), snapshot=snapshot, base=base)


async def test_an_alarm_says_since_when_and_what_to_do(store: SqliteStore) -> None:
    """It comes first, with its time, evidence, baseline, command, and the answers on the worse side.

    It names the stage that rose, with its share in the baseline and since; alarms of earlier versions have none.
    """
    change = {"stage": "generation", "share": 0.5, "before": 0.12}
    alarmed(store, "faithfulness/search", 7200.0, judge="embedded", judge_moved=True, changed_stage=change)
    alarmed(store, "faithfulness/search", 90_000.0, judge="embedded", judge_moved=False)
    snapshot = showing(
        watched("context_precision", "search", 30.0), watched("faithfulness", "search", 130.0, alarm=1.0)
    )
    view = (await get(snapshot, store, "/api/v1/drift")).json()
    first, second = view["answers"]
    assert (view["state"], view["alarms"]) == ("bad", 1)
    assert (first["quantity"], first["alarm"], first["since"], first["share"]) == ("faithfulness", True, AT - 7200, 1.0)
    assert first["acknowledge"] == "ragwatch acknowledge --quantity faithfulness --route search"
    assert (first["judge_moved"], first["changed_stage"], second["changed_stage"]) == (True, change, None)
    assert first["samples"] == "samples?route=search&quantity=faithfulness&judge=embedded&below=0.9"
    assert (second["alarm"], second["since"], second["acknowledge"], second["share"]) == (False, None, None, 0.25)
    page = (await get(snapshot, store, "/drift")).text
    drifted = ("Answer quality has drifted", "2 h ago", "The judge had drifted too", "130", "0.900")
    for text in (*drifted, first["acknowledge"], "<b>generation</b>, 12 % → 50 % of the answers."):
        assert text in page
    assert unescape(page).count(first["samples"]) == 1
    assert page.index("faithfulness") < page.index("context precision")


@pytest.mark.parametrize(
    ("gauges", "expected", "texts", "absent"),
    [
        (
            watched("faithfulness", "search", 60.0),
            {"share": 0.5},
            ('<rect class="interval" x="0" y="0" width="100.0"', "50 percent of what raises the alarm", "No drift"),
            "Answer quality has drifted",
        ),
        (
            watched("contradiction", "search", 1.0, baseline=0.1),
            {"samples": "samples?route=search&quantity=contradiction&above=0.1"},
            (),
            "below=",
        ),
        (watched("faithfulness", "new", 2.0, baseline=None), {}, ("compared with a control route",), "Learning"),
        (
            {(Gauge.DRIFT_ALARM, ("faithfulness", "search")): 1.0},
            {"alarm": True, "since": None, "evidence": None, "threshold": None, "share": None},
            ("since an unknown time",),
            "nan",
        ),
        (
            watched("faithfulness", "search", 1.0) | banded(0.75, 0.85),
            {"band": {"value": 0.8, "low": 0.75, "high": 0.85, "scores": 1234.0, "since": AT - 3600.0}},
            (
                *('<rect class="interval" x="150.0" y="3" width="20.0"', '<rect class="threshold" x="180.0"'),
                *("band 0.750 to 0.850", "from 1,234 scores since", "contains the mean at every look"),
            ),
            "Learning",
        ),
    ],
)
async def test_a_quantity_shows_what_is_known(
    gauges: dict[Any, float], expected: dict[str, Any], texts: tuple[str, ...], absent: str
) -> None:
    """In JSON and on the page: evidence against its threshold, where the worse answers lie, a control, a band.

    An alarm without evidence, as after a change of judge, stands, and no figure is invented.
    """
    snapshot = showing(gauges)
    (row,) = (await get(snapshot, None, "/api/v1/drift")).json()["answers"]
    assert {name: row[name] for name in expected} == expected
    page = (await get(snapshot, None, "/drift")).text
    assert [text for text in texts if text not in page] == []
    assert absent not in page


async def test_traffic_and_judges_have_their_part(store: SqliteStore) -> None:
    """A shift of traffic and a judge that moved are told with their commands; they are no drift of answers."""
    body = {"evidence": 200.0, "threshold": 180.0, "cut": "3.0", "direction": "fall"}
    store.record_run(StoredRun("traffic_drift", "contexts/search", AT - 4000, failing=True, body=body), Counter())
    for at, failing, more in ((AT - 90_000, True, body), (AT - 80_000, False, {"since": AT - 82_800})):
        run = StoredRun("traffic_drift", "abstentions/search", at, failing=failing, body={**more, "seq": 7})
        store.record_run(run, Counter())
    read = {"version": "claude-2", "since": "claude-1", "read": 98}
    store.record_run(StoredRun("anchor", "claude", AT - 3000, failing=True, body=read), Counter())
    gauges = {
        (Gauge.TRAFFIC_DRIFT_EVIDENCE, ("contexts", "search")): 250.0,
        (Gauge.TRAFFIC_DRIFT_ALARM, ("contexts", "search")): 1.0,
        (Gauge.TRAFFIC_DRIFT_EVIDENCE, ("abstentions", "search")): 2.0,
        (Gauge.TRAFFIC_DRIFT_ALARM, ("abstentions", "search")): 0.0,
        (Gauge.JUDGE_DRIFT_FLIPS, ("claude",)): 0.12,
        (Gauge.JUDGE_DRIFT_ALARM, ("claude",)): 1.0,
    }
    _, ended = drift(showing(gauges), store, now=AT, address=HERE)["traffic"]
    back = [ended["back"], *(past["back"] for past in ended["past"])]
    assert (ended["signal"], back) == ("abstentions", [AT - 82_800] * 2)
    page = (await get(showing(gauges), store, "/drift")).text
    for text in (
        "A judge or the traffic has drifted", "ragwatch acknowledge --quantity contexts --route search",
        "it needs 180, and the evidence is 250",
        "1 h ago", "are at or below 3.0", "ragwatch acknowledge --judge claude", "12.0 %", "98", "claude-2",
        "compared with claude-1", "No quantity has a baseline", "back since ",
    ):  # fmt: skip
        assert text in page, text


@pytest.mark.parametrize(("snapshot", "text"), [(None, "No digest has run yet"), (small(), "No drift data yet")])
async def test_silence_is_not_health(snapshot: Snapshot | None, text: str, store: SqliteStore) -> None:
    """Where nothing is watched, or nothing is learnt yet, the page says so and nothing is good."""
    page = (await get(snapshot, store, "/drift")).text
    assert text in page
    assert "No drift detected" not in page
    view = (await get(snapshot, store, "/api/v1/drift")).json()
    assert (view["state"], view["answers"], view["traffic"], view["judges"]) == ("silent", [], [], [])


async def test_events_are_listed_newest_first(store: SqliteStore) -> None:
    """Events of the last 7 days, at most 50, escaped; older ones are not shown."""
    store.record(RecordedEvent(AT - 8 * 86400.0, "judge", "too old"))
    for number in range(60):
        store.record(RecordedEvent(AT - 100.0 + number, "release", f"{HOSTILE} {number}."))
    events = (await get(showing(), store, "/api/v1/drift")).json()["events"]
    assert [event["detail"] for event in events] == [f"{HOSTILE} {number}." for number in range(59, 9, -1)]
    assert events[0] == {"at": AT - 41.0, "kind": "release", "detail": f"{HOSTILE} 59."}
    shown = (await get(showing(), store, "/drift")).text
    assert "<script>" not in shown
    assert unescape(shown).index(f"{HOSTILE} 59.") < unescape(shown).index(f"{HOSTILE} 10.")
    assert "too old" not in shown


def test_hostile_names_are_words_of_a_shell(store: SqliteStore) -> None:
    """Pasted into a shell a command has them as one word; in a link they are one value."""
    alarmed(store, f"faithfulness/{HOSTILE}", 10.0, judge=HOSTILE)
    snapshot = showing(watched("faithfulness", HOSTILE, 130.0, alarm=1.0))
    (row,) = drift(snapshot, store, now=AT, address="http://localhost:99")["answers"]
    options = ["--quantity", "faithfulness", "--route", HOSTILE, "--url", "http://localhost:99"]
    assert split(row["acknowledge"]) == ["ragwatch", "acknowledge", *options]
    assert re.fullmatch(r"samples\?[^\"<>' ]*", str(row["samples"]))


async def test_a_baseline_that_waits_says_why(store: SqliteStore) -> None:
    """In JSON and on the page: which alert stands, for scores and for traffic, also before there is any figure."""
    waits = {
        (Gauge.DRIFT_PAUSED, ("faithfulness", "search", "canaries")): 1.0,
        (Gauge.TRAFFIC_DRIFT_PAUSED, ("contexts", "search", "threshold")): 1.0,
    }
    snapshot = showing(waits, watched("context_precision", "search", 3.0))
    view = (await get(snapshot, store, "/api/v1/drift")).json()
    rows = {row["quantity"]: (row["learning"], row["paused"]) for row in view["answers"]}
    assert rows == {"faithfulness": (True, "canaries"), "context_precision": (False, None)}
    assert view["traffic_paused"] == [{"signal": "contexts", "route": "search", "paused": "threshold"}]
    page = (await get(snapshot, store, "/drift")).text
    assert "The baseline is not being learned:</b> canaries are degraded" in page
    assert "1 baselines of traffic signals are not being learned:</b> a figure of this route is worse" in page


async def test_an_alarm_that_ended_says_since_when_answers_are_back(store: SqliteStore) -> None:
    """Of the quantity as a whole and of each past alarm; an alarm that stands is not back."""
    alarmed(store, "faithfulness/search", 7200.0)
    body = {"seq": 7, "since": AT - 3600.0, "mean": 0.98, "answers": 40}
    store.record_run(StoredRun("drift", "faithfulness/search", AT - 3500.0, failing=False, body=body), Counter())
    quiet = showing(watched("faithfulness", "search", 0.0))
    (row,) = (await get(quiet, store, "/api/v1/drift")).json()["answers"]
    assert row["back"] == AT - 3600.0
    assert [past["back"] for past in row["past"]] == [AT - 3600.0]
    assert "Back at the baseline since" in (await get(quiet, store, "/drift")).text
    alarmed(store, "faithfulness/search", 60.0, seq=9)
    loud = showing(watched("faithfulness", "search", 121.0, alarm=1.0))
    (row,) = (await get(loud, store, "/api/v1/drift")).json()["answers"]
    assert (row["back"], row["since"]) == (None, AT - 60.0)


async def test_an_alarm_about_a_segment_names_the_value() -> None:
    """With the mean before and since; text of a value is text."""
    cell = ("faithfulness", "search", "tenant", "<b>acme")
    gauges = {Gauge.SEGMENT_DRIFT_ALARM: 1.0, Gauge.SEGMENT_DRIFT_BEFORE: 0.98, Gauge.SEGMENT_DRIFT_SINCE: 0.61}
    snapshot = showing({(gauge, cell): value for gauge, value in gauges.items()})
    (row,) = drift(snapshot, asked.EmptyStore(), now=AT, address=HERE)["segments"]  # type: ignore[misc]
    assert (row["value"], row["before"], row["mean"], row["began"]) == ("<b>acme", 0.98, 0.61, None)
    page = (await get(snapshot, None, "/drift")).text
    assert "tenant &lt;b&gt;acme" in page
