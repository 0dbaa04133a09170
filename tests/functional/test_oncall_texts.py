"""Texts of alerts, rendered by promtool, and which of several alerts about one route pages."""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from functional.test_oncall_rules import needed
from support.oncall_cases import PLAN, Climb, Flat, Phase, Shape, scores, series
from support.programs import promtool

from ragwatch.commands.rules import plan_of
from ragwatch.config import parse
from ragwatch.model.quantities import Quantity
from ragwatch.rules import BurnRate, RulePlan, yaml_text

MINUTES = 5
PHASE = 24 * MINUTES


def rules(plan: RulePlan, names: Collection[str], folder: Path, *, texts: bool = True) -> None:
    """Write these alerts and what they build upon, in the order in which they ship; without texts it is faster."""
    groups = needed(plan, names, ["faithfulness"])
    for group in groups if not texts else ():  # alerts compare the hour; the other windows are for texts
        group["rules"] = [rule for rule in group["rules"] if rule["labels"].get("window", "1h") == "1h"]
        for rule in group["rules"]:
            rule.pop("annotations", None)
    (folder / "rules.yaml").write_text(yaml_text({"groups": [group for group in groups if group["rules"]]}))


def play(folder: Path, *tests: Mapping[str, Any], interval: str = "5m") -> str:
    """Play tests to the rules; what promtool says."""
    names = [group["name"] for group in yaml.safe_load((folder / "rules.yaml").read_text())["groups"]]
    content = {"rule_files": ["rules.yaml"], "evaluation_interval": interval, "group_eval_order": names}
    content["tests"] = [{"interval": interval, **test} for test in tests]
    (folder / "case.json").write_text(json.dumps(content))
    return promtool("test", "rules", folder / "case.json")[1]


def holds(
    folder: Path, names: Collection[str], phases: Iterable[Phase], checks: Sequence[Any], plan: RulePlan = PLAN
) -> None:
    """Play phases of 24 steps to the rules of these alerts; all expressions must be as expected."""
    rules(plan, names, folder, texts=False)
    told = play(folder, {"input_series": series(phases), "promql_expr_test": checks})
    assert "FAILED" not in told, told


def shown(
    folder: Path, alert: str, phases: Iterable[Phase], minute: int, plan: RulePlan = PLAN, *, more: Sequence[Any] = ()
) -> str:
    """What promtool shows of an alert that fires at a minute of phases, and of more series."""
    rules(plan, [alert], folder)
    expected = [{"alertname": alert, "eval_time": f"{minute}m", "exp_alerts": []}]
    return play(folder, {"input_series": [*series(phases), *more], "alert_rule_test": expected})


def said(
    folder: Path, alert: str, phases: Iterable[Phase], minute: int, plan: RulePlan = PLAN, *, more: Sequence[Any] = ()
) -> dict[str, str]:
    """Annotations of the only alert of this name that fires at a minute."""
    told = shown(folder, alert, phases, minute, plan, more=more)
    return dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', told.partition("Annotations:")[2]))


def drift(baseline: float, alarm: int) -> dict[str, Shape]:
    """Gauges of a detector of faithfulness."""
    place = '{quantity="faithfulness",route="search"}'
    return {f"ragwatch_drift_alarm{place}": Flat(alarm), f"ragwatch_drift_baseline_ratio{place}": Flat(baseline)}


PAGES = 'ragwatch_pages_info{external_url="https://ragwatch.example.com"}'
BEGAN = 7140.0
"""When the change began, as the daemon estimates it: 01:59 UTC."""


def broke(before: float, since: float, answers: int, stage: tuple[float, float] | None = None) -> dict[str, Shape]:
    """Gauges of the break behind an alarm of faithfulness, and the share of the stage that rose."""
    place = '{quantity="faithfulness",route="search"}'
    figures = {"before_ratio": before, "since_ratio": since, "since_samples": answers}
    told = {f"ragwatch_drift_{name}{place}": Flat(value) for name, value in figures.items()}
    told[f"ragwatch_drift_change_start_timestamp_seconds{place}"] = Flat(BEGAN)
    for period, share in zip(("before", "since"), stage or (), strict=False):
        told[f'ragwatch_drift_stage_ratio{{route="search",stage="generation",period="{period}"}}'] = Flat(share)
    return {**told, PAGES: Flat(1)}


READ: dict[str, Shape] = {PAGES: Flat(1), 'ragwatch_traffic_contexts_count{route="search"}': Climb(10)}
HEALTHY = {**scores("faithfulness", 0.99, 100), **drift(0.96, 0), **READ}
BROKEN = {**scores("faithfulness", 0.80, 100), **drift(0.96, 1), **READ}
BAD, DRIFT, STANDING, TRAFFIC = (
    f"Ragwatch{name}" for name in ("QualityBad", "QualityDrift", "QualityDriftStanding", "TrafficDrift")
)


def firing(name: str, minute: int, count: int) -> dict[str, Any]:
    """Whether an alert fires at a minute."""
    expected = [{"labels": "{}", "value": count}] if count else []
    return {
        "expr": f'count(ALERTS{{alertname="{name}",alertstate="firing"}})',
        "eval_time": f"{minute}m",
        "exp_samples": expected,
    }


def abstaining(share: float, alarm: int, low: float | None = None) -> dict[str, Shape]:
    """Of ten answers a step so many that abstain; `low` is the lower bound of their share since the change."""
    place = 'route="search",signal="abstentions"'
    shares = {"before": 0.03, "since": share / 10} if alarm else {}
    least = share / 10 if low is None else low
    return {
        'ragwatch_traffic_contexts_count{route="search"}': Climb(10),
        'ragwatch_traffic_abstentions_total{route="search"}': Climb(share),
        f"ragwatch_traffic_drift_alarm{{{place}}}": Flat(alarm),
        f"ragwatch_traffic_drift_start_timestamp_seconds{{{place}}}": Flat(BEGAN) if alarm else None,
        **{
            f'ragwatch_traffic_drift_ratio{{{place},above="",period="{period}"}}': Flat(value)
            for period, value in shares.items()
        },
        f'ragwatch_traffic_drift_ratio_low{{{place},above=""}}': Flat(least) if alarm else None,
    }


def test_a_page_of_drift_says_what_is_needed_at_night(tmp_path: Path) -> None:
    """Route, quantity, how much, since when; the stage that rose most, not the most frequent one before; the judge."""
    judge = {'ragwatch_judge_drift_alarm{judge="embedded"}': Flat(1), 'ragwatch_canary_degraded{suite="docs"}': Flat(3)}
    bad = {**BROKEN, **broke(0.99, 0.41, 32, (0.01, 0.6)), **judge, **abstaining(5, 1)}
    told = said(tmp_path, DRIFT, [HEALTHY, bad], PHASE + 75)
    assert told["summary"] == "search: faithfulness 0.99 -> 0.41 since 01:59 UTC, 32 answers (drift)."
    assert "Stage that changed: generation, from 1 to 60 % of answers." in told["description"]
    assert "Traffic changed too (RagwatchTrafficDrift): abstentions." in told["description"]
    assert "The judge changed too (RagwatchJudgeDrift)" in told["description"]
    assert "Canaries degraded: 3." in told["description"]
    asked = "route=search&judge=embedded&quantity=faithfulness&below=0.96&since=7140"
    assert told["samples_url"] == f"https://ragwatch.example.com/samples?{asked}&sort=worst"
    assert told["description"].endswith(
        f"Worst answers: https://ragwatch.example.com/samples?{asked}&sort=worst&limit=3"
    )
    assert told["causes_url"] == f"https://ragwatch.example.com/causes?{asked.removesuffix('&since=7140')}"


def test_a_page_names_only_what_is_known(tmp_path: Path) -> None:
    """No stage whose share did not rise significantly, no figures that the daemon does not tell, no dead link."""
    phases = [{**phase, PAGES: None} for phase in (HEALTHY, BROKEN)]
    told = said(tmp_path, DRIFT, phases, PHASE + 75, replace(PLAN, links=replace(PLAN.links, pages=None)))
    assert told["summary"] == "search: faithfulness fell (drift)."
    assert not {"Stage", "Worst"} & set(told["description"].split())
    assert not told.get("samples_url")
    told = said(tmp_path, DRIFT, phases, PHASE + 75)
    assert told["samples_url"].startswith("https://ragwatch.example.com/samples?route=search")


def test_a_link_leads_to_the_daemon_that_raised_the_alert(tmp_path: Path) -> None:
    """Of two daemons of one job, each with its own pages, the one with the alarm."""
    phases = [abstaining(0.3, 0), abstaining(9.5, 1)]
    other = series([{name: Flat(0) for name in phases[0]}] * 2, ["b"])
    for instance in "ab":
        pages = f'ragwatch_pages_info{{job="ragwatch",instance="{instance}",external_url="https://{instance}"}}'
        other.append({"series": pages, "values": f"1x{2 * 24}"})
    told = said(tmp_path, TRAFFIC, phases, PHASE + 30, more=other)
    assert told["samples_url"] == "https://a/samples?route=search&since=7140"


def test_a_page_about_a_threshold_says_how_far_and_since_when(tmp_path: Path) -> None:
    """The worst quantity first."""
    told = said(tmp_path, BAD, [HEALTHY, {**BROKEN, **scores("faithfulness", 0.7, 100)}], PHASE + 90)
    assert told["summary"] == "search: faithfulness is 0.70, threshold 0.85 since 02:04 UTC."
    assert "faithfulness 0.70, threshold 0.85, worse by at least 0.12; " in told["description"]
    assert "&quantity=faithfulness&below=0.85&since=7440&sort=worst" in told["samples_url"]


@pytest.mark.parametrize(("mean", "left"), [(0.94, "is used up in 14 days"), (0.3, "is used up in 21 hours")])
def test_a_burn_rate_says_when_the_budget_is_gone(mean: float, left: str, tmp_path: Path) -> None:
    """Not how many times as fast as planned."""
    plan = replace(PLAN, burns=(BurnRate(3600.0, 900.0, 0.0014, "critical"),))
    phases = [scores("faithfulness", each, 500) for each in (1.0, mean)]
    told = said(tmp_path, "RagwatchErrorBudgetBurn", phases, PHASE + 25 if mean < 0.9 else PHASE + 75, plan)
    assert left in told["summary"], told
    assert " times" not in told["summary"] + told["description"]


def test_one_route_is_one_page_and_nothing_new_comes_after_the_mend(tmp_path: Path) -> None:
    """Drift pages with its alarm and as long; the threshold, crossed later, does not page; a second break does."""
    worse = {**BROKEN, **scores("faithfulness", 0.5, 100)}
    above = {name: shape for name, shape in scores("faithfulness", 0.9, 100).items() if "_ratio" in name}
    checks = [
        *(firing(name, PHASE - 5, 0) for name in (BAD, DRIFT, STANDING)),
        *(firing(DRIFT, minute, 1) for minute in (PHASE, 3 * PHASE - 5)),
        *(firing(name, at * PHASE + 90, 0) for name in (BAD, STANDING) for at in (1, 2)),
        *(firing(name, minute, 0) for name in (BAD, DRIFT, STANDING) for minute in (3 * PHASE + 5, 5 * PHASE - 5)),
        *(firing(name, 5 * PHASE + 60, int(name == DRIFT)) for name in (BAD, DRIFT, STANDING)),
    ]
    phases = [HEALTHY, worse | above, worse, HEALTHY, HEALTHY, worse | above]
    holds(tmp_path, [BAD, DRIFT, STANDING], phases, checks)


def test_a_ticket_of_a_segment_names_the_value(tmp_path: Path) -> None:
    """With the mean before and since, and the estimated begin."""
    place = '{quantity="faithfulness",route="search",segment="tenant",value="O\'Neil"}'
    figures = {"before_ratio": 0.98, "since_ratio": 0.61, "since_samples": 32, "change_start_timestamp_seconds": BEGAN}
    shapes = {f"ragwatch_segment_drift_{name}{place}": Flat(value) for name, value in figures.items()}
    bad = {**HEALTHY, **shapes, f"ragwatch_segment_drift_alarm{place}": Flat(1)}
    told = said(tmp_path, "RagwatchSegmentDrift", [HEALTHY, bad], PHASE + 30)
    assert told["summary"] == ("search: tenant O'Neil: faithfulness 0.98 -> 0.61 since 01:59 UTC, 32 answers (drift).")
    assert "own baseline: faithfulness, by judge embedded" in told["description"]


def test_missed_scrapes_neither_end_nor_repeat_a_page(tmp_path: Path) -> None:
    """Of 1 to 3 minutes, as by a restart: a page of a threshold goes on, once. Of drift: unit/rules/test_rules.py."""
    rules(PLAN, [BAD], tmp_path, texts=False)
    steps, at, tests = 240, 200, []
    for missed in (1, 2, 3):
        inputs = []
        for name, shape in scores("faithfulness", 0.5, 10).items():
            metric, _, labels = name.partition("{")
            by, flat = (shape.by, 0.0) if isinstance(shape, Climb) else (0.0, getattr(shape, "value", 0.0))
            values = [f"{flat + by * minute:g}" for minute in range(steps)]
            values[at : at + missed] = ["stale"] * missed
            inputs.append({"series": f'{metric}{{job="ragwatch",instance="a",{labels}', "values": " ".join(values)})
        checks = [firing(BAD, minute, 1) for minute in range(at - 2, at + missed + 8)]
        tests.append({"input_series": inputs, "promql_expr_test": checks})
    told = play(tmp_path, *tests, interval="1m")
    assert "FAILED" not in told, told


def test_a_threshold_page_holds_drift_back_for_a_day_only(tmp_path: Path) -> None:
    """A threshold that is too high for a route pages all the time; a break of that route is told all the same."""
    low = {**scores("faithfulness", 0.6, 100), **drift(0.58, 0)}
    worse = {**scores("faithfulness", 0.3, 100), **drift(0.58, 1)}
    checks = [
        *(firing(name, PHASE + 90, int(name == BAD)) for name in (BAD, DRIFT)),
        *(firing(name, 13 * PHASE, int(name == DRIFT)) for name in (BAD, DRIFT)),
    ]
    holds(tmp_path, [BAD, DRIFT], [low, *[worse] * 13], checks)


def test_a_threshold_page_that_ends_is_not_followed_by_one_about_drift(tmp_path: Path) -> None:
    """An alarm that outlasts it for less than an hour is about the same break."""
    late_alarm = {**HEALTHY, **scores("faithfulness", 0.5, 100)}
    mended = {**HEALTHY, **drift(0.96, 1)}
    ended = range(2 * PHASE, 2 * PHASE + 60, 5)
    checks = [firing(BAD, 2 * PHASE - 5, 1), *(firing(DRIFT, minute, 0) for minute in ended), firing(BAD, ended[-1], 0)]
    holds(tmp_path, [BAD, DRIFT], [HEALTHY, late_alarm, mended], checks)


SOURCE = {"sources": [{"kind": "tail", "name": "app", "path": "/x"}]}
TWO_JUDGES = [{"kind": "lexical", "name": "embedded"}, {"kind": "lexical", "name": "strict"}]


def test_a_page_of_drift_is_about_the_judge_that_is_watched(tmp_path: Path) -> None:
    """Another judge pages for thresholds; what it reads lower than the watched one at all times is no drift."""
    plan = plan_of(parse({**SOURCE, "judges": TWO_JUDGES, "alerts": {"judge": "strict"}}, folder=Path()))
    good, worse = (scores("faithfulness", mean, 100) | drift(0.96, alarm) for mean, alarm in ((0.99, 0), (0.80, 1)))
    strict = scores("faithfulness", 0.80, 100, judge="strict")
    told = f'count by (judge) (ALERTS{{alertname="{DRIFT}",alertstate="firing"}})'
    paged = [{"labels": '{judge="embedded"}', "value": 1}]
    checks = [
        {"expr": told, "eval_time": f"{minute}m", "exp_samples": expected}
        for minute, expected in ((PHASE - 5, []), (PHASE + 90, paged))
    ]
    holds(tmp_path, [DRIFT], [good | strict, worse | strict], checks, plan)


@pytest.mark.parametrize(
    ("route", "limit", "intended"),
    [
        ("search", "its baseline under an earlier judge", "add --renew"),
        ("canary", "its control (drift.controls)", "take the route out of drift.controls"),
    ],
)
def test_the_ticket_of_drift_says_what_a_route_is_compared_with(
    route: str, limit: str, intended: str, tmp_path: Path
) -> None:
    """Of alarms that do not end by themselves: a route with a control has no baseline, to be beyond or to renew."""
    drifted: Phase = {f'ragwatch_drift_alarm{{quantity="faithfulness",route="{route}"}}': Flat(1)}
    told = said(tmp_path, STANDING, [drifted], 60, replace(PLAN, controlled=("faq", "canary")))
    assert f"faithfulness on route {route} has drifted beyond {limit}. " in told["description"]
    assert told["description"].endswith(f"If the new level is intended: {intended}.")


def test_a_warning_holds_no_page_back(tmp_path: Path) -> None:
    """Where the threshold is made a ticket, drift pages all the same."""
    plan = replace(PLAN, severity={BAD: "warning"}, drift_quantities=(Quantity.FAITHFULNESS,))
    low = {**scores("faithfulness", 0.6, 100), **drift(0.58, 0)}
    worse = {**scores("faithfulness", 0.3, 100), **drift(0.58, 1)}
    holds(tmp_path, [BAD, DRIFT], [low, worse], [firing(BAD, PHASE - 5, 1), firing(DRIFT, PHASE + 60, 1)], plan)


@pytest.mark.parametrize(
    ("share", "low", "minutes", "severities"),
    [(9.5, 0.8, 30, {"critical"}), (4.0, 0.3, 30, {"warning"}), (6.25, 0.2, 30, set()), (6.25, 0.2, 75, {"warning"})],
)
def test_a_route_that_refuses_most_questions_pages(
    share: float, low: float, minutes: int, severities: set[str], tmp_path: Path
) -> None:
    """Whatever the judge says. A smaller rise is a ticket, a large one of few answers (five of eight) after an hour."""
    told = shown(tmp_path, TRAFFIC, [abstaining(0.3, 0), abstaining(share, 1, low)], PHASE + minutes)
    assert set(re.findall(r'severity="(\w+)"', told)) == severities
    if severities:
        assert f"search: abstentions rose from 3.0 % to {10 * share:.1f} % of answers since 01:59 UTC." in told


def test_a_number_that_moved_is_told_with_its_value_and_direction(tmp_path: Path) -> None:
    """Answers with more than three contexts became rare."""
    place = 'route="search",signal="contexts"'
    moved: Phase = {
        f"ragwatch_traffic_drift_alarm{{{place}}}": Flat(1),
        f'ragwatch_traffic_drift_ratio{{{place},above="3",period="before"}}': Flat(0.9),
        f'ragwatch_traffic_drift_ratio{{{place},above="3",period="since"}}': Flat(0.125),
    }
    assert (
        said(tmp_path, TRAFFIC, [moved], 60)["summary"]
        == "search: contexts above 3 fell from 90.0 % to 12.5 % of answers."
    )


@pytest.mark.parametrize(("share", "low", "last"), [(9.5, None, 0), (6.25, 0.29, 1)])
def test_one_cause_is_one_page(share: float, low: float | None, last: int, tmp_path: Path) -> None:
    """A route that refuses pages as such, and not because its scores fall. While that is undecided, scores wait."""
    refusing = {**BROKEN, **abstaining(share, 1, low)}
    checks = [firing(DRIFT, PHASE + minute, pages) for minute, pages in ((15, 0), (45, 0), (75, last), (105, last))]
    holds(tmp_path, [TRAFFIC, DRIFT], [{**HEALTHY, **abstaining(0.3, 0)}, refusing], checks)


def test_a_page_or_ticket_stays_while_a_signal_is_undecided(tmp_path: Path) -> None:
    """Only one that does not fire yet is held back."""
    calm, undecided = abstaining(0.3, 0), abstaining(6.25, 1, 0.29)
    checks = [firing(DRIFT, 2 * PHASE + minute, 1) for minute in range(-5, 60, 5)]
    holds(tmp_path, [TRAFFIC, DRIFT], [HEALTHY | calm, BROKEN | calm, BROKEN | undecided], checks)
    place = 'ragwatch_traffic_drift_ratio{route="search",signal="abstentions",above="",period="since"}'
    phases = [calm, abstaining(4.0, 1, 0.2) | {place: Climb(0.07)}]  # more than half of the answers after 40 minutes
    holds(tmp_path, [TRAFFIC], phases, [firing(TRAFFIC, PHASE + minute, 1) for minute in range(30, 90, 5)])


@pytest.mark.parametrize(("began", "pages"), [(BEGAN, 0), (BEGAN + 3 * 3600, 1)])
def test_after_a_page_about_refusals_only_a_later_break_pages(began: float, pages: int, tmp_path: Path) -> None:
    """Scores fell because the route refused: no second page, then or when its alarm outlasts the first."""
    place = '{route="search",quantity="faithfulness"}'
    low = {**BROKEN, f"ragwatch_drift_change_start_timestamp_seconds{place}": Flat(began)}
    phases = [{**HEALTHY, **abstaining(0.3, 0)}, {**low, **abstaining(9.5, 1)}, {**low, **abstaining(0.3, 0)}]
    checks = [firing(DRIFT, minute, 0) for minute in (*range(PHASE + 15, 2 * PHASE, 15), 2 * PHASE - 10)]
    holds(tmp_path, [TRAFFIC, DRIFT], phases, [*checks, firing(DRIFT, 3 * PHASE - 10, pages)])


@pytest.mark.parametrize(
    ("cause", "others"),
    [
        ("abstentions", ("uncited_answers", "dangling_citations")),
        ("empty_retrievals", ("abstentions", "empty_answers")),
    ],
)
@pytest.mark.parametrize("first", [0, 1])
def test_a_signal_that_follows_from_another_is_no_ticket_of_its_own(
    cause: str, others: tuple[str, ...], first: int, tmp_path: Path
) -> None:
    """Unless it was one before; then it stays."""

    def alarms(values: Mapping[str, int]) -> Phase:
        return {
            f'ragwatch_traffic_drift_alarm{{route="search",signal="{signal}"}}': Flat(value)
            for signal, value in values.items()
        }

    phases = [alarms({cause: 0, **dict.fromkeys(others, first)}), alarms({cause: 1, **dict.fromkeys(others, 1)})]
    holds(tmp_path, [TRAFFIC], phases, [firing(TRAFFIC, 2 * PHASE - 10, 1 + len(others) * first)])


@pytest.mark.parametrize(("rejected", "severity"), [(40, "warning"), (80, "critical")])
def test_rejected_records_are_told_with_reason_field_and_first_line(
    rejected: float, severity: str, tmp_path: Path
) -> None:
    """The most frequent reason; a source that rejects most of its records, and did not before, pages."""
    first = 'source="app",reason="missing_field",field="answer",first="app.jsonl:12"'
    phases: list[Phase] = [
        {
            'ragwatch_requests_seen_total{source="app"}': Climb(100),
            'ragwatch_requests_rejected_total{source="app",reason="missing_field"}': Climb(by),
            'ragwatch_requests_rejected_total{source="app",reason="torn_json"}': Climb(min(1, by)),
            f"ragwatch_rejections_info{{{first}}}": Flat(1),
        }
        for by in (1, 1, rejected)
    ]
    told = shown(tmp_path, "RagwatchSourceRejects", phases, 2 * PHASE + 90)
    assert re.findall(r'severity="(\w+)"', told) == [severity]
    share = f"{rejected + 1}% of the records were rejected in the last 1h"
    assert f"app: {share}: missing_field (answer), first at app.jsonl:12." in told


def test_the_rise_of_a_signal_that_pages_is_a_key(tmp_path: Path) -> None:
    """Refusals do not page where a configuration says so."""
    rises = {"abstentions": None, "uncited_answers": 0.9}
    plan = plan_of(parse({**SOURCE, "judges": TWO_JUDGES[:1], "alerts": {"rises": rises}}, folder=Path()))
    told = shown(tmp_path, TRAFFIC, [abstaining(0.3, 0), abstaining(9.5, 1)], PHASE + 30, plan)
    assert set(re.findall(r'severity="(\w+)"', told)) == {"warning"}
