"""Somebody is called: a broken retriever becomes one page that names its stage, mending ends it, and silence is told.

A real RAG service, ragwatch, Prometheus and Alertmanager on loopback, with windows of seconds instead of hours. What
has to be waited for is played by four stories at the same time (`oncall_stories`); each test tells how one ended.
"""

import json
import re
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from functional.asking import by_label
from functional.daemon import RagwatchProcess, asked
from support.oncall_fleet import FLEET, JOB, JUDGE, LONG, PAID, SINGLE, WINDOW, Fleet, plan_at
from support.oncall_stage import ROOT, Stage, get, until

from ragwatch.demo import endless
from ragwatch.demo.questions import questions
from ragwatch.demo.service import Breakage, RagService
from ragwatch.model.quantities import Quantity
from ragwatch.rules.dashboards import BoardPlan, boards
from ragwatch.rules.dashboards.panel import Feature
from ragwatch.rules.promql import span

RECORDED, LABELS = 300, 30
SUMS = ("weight", "weighted_score", "squared_weight", "squared_weight_score", "squared_weight_squared_score")
HEALTHY = 'ragwatch_drift_alarm{{job="{}",quantity="context_precision"}} == 0'
Took = dict[str, float]


def a_broken_retriever_is_one_page(stage: Stage, fleet: Fleet) -> Took:
    """It names the route and the stage, its links work and show what fails; mending ends it. Canaries say the same."""
    until("a baseline", lambda: stage.ask(HEALTHY.format(JOB)))
    until("healthy canaries", lambda: stage.ask('ragwatch_canary_degraded{suite="docs"} == 0'))
    early = stage.told("oncall", JOB, "Ragwatch(?!Absent).+")  # a busy machine may have missed scrapes at the start
    assert not early, early
    fleet.demo.break_it(Breakage.VANISH)
    broken = time.monotonic()
    page, *_ = until("a page", lambda: stage.told("oncall", JOB, "RagwatchQuality.+"))
    called = time.monotonic()
    (alert,) = [each for each in page["alerts"] if each["labels"]["alertname"] != "RagwatchCanariesDegraded"]
    name = alert["labels"]["alertname"]
    said = alert["annotations"]
    assert said["summary"].startswith(f"{alert['labels']['route']}: "), said
    assert re.search(r" is 0\.\d\d, threshold 0\.70| (?:0\.\d\d -> 0\.\d\d since|fell)", said["summary"]), said
    _follow(said, alert["labels"], name)
    degraded = 'ALERTS{{alertname="RagwatchCanariesDegraded",alertstate="firing",job="{}"}}'
    until("broken canaries", lambda: stage.ask(degraded.format(JOB)))
    fleet.demo.mend()
    mended = time.monotonic()
    until("its end", lambda: stage.ended("oncall", JOB, name))
    ended = time.monotonic()
    pages = stage.told("oncall", JOB, "Ragwatch(?!Absent).+")
    assert {each["groupKey"] for each in pages} == {page["groupKey"]}
    quality = {alert["labels"]["alertname"] for each in pages for alert in each["alerts"]}
    assert quality - {"RagwatchCanariesDegraded"} == {name}
    return {
        "from a broken retriever to its page": called - broken,
        "from a mended one to the end of the page": ended - mended,
    }


def _follow(said: dict[str, str], labels: dict[str, str], name: str) -> None:
    """Every link of an alert leads where it says."""
    assert get(said["runbook_url"])[1].startswith(f"# {name}\n")
    status, page = get(said["samples_url"])
    shown = re.findall(r'href="samples/([0-9a-f]{32})', page)
    unsorted = said["samples_url"].removesuffix("&sort=worst")
    assert unsorted != said["samples_url"]
    same = json.loads(get(unsorted.replace("/samples?", "/api/v1/samples?limit=500&"))[1])["samples"]
    found = [each["verdict"] for each in same]
    assert status == 200
    assert shown
    assert {(each["route"], each["judge_name"]) for each in found} == {(labels["route"], labels["judge"])}
    assert {each["key"] for each in found} >= set(shown)
    status, page = get(said["samples_url"].partition("?")[0] + f"/{shown[0]}")
    assert status == 200
    link = urlsplit(said["dashboard_url"])
    uid, chosen = link.path.removeprefix("/d/"), parse_qs(link.query)
    board = json.loads((ROOT / "grafana/dashboards" / f"{uid.removeprefix('ragwatch-')}.json").read_text())
    variables = {f"var-{each['name']}" for each in board["templating"]["list"]}
    assert board["uid"] == uid
    assert set(chosen) <= variables
    assert chosen["var-route"] == [labels["route"]]


def a_failing_judge_hides_no_page(stage: Stage, fleet: Fleet) -> Took:
    """Its failing is told by day. What it still reads is right: bad answers page. A dead judge has no figures."""
    until("a baseline", lambda: stage.ask(HEALTHY.format(PAID)))
    fleet.llm.change({"kind": "server_error", "share": 0.4})
    failing = time.monotonic()
    until("a failing judge", lambda: stage.told("morning", PAID, "RagwatchJudgeFailing"))
    told = time.monotonic()
    fleet.other.break_it(Breakage.VANISH)
    until("a page", lambda: stage.told("oncall", PAID, "Ragwatch(Quality|Traffic).+"))  # most are refusals: one page
    fleet.llm.close()
    killed = time.monotonic()
    until("an open circuit breaker", lambda: stage.told("morning", PAID, "RagwatchJudgeCircuitOpen"))
    alone = time.monotonic()
    until("no figures", lambda: not stage.ask(f'route:ragwatch_quality:mean{span(WINDOW)}{{job="{PAID}"}}'))
    return {
        "from a judge that fails at times to its alert": told - failing,
        "from a judge that is gone to its alert": alone - killed,
    }


def two_replicas_are_one(stage: Stage, fleet: Fleet) -> Took:
    """Each with half of a recorded log: counters of both are those of the whole, to 1e-9.

    What rules make of such counters: tests/unit/rules/test_rules.py. Afterwards people label answers, and a judge reads
    its anchors again, for panels that show that.
    """
    zeros = f'count(ragwatch_faithfulness_weight_total{{job=~"{FLEET}|{SINGLE}"}} == 0)'
    until("counters at zero", lambda: stage.value(zeros) == 3)
    fleet.record(_recorded(fleet.folder))
    one, two, whole = (fleet.replicas[name] for name in ("one", "two", "all"))
    until("the whole log", lambda: _seen(whole) == RECORDED == _seen(one) + _seen(two))
    judged = _judged(whole)
    assert 0.5 * RECORDED < judged == _judged(one) + _judged(two) < RECORDED
    grown = f'sum(route:ragwatch_samples_judged:increase{span(LONG)}{{job="%s",window="{span(LONG)}"}})'
    until("all of it recorded", lambda: all(stage.value(grown % job) == judged for job in (FLEET, SINGLE)))
    compared = 0
    for quantity in Quantity:
        halves, alone = _totals([one, two], quantity), _totals([whole], quantity)
        compared += alone[0] > 0  # the embedded judge is blind to some
        assert halves == pytest.approx(alone, rel=1e-9, abs=1e-9), quantity
    assert compared >= 5
    _label(whole)
    until("anchors read again", lambda: _anchored(stage, whole))
    return {}


def _recorded(folder: Path) -> list[str]:
    """Answers of a healthy service, of two tiers."""
    service = RagService(folder / "recorded.jsonl")
    for question in islice(endless(questions(service.passages), seed=3), RECORDED):
        service.ask(question.text)
    service.close()
    rows = [json.loads(line) for line in (folder / "recorded.jsonl").read_text().splitlines()]
    for number, row in enumerate(rows):
        row["id"] = f"recorded-{number}"
        row["metadata"]["tier"] = "quick" if number % 3 else "slow"
    return [json.dumps(row) for row in rows]


def _seen(ragwatch: RagwatchProcess) -> float:
    series = ragwatch.series()
    return series['ragwatch_requests_seen_total{source="app"}'] if not series["ragwatch_samples_pending"] else -1.0


def _judged(ragwatch: RagwatchProcess) -> float:
    return sum(by_label(ragwatch.series(), "ragwatch_samples_judged_total", "judge").values())


def _totals(processes: list[RagwatchProcess], quantity: Quantity) -> list[float]:
    """The five sums, added up over replicas."""
    shown = [each.series() for each in processes]
    names = (f"ragwatch_{quantity}_{each}_total" for each in SUMS)
    return [sum(sum(by_label(series, name, "judge").values()) for series in shown) for name in names]


def _label(ragwatch: RagwatchProcess) -> None:
    """People say of some answers that they are good, of others that they are not."""
    tasks = _post(ragwatch, "/v1/labels/tasks", {"annotator": "ann", "count": LABELS})["tasks"]
    labels = [
        {"key": each["key"], "annotator": "ann", "at": time.time(), "scores": {"faithfulness": float(number % 4 > 0)}}
        for number, each in enumerate(tasks)
    ]
    assert _post(ragwatch, "/v1/labels", {"labels": labels})["new"] == LABELS


def _post(ragwatch: RagwatchProcess, path: str, body: dict[str, Any]) -> dict[str, Any]:
    return dict(json.loads(asked(ragwatch.address + path, json.dumps(body).encode()).body))


def _anchored(stage: Stage, ragwatch: RagwatchProcess) -> bool:
    """Anchors are read at every start, so a configuration that is loaded again reads them again."""
    assert ragwatch.get("/-/reload", method="POST")[0] == 200
    return bool(stage.ask(f'ragwatch_judge_drift_flips_ratio{{job="{SINGLE}"}}'))


ELSEWHERE = {Feature.MIXED, Feature.JOINED, Feature.TRACES, Feature.EXPORT, Feature.SEGMENTS, Feature.CRITERIA}


def every_panel_has_series(stage: Stage, fleet: Fleet) -> Took:
    """Every expression of a panel or annotation, and every variable, finds something at some time of the play.

    Of the colours of a panel of figures of now, one is enough. Nothing there has a cluster or a namespace. Panels of
    other kinds of sources, the export, segments and criteria are left out: the play has one log.
    """
    known: dict[str, Any] = dict(boards(BoardPlan(features=frozenset(Feature) - ELSEWHERE)))
    filled = {
        "$__rate_interval": "10s",
        "$job": ".+",
        "$instance": ".+",
        "$cluster": ".*",
        "$namespace": ".*",
        "$route": ".+",
        "$judge": JUDGE,
        "$window": span(WINDOW),
        "${window}": span(WINDOW),
    }
    asked, variables = set[str](), set[str]()
    for board in known.values():
        panels = [panel for panel in board["panels"] if panel["type"] != "row"]
        asked |= {" or ".join(f"({each['expr']})" for each in p["targets"]) for p in panels if p["type"] == "stat"}
        asked |= {each["expr"] for panel in panels if panel["type"] != "stat" for each in panel["targets"]}
        asked |= {each["expr"] for each in board["annotations"]["list"] if "expr" in each}
        variables |= {each["query"]["query"] for each in board["templating"]["list"] if each["type"] == "query"}
    placed = {each for each in variables if each.endswith((", cluster)", ", namespace)"))}
    assert len(asked) > 60
    assert (len(variables), len(placed)) == (7, 2)
    variables -= placed
    asked = {each for each in asked if "judge|drift" not in each}  # no judge is changed here, no baseline renewed
    levels = {each for each in asked if 'corrected="yes"' in each}  # of quantities with a family, in windows of digests
    asked = (asked - levels) | {each.replace("$window", "15m") for each in levels if "ragwatch_faithfulness_" in each}
    assert fleet.replicas["all"].get("/-/events?kind=release&detail=v2", method="POST")[0] == 200

    def fill(text: str) -> str:
        for name, value in filled.items():
            text = text.replace(name, value)
        return text

    left = asked | variables

    def has_series(text: str) -> bool:
        return bool(stage.values_of(*_label_values(fill(text))) if text in variables else stage.ask(fill(text)))

    def all_found() -> bool:
        nonlocal left
        left = {text for text in left if not has_series(text)}
        return not left

    try:
        until("every panel", all_found)
    finally:
        assert left == set(), left
    return {}


def _label_values(query: str) -> tuple[str, str]:
    """Label and selector of `label_values(selector, label)`."""
    selector, _, label = query.removeprefix("label_values(").removesuffix(")").rpartition(",")
    return label.strip(), selector


STORIES = (a_broken_retriever_is_one_page, a_failing_judge_hides_no_page, two_replicas_are_one, every_panel_has_series)


pytestmark = pytest.mark.alone


@dataclass
class Played:
    """The stage, what runs on it, and how each story goes."""

    stage: Stage
    fleet: Fleet
    stories: Mapping[str, Future[dict[str, float]]]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    """All stories, begun."""
    folder = tmp_path_factory.mktemp("oncall")
    fleet = Fleet(folder)
    with ExitStack() as stack:
        stage = stack.enter_context(Stage(fleet.jobs).open(folder, lambda stage: plan_at(stage, fleet.own)))
        stack.enter_context(fleet)
        pool = stack.enter_context(ThreadPoolExecutor())
        yield Played(stage, fleet, {each.__name__: pool.submit(each, stage, fleet) for each in STORIES})


@pytest.mark.parametrize("story", [each.__name__ for each in STORIES])
def test_what_was_played(story: str, played: Played, capsys: pytest.CaptureFixture[str]) -> None:
    """Each story asserts what it is about, and tells how long things took."""
    took = played.stories[story].result()
    with capsys.disabled():
        for what, seconds in took.items():
            print(f"\n  {what}: {seconds:.1f} s", end="")


def test_stopping_everything_is_told(played: Played, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is left that could be wrong: somebody is called for that, and for nothing else."""
    for each in played.stories.values():
        each.exception()
    before, begun = len(played.stage.heard), time.monotonic()
    played.fleet.stop()
    until("that no ragwatch is left", lambda: played.stage.told("oncall", JOB, "RagwatchAbsent", since=before))
    with capsys.disabled():
        print(f"\n  from the end of everything to its notification: {time.monotonic() - begun:.1f} s", end="")
    calls: list[dict[str, Any]] = [
        body for place, body in played.stage.heard[before:] if place == "oncall" and body["status"] == "firing"
    ]
    assert {alert["labels"]["alertname"] for body in calls for alert in body["alerts"]} == {"RagwatchAbsent"}
