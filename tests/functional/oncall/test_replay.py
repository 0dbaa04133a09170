"""Replays against a real Prometheus and Alertmanager: breakages, quiet traffic, and lost documents; in `make slow`."""

import json
import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from functional.daemon import RagwatchProcess, write_config
from functional.test_canaries import PROBE
from functional.test_canaries import TEXTS as CANARY_TEXTS
from support.oncall_fleet import JUDGE, plan_at
from support.oncall_real import RealTraffic
from support.oncall_replay import (
    FURTHER_SCENARIOS,
    GROSS_SCENARIOS,
    LEARNT,
    MORE_SCENARIOS,
    MORNING,
    ONCALL,
    REAL_SCENARIOS,
    SCENARIOS,
    UNSEEN_SCENARIOS,
    Scenario,
    Told,
    Writer,
    play,
    sections,
    told,
)
from support.oncall_stage import Stage, until
from support.oncall_traffic import Breakage
from support.patience import TIMEOUT
from support.programs import free_port
from support.retrievers import Bm25, serving

from ragwatch.config import load
from ragwatch.config.paging import unpaged
from ragwatch.model.quantities import Quantity
from ragwatch.rules import Limits, RulePlan

pytestmark = [pytest.mark.alone, pytest.mark.slow]

REPLAY = "replay"
QUIET = tuple(Scenario(f"quiet-{number}", noise=noise) for number, noise in enumerate((0.0, 0.05, 0.1, 0.2, 0.4)))
SILENT = 20.0
"""Seconds without an answer on a route; a quarter of it without any is told."""
HOUR = 10.0
"""Seconds that an hour of the rules' windows is here."""
QUIET_WINDOWS = 60
"""Hours that a quiet replay lasts."""


@contextmanager
def watched(
    folder: Path, scenarios: Sequence[Scenario], rate: float, learnt: int = LEARNT, day: float = 0.0, **changes: Any
) -> Iterator[tuple[Stage, RagwatchProcess, Writer]]:
    """A log with traffic, and everything that watches it; `changes` are those of the rules."""
    traffic = RealTraffic([scenario.route for scenario in scenarios])
    port = free_port()
    stage = Stage({REPLAY: [port]})
    # Elsewhere it stays an hour: a machine that is busy for seconds is not taken for a silent route.
    silent = SILENT if Breakage.SILENCE in {scenario.breakage for scenario in scenarios} else Limits().silent

    def plan(opened: Stage) -> RulePlan:
        usual = plan_at(opened, port)
        limits = replace(usual.limits, silent=silent)
        return replace(usual, **{"job": REPLAY, "thresholds": {}, "objectives": {}, "limits": limits} | changes)

    with stage.open(folder, plan):
        config = write_config(
            folder,
            web=f"{{listen: '127.0.0.1:{port}'}}",
            sources=f"[{{kind: tail, name: app, path: '{folder}/replayed.jsonl', start: beginning}}]",
            **sections(scenarios, JUDGE, learnt),
        )
        with (
            RagwatchProcess(config).wait_until_serving() as ragwatch,
            Writer(folder / "replayed.jsonl", scenarios, rate=rate, learnt=learnt, day=day, traffic=traffic) as writer,
        ):
            yield stage, ragwatch, writer


MUCH_LEARNT = 2000
"""Answers that show an event to be so rare that 5 % of it are noticed soon; by default 5,000 are learnt from."""
PLAYS = {"at once": (SCENARIOS, 15.0, LEARNT), "gross": (GROSS_SCENARIOS, 15.0, LEARNT)} | {
    scenario.route: (
        (scenario, Scenario("quiet")),
        40.0,
        {"empty": MUCH_LEARNT, "tenant": 2 * MUCH_LEARNT}.get(scenario.route, LEARNT),
    )
    for scenario in MORE_SCENARIOS
}
PLAYS |= {name: (scenarios, 12.0, LEARNT) for name, scenarios in (REAL_SCENARIOS | FURTHER_SCENARIOS).items()}


@pytest.mark.parametrize("name", PLAYS)
def test_breakages_are_told_once(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The right alert, route and stage, in time, once, beside healthy routes; nothing after the mend."""
    scenarios, rate, learnt = PLAYS[name]
    with watched(tmp_path, scenarios, rate, learnt) as (stage, ragwatch, writer):
        took = play(stage, ragwatch, writer, scenarios, job=REPLAY, judge=JUDGE)
    with capsys.disabled():
        print("".join(f"\n  {what}: {answers:.0f}" for what, answers in took.items()), end="")


SHIPPED = {
    "thresholds": {quantity: limit for quantity in Quantity if (limit := quantity.row.threshold) is not None},
    "objectives": {Quantity.FAITHFULNESS: 0.95, Quantity.CONTEXT_PRECISION: 0.95},
}
"""Thresholds as shipped, and service level objectives that the judge does not think to be met."""


@pytest.mark.ends_after(60.0 + 15.0 * QUIET_WINDOWS + TIMEOUT)
def test_quiet_traffic_notifies_nobody(tmp_path: Path) -> None:
    """Healthy routes, .60 to 1 by the judge, under shipped thresholds, for two days with waves: nobody is told."""
    with watched(tmp_path, QUIET, 12.0, day=24.0 * HOUR, **SHIPPED) as (stage, ragwatch, writer):
        until(
            "all baselines", lambda: sum(name.startswith("ragwatch_drift_alarm{") for name in ragwatch.series()) >= 15
        )
        end = time.monotonic() + HOUR * QUIET_WINDOWS
        while time.monotonic() < end:
            assert told(stage, REPLAY) == []
            time.sleep(1.0)
        assert writer.healthy_answers > LEARNT + 5.0 * QUIET_WINDOWS


def test_renamed_fields_page_and_name_the_field(tmp_path: Path) -> None:
    """A release writes the contexts under another name: records are rejected, which is told once, with the field."""
    with watched(tmp_path, (Scenario("renamed", Breakage.RENAMED),), 12.0) as (stage, ragwatch, writer):
        until("all baselines", lambda: sum(name.startswith("ragwatch_drift_alarm{") for name in ragwatch.series()) >= 3)
        until("a usual share of rejected records", lambda: writer.healthy_answers >= LEARNT + 300)
        assert told(stage, REPLAY) == []
        writer.break_everything()
        pages = until("a page", lambda: [one for one in told(stage, REPLAY) if one.receiver == ONCALL])
        assert [page.alert for page in pages] == ["RagwatchSourceRejects"]
        assert "contexts" in pages[0].text
        writer.mend()
        until("the end of the page", lambda: stage.ended(ONCALL, REPLAY, "RagwatchSourceRejects"))
        assert {one.alert for one in told(stage, REPLAY) if one.receiver == ONCALL} == {"RagwatchSourceRejects"}


def test_what_cannot_be_seen_tells_nobody_and_is_named(tmp_path: Path) -> None:
    """Documents that are old, or about another thing, with answers that follow them."""
    with watched(tmp_path, UNSEEN_SCENARIOS, 12.0) as (stage, ragwatch, writer):
        until("all baselines", lambda: sum(name.startswith("ragwatch_drift_alarm{") for name in ragwatch.series()) >= 9)
        writer.break_everything()
        until("many broken answers", lambda: writer.broken_answers >= 400)
        assert told(stage, REPLAY) == []
    named = unpaged(load(tmp_path / "ragwatch.yaml"))
    for failure in ("stale documents that the answer follows", "documents about another thing"):
        assert any(text.startswith(f"{failure}: nothing; ") for text in named), named


STOPPED_SECONDS = 20.0
KEPT_SECONDS = 300.0
"""As shipped (`keep_firing_for`); elsewhere it is five, so that pages end soon."""


def test_a_page_outlives_a_daemon_that_is_stopped_for_twenty_seconds(tmp_path: Path) -> None:
    """Missed scrapes neither close a page nor raise a second one."""
    scenarios = (SCENARIOS[0], Scenario("quiet"))
    with watched(tmp_path, scenarios, 12.0, kept=KEPT_SECONDS) as (stage, ragwatch, writer):
        until("all baselines", lambda: sum(name.startswith("ragwatch_drift_alarm{") for name in ragwatch.series()) >= 6)
        writer.break_everything()
        route = scenarios[0].route
        pages = until("a page", lambda: [alert for alert in told(stage, REPLAY) if _is_page(alert, route)])
        os.kill(ragwatch.process.pid, signal.SIGSTOP)
        try:
            until("a missed scrape", lambda: stage.ask(f'up{{job="{REPLAY}"}} == 0'))
            time.sleep(STOPPED_SECONDS)
        finally:
            os.kill(ragwatch.process.pid, signal.SIGCONT)
        until("scrapes again", lambda: stage.ask(f'up{{job="{REPLAY}"}} == 1'))
        time.sleep(5.0)  # a second page would come with the next evaluations
        assert [alert for alert in told(stage, REPLAY) if _is_page(alert, route)] == pages
        assert not any(stage.ended(ONCALL, REPLAY, page.alert) for page in pages)


def _is_page(alert: Told, route: str) -> bool:
    return alert.receiver == ONCALL and alert.route == route


SUITE, DEGRADED = "docs", "RagwatchCanariesDegraded"
TEXTS = CANARY_TEXTS | {
    "parking": "Parking costs two euros an hour behind the cathedral.",
    "returns": "Unworn shoes come back in their box within thirty days.",
}


@contextmanager
def watched_canaries(folder: Path, index: Bm25) -> Iterator[Stage]:
    """A retriever whose documents are asked for every second, and everything that watches it."""
    port = free_port()
    stage = Stage({REPLAY: [port]})
    items = [{"query": text, "expected": [name], "name": name} for name, text in TEXTS.items()]
    with (
        serving(index.route()) as address,
        stage.open(folder, lambda opened: replace(plan_at(opened, port), job=REPLAY, thresholds={}, objectives={})),
    ):
        suite = {"suite": SUITE, "schedule": "1s", "k": [1, 3], "items": items}
        config = write_config(
            folder,
            web=f"{{listen: '127.0.0.1:{port}'}}",
            canaries=json.dumps([suite | {"probe": PROBE | {"url": f"{address}/search"}}]),
        )
        with RagwatchProcess(config).wait_until_serving():
            until("runs of the suite", lambda: stage.value(f'ragwatch_canary_degraded{{suite="{SUITE}"}}') == 0)
            yield stage


def wait_until_told(stage: Stage, receivers: Sequence[str]) -> None:
    """Until these receivers, in this order, have been told of the suite, each once."""
    until(
        f"alerts to {receivers}",
        lambda: [alert.receiver for alert in told(stage, REPLAY) if alert.alert == DEGRADED] == list(receivers),
    )


def test_one_lost_document_is_a_ticket_and_most_of_them_are_a_page(tmp_path: Path) -> None:
    """Nobody is told of a healthy suite; the return of the documents ends everything, and nothing else is told."""
    index = Bm25(TEXTS)
    with watched_canaries(tmp_path, index) as stage:
        assert told(stage, REPLAY) == []
        index.delete(["refunds"])
        wait_until_told(stage, [MORNING])
        index.delete(["shipping", "opening"])
        wait_until_told(stage, [MORNING, ONCALL])
        index.restore(TEXTS)
        until("the end of all alerts", lambda: not stage.ask(f'ALERTS{{job="{REPLAY}",alertname="{DEGRADED}"}}'))
        texts = [alert.text for alert in told(stage, REPLAY)]
        assert [text.split(":")[0] for text in texts] == [SUITE, SUITE]
        assert {alert.alert for alert in told(stage, REPLAY)} == {DEGRADED}
