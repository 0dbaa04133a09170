"""Rules: exact sums over replicas, impossible objectives are refused, YAML round-trips, keys reach the plan."""

from dataclasses import fields, replace
from itertools import accumulate
from math import sqrt
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from support.command_line import command
from support.programs import expects, must_hold

from ragwatch.commands.rules import plan_of
from ragwatch.config import parse
from ragwatch.config.alerts import Alerts
from ragwatch.errors import ConfigError
from ragwatch.model.estimate import Addends
from ragwatch.model.quantities import Quantity
from ragwatch.rules import NAMES, BurnRate, Limits, Links, RulePlan, alerts, impossible, prometheus, yaml_text
from ragwatch.rules.alert import Severity
from ragwatch.statistics.estimators import hajek

SUMS = ("weight", "weighted_score", "squared_weight", "squared_weight_score", "squared_weight_squared_score")
PLAN = RulePlan("embedded", "ragwatch", Links("https://r", "https://d", "https://p"))
GROUPS: Any = prometheus(PLAN)["ragwatch-recording.yaml"]["groups"]
OF_ONE = {"window": "1h", "quantity": "faithfulness"}
NEVER = r"slos\.faithfulness: burns\[0\] can never fire.*raise the objective"


def is_hourly(rule: dict[str, Any]) -> bool:
    """Whether a rule is of an hour and of one quantity, or of none: promtool is slow."""
    return all(rule.get("labels", {}).get(name, value) == value for name, value in OF_ONE.items())


HOURLY = {"groups": [{**group, "rules": list(filter(is_hourly, group["rules"]))} for group in GROUPS]}
MINIMAL = {"sources": [{"kind": "tail", "name": "app", "path": "/var/log/x"}]}
EXAMPLE = Path(__file__).parents[3] / "config.example.yaml"

_text = st.text(
    st.characters(max_codepoint=0xFFFF, exclude_categories=("Cs", "Cc")) | st.sampled_from("\n :#-"), max_size=20
)
_tree = st.recursive(
    st.none() | st.booleans() | st.integers() | _text,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(_text.filter(lambda t: "\n" not in t), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.from_regex(r"[a-z]{1,8}", fullmatch=True), _tree, max_size=3))
def test_yaml_reads_back_as_it_was(data: dict[str, Any]) -> None:
    """Whatever is written means the same to a YAML reader."""
    assert yaml.safe_load(yaml_text(data)) == data


def test_what_to_write_instead_is_right() -> None:
    """The share that the error proposes is accepted, and the objective as well."""
    assert impossible(0.9, BurnRate(3600.0, 900.0, 0.02, "critical")) is not None
    assert impossible(0.9, BurnRate(3600.0, 900.0, 0.0138, "critical")) is None
    assert impossible(0.9307, BurnRate(3600.0, 900.0, 0.02, "critical")) is None


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        *(({"slos": {"faithfulness": {"objective": objective}}}, NEVER) for objective in (0.5, 0.9, 0.93)),
        ({"slos": {"faith": {"objective": 0.96}}}, r"slos\.faith"),
        ({"windows": ["1h", "15m"]}, "rise"),
        ({"windows": ["15m", "1d"]}, "window: is not one of"),
        ({"window": "3d"}, "or the longest, which is the baseline"),
        ({"slos": {"faithfulness": {"objective": 0.95}}, "windows": ["15m", "1h", "1d"]}, "must be of `windows`"),
        ({"runbooks": "wiki"}, "pattern"),
        ({"hld": "5m"}, "Extra inputs"),
    ],
)
def test_alerts_that_make_no_sense_are_refused(wrong: dict[str, Any], told: str) -> None:
    """Each with its reason; an objective that could never call anybody, with what to write instead."""
    with pytest.raises(ValidationError, match=told):
        Alerts.model_validate(wrong)


def test_links_lead_to_the_address_people_use() -> None:
    """The external URL if there is one, else an address that others can open; never loopback, never a wildcard."""
    for listen in ("127.0.0.1:10477", "localhost:80", "[::1]:80", "0.0.0.0:80", "[::]:80"):
        assert plan_of(parse({**MINIMAL, "web": {"listen": listen}}, folder=Path())).links.pages is None
    named = parse({**MINIMAL, "web": {"listen": "10.0.0.7:80"}}, folder=Path())
    assert plan_of(named).links.pages == "http://10.0.0.7:80"
    outside = parse({**MINIMAL, "web": {"external_url": "https://rag.example.com"}}, folder=Path())
    assert plan_of(outside).links.pages == "https://rag.example.com"


@pytest.mark.costly
@pytest.mark.parametrize(
    ("schedule", "pause"),
    [("10m", None), ("*/10 * * * *", None), ("45m", 2701.0), ("0 3 * * *", 86401.0), ("*/10 8-17 * * 1-5", 223801.0)],
)
def test_suites_that_are_run_seldom_are_given_their_time(schedule: str, pause: float | None) -> None:
    """A suite of once a day is not late after an hour: rules know the longest pause of each schedule."""
    suite = {"suite": "docs", "schedule": schedule, "jitter": "1s", "items": [{"query": "?", "expected": ["a"]}]}
    probe = {"kind": "http", "url": "http://127.0.0.1:1", "contexts": "hits", "params": {"q": "{{ query }}"}}
    plan = plan_of(parse({**MINIMAL, "canaries": [{**suite, "probe": probe}]}, folder=Path()))
    assert plan.rare == ({} if pause is None else {"docs": pause})
    limit = 3600.0 if pause is None else pause + 3600.0
    stale = next(alert for alert in alerts(plan) if alert.name == "RagwatchCanariesStale").expr
    assert stale.endswith(f" > {limit:g}")


def test_a_link_that_leads_nowhere_is_left_out(tmp_path: Path) -> None:
    """Without an address of runbooks, Grafana or pages alerts carry none, and the command says so."""
    plan = plan_of(parse(MINIMAL, folder=Path()))
    texts: list[Any] = [alert.rule(plan)["annotations"] for alert in alerts(plan)]
    assert not any({"runbook_url", "dashboard_url"} & set(links) for links in texts)
    assert not any("http" in text for links in texts for text in links.values())
    shown = command("rules", "--config", EXAMPLE)
    assert "alerts.runbooks is not set" in shown.stderr
    assert "alerts.dashboards is not set" in shown.stderr
    assert "web.external_url is not set: alerts carry no link to the answers" in shown.stderr
    local = tmp_path / "local.yaml"
    local.write_text(yaml.safe_dump({**MINIMAL, "web": {"external_url": "http://localhost:10477"}}))
    shown = command("rules", "--config", local)
    assert "leads to the machine of whoever opens it" in shown.stderr


def test_severities_are_a_key_and_unknown_names_are_refused() -> None:
    """With or without the prefix; all rules of a name; a misspelt name is answered with a near one."""
    alerts_section = {"severity": {"QualityDrift": "warning", "RagwatchCanariesDegraded": "info"}}
    plan = plan_of(parse({**MINIMAL, "alerts": alerts_section}, folder=Path()))
    rules: list[Any] = [alert.rule(plan) for alert in alerts(plan)]
    told = {"RagwatchQualityDrift": {"warning"}, "RagwatchCanariesDegraded": {"info"}}
    assert {name: {rule["labels"]["severity"] for rule in rules if rule["alert"] == name} for name in told} == told
    with pytest.raises(ConfigError, match=r"alerts\.severity.*did you mean `QualityDrift`"):
        parse({**MINIMAL, "alerts": {"severity": {"QualtyDrift": "warning"}}}, folder=Path())
    with pytest.raises(ConfigError, match="Xyz: is no alert; use one of"):
        parse({**MINIMAL, "alerts": {"severity": {"Xyz": "warning"}}}, folder=Path())
    with pytest.raises(ConfigError, match="critical"):
        parse({**MINIMAL, "alerts": {"severity": {"QualityDrift": "page"}}}, folder=Path())


def test_what_pages_by_default() -> None:
    """Every alert has one severity, but for those of two degrees; without a threshold nothing is said to be bad."""
    plan = replace(PLAN, thresholds={Quantity.FAITHFULNESS: 0.8})
    pages = {alert.name for alert in alerts(plan) if alert.severity is Severity.CRITICAL}
    assert pages == {
        *("RagwatchQualityBad", "RagwatchQualityDrift", "RagwatchCanariesDegraded", "RagwatchCanaryAnswersWrong"),
        *("RagwatchTrafficDrift", "RagwatchSourceRejects", "RagwatchAbsent"),
    }
    told = {alert.name for alert in alerts(plan) if alert.severity is Severity.INFO}
    assert told == {"RagwatchTopContextIgnored", "RagwatchTrafficDrift", "RagwatchPromptInjection"}
    for other in (PLAN, replace(PLAN, thresholds={Quantity.TOP_RANKED_IGNORED: 0.3})):
        names = {alert.name for alert in alerts(other)}
        assert names & {"RagwatchQualityBad", "RagwatchErrorBudgetBurn", "RagwatchAbsent"} == {"RagwatchAbsent"}


def test_rules_of_one_name_are_one_row_of_the_page() -> None:
    """They may differ in severity only; every name is one that `alerts.severity` takes."""
    plan = replace(PLAN, thresholds={Quantity.FAITHFULNESS: 0.8}, objectives={Quantity.FAITHFULNESS: 0.95})
    rows = {(alert.name, alert.meaning, alert.delay, alert.promise, alert.hold) for alert in alerts(plan)}
    assert sorted(name for name, *_ in rows) == sorted(NAMES)


@pytest.mark.costly
def test_the_command_prints_or_writes(tmp_path: Path) -> None:
    """To stdout as one document, to a directory as files; both formats."""
    shown, written, resource = (
        command("rules", "--config", EXAMPLE, *options)
        for options in ((), ("--out", str(tmp_path)), ("--format", "operator"))
    )
    assert (shown.return_value, written.return_value) == (0, 0)
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["ragwatch-alerts.yaml", "ragwatch-recording.yaml"]
    groups = [group for name in reversed(files) for group in yaml.safe_load((tmp_path / name).read_text())["groups"]]
    assert yaml.safe_load(shown.stdout)["groups"] == groups
    shown_resource = yaml.safe_load(resource.stdout)
    assert (shown_resource["kind"], shown_resource["spec"]["groups"]) == ("PrometheusRule", groups)


@pytest.mark.costly
def test_two_replicas_are_one(tmp_path: Path) -> None:
    """Halves of a log, read by two replicas that are scraped at other times, give the whole's figures.

    Mean to 1e-12 and standard error to 1e-9 of what the counters' totals say, interval within 0.01 of the estimator's.
    """
    rng = Random(7)
    log = [(rng.choice((0.0, 0.25, 1.0, 1.0)), rng.choice((0.1, 0.5, 1.0))) for _ in range(400)]
    halves = log[:150], log[150:]
    series = [scraped for name, half in zip("ab", halves, strict=True) for scraped in _scraped(name, half)]
    whole = Addends.of(log)
    mean = whole.wx / whole.w
    error = sqrt(whole.w2x2 - 2 * mean * whole.w2x + mean**2 * whole.w2) / whole.w
    low, high = hajek.interval(whole)[1:3]
    chosen = '{quantity="faithfulness",window="1h"}'
    cases = [
        (f"all:ragwatch_quality:mean1h{chosen}", mean, 1e-12),
        (f"route:ragwatch_quality:mean1h{chosen}", mean, 1e-12),
        (f"all:ragwatch_quality:stderr1h{chosen}", error, 1e-9),
    ]
    cases += [(f"all:ragwatch_quality:low1h{chosen}", low, 0.01), (f"all:ragwatch_quality:high1h{chosen}", high, 0.01)]
    asked = [expects(f"count(abs({expr} - {value!r}) < {within})", "50m") for expr, value, within in cases]
    must_hold(tmp_path, HOURLY, {"interval": "1m", "input_series": series, "promql_expr_test": asked})


@pytest.mark.costly
def test_a_page_of_drift_begins_and_ends_with_the_alarm(tmp_path: Path) -> None:
    """At once both times; missed scrapes are no end, nor is a restart of less than 5 minutes; a longer absence is."""
    place = 'job="ragwatch",route="search",quantity="faithfulness"'
    series = {
        f'ragwatch_drift_alarm{{{place},instance="a"}}': "0x4 1x2 _ stale _ stale 1 0x5 1x2" + " stale" * 12,
        f'ragwatch_drift_baseline_ratio{{{place},instance="a"}}': "0.9x7 _ stale _ stale 0.9x9" + " stale" * 12,
    }
    (alert,) = [alert for alert in alerts(PLAN) if alert.name == "RagwatchQualityDrift"]
    rule = alert.rule(PLAN)
    del rule["annotations"]
    added: Any = rule["labels"]
    firing = {"exp_labels": {**added, "job": "ragwatch", "route": "search", "judge": "embedded"}}
    fires = {4: False, 5: True, 8: True, 11: True, 12: True, 13: False, 18: False, 19: True, 24: True, 27: False}
    asked = [
        {"alertname": alert.name, "eval_time": f"{minute}m", "exp_alerts": [firing] * is_firing}
        for minute, is_firing in fires.items()
    ]
    given = [{"series": name, "values": values} for name, values in series.items()]
    test = {"interval": "1m", "input_series": given, "alert_rule_test": asked}
    must_hold(tmp_path, {"groups": [{"name": "pages", "rules": [rule]}]}, test)


def _scraped(instance: str, log: list[tuple[float, float]]) -> list[dict[str, str]]:
    """Five counters of a replica, scraped every minute, begun at zero; one of the replicas is scraped now and then."""
    every = 10
    rows = [(1 / p, x / p, 1 / p**2, x / p**2, x**2 / p**2) for x, p in log]
    series = []
    for index, name in enumerate(SUMS):
        totals = [0.0, *accumulate(row[index] for row in rows)]
        values = [f"{totals[min(n, len(totals) - 1)]!r}" for n in range(0, 41 * every, every)]
        if instance == "b":
            values = [value if n % 3 == 0 or n == 40 else "_" for n, value in enumerate(values)]
        place = f'job="ragwatch",instance="{instance}",route="search",judge="embedded"'
        series.append({"series": f"ragwatch_faithfulness_{name}_total{{{place}}}", "values": " ".join(values)})
    return series


@pytest.mark.costly
def test_a_counter_that_began_anew_falls_back_on_increase(tmp_path: Path) -> None:
    """A replica that lost its state counts from zero again: what it had counted before is not taken off again.

    Largest less smallest would say 120 of the first replica, which grew by 120 + 10 + 110 (Prometheus takes the first
    value after a reset for growth); the second one, which lost nothing, grew by 60 of which half is scored.
    """
    lost, kept = "0+10x12 10+10x11", "0+2.5x24"
    named = {"weight": (lost, kept), "weighted_score": (lost, "0+1.25x24")}
    of = 'job="j",route="r",judge="embedded"'
    series = [
        {"series": f'ragwatch_faithfulness_{name}_total{{{of},instance="{at}"}}', "values": values}
        for name, both in named.items()
        for at, values in zip("ab", both, strict=True)
    ]
    place = '{job="j",judge="embedded",quantity="faithfulness",window="1h"}'
    figures = {"_weight:increase1h": 240 + 60, "_weighted_score:increase1h": 240 + 30, ":mean1h": 0.9}
    asked = [
        expects(f"count(abs(all:ragwatch_quality{figure}{place} - {value}) < 1e-9)", "1h")
        for figure, value in figures.items()
    ]
    must_hold(tmp_path, HOURLY, {"interval": "150s", "input_series": series, "promql_expr_test": asked})


def test_a_route_has_its_own_threshold_and_objective() -> None:
    """The general one leaves that route out; null leaves the route without; names of routes are quoted in patterns."""
    faith, relevancy = Quantity.FAITHFULNESS, Quantity.ANSWER_RELEVANCY
    plan = replace(PLAN, thresholds={faith: 0.9, relevancy: 0.8}, objectives={faith: 0.95})
    own: Any = {"route_thresholds": {faith: 0.5, relevancy: None}, "route_objectives": {faith: 0.94}}
    plan = replace(plan, **{name: {"v1.items": limits} for name, limits in own.items()})
    assert list(plan.limits_by_route) == [
        (faith, 'route!~"v1\\\\.items"', 0.9),
        (faith, 'route="v1.items"', 0.5),
        (relevancy, 'route!~"v1\\\\.items"', 0.8),
    ]
    assert (plan.threshold(faith, "v1.items"), plan.threshold(relevancy, "v1.items")) == (0.5, None)
    assert plan.threshold(faith, "other") == 0.9
    groups: Any = prometheus(plan)["ragwatch-recording.yaml"]["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    shortfalls = [rule["expr"] for rule in rules if rule["record"] == "route:ragwatch_quality:shortfall"]
    assert [expr.partition(" - ")[0] for expr in shortfalls] == ["0.9", "0.5", "0.8"]
    burns = [alert.expr for alert in alerts(plan) if alert.name == "RagwatchErrorBudgetBurn"]
    assert len(burns) == 2 * len(plan.burns)
    assert all(expr.count("v1") == 5 for expr in burns)


def test_segments_are_recorded_where_they_are_configured() -> None:
    """With segments, sums over replicas and routes and the estimates from them; without, not a byte changes."""
    without = yaml_text(prometheus(PLAN)["ragwatch-recording.yaml"])
    text = yaml_text(prometheus(replace(PLAN, segments=True))["ragwatch-recording.yaml"])
    assert "segment" not in without
    names = {line.split('"')[1] for line in text.splitlines() if 'record: "segment:' in line and "1h" in line}
    sums = {f"segment:ragwatch_quality_{addend}:increase1h" for addend in SUMS}
    figures = ("mean", "stderr", "effective_samples", "inverse_trials", "low", "high")
    assert names == sums | {f"segment:ragwatch_quality:{figure}1h" for figure in figures}
    assert "sum by (job, cluster, namespace, quantity, segment, value, judge)" in text


@pytest.mark.parametrize(
    ("alerts_judge", "drift_judge", "told"),
    [(None, None, ("a", "a")), ("b", None, ("b", "a")), (None, "b", ("a", "b")), ("b", "b", ("b", "b"))],
)
def test_drift_is_of_the_watched_judge(
    alerts_judge: str | None, drift_judge: str | None, told: tuple[str, str]
) -> None:
    """Thresholds are compared with `alerts.judge`; drift is of `drift.judge` or the first judge, as in the daemon."""
    judges = [{"kind": "lexical", "name": name} for name in ("a", "b")]
    sections = {"alerts": {"judge": alerts_judge}, "drift": {"judge": drift_judge}}
    plan = plan_of(parse({**MINIMAL, "judges": judges, **sections}, folder=Path()))
    assert (plan.judge, plan.watcher) == told


def test_routes_with_a_control_are_known() -> None:
    """The route that is compared, not the control: of that there is no alarm."""
    plan = plan_of(parse({**MINIMAL, "routes": ["new", "old"], "drift": {"controls": {"new": "old"}}}, folder=Path()))
    assert plan.controlled == ("new",)


def test_every_limit_of_an_alert_can_be_configured() -> None:
    """Each key of `alerts` that is a limit of the plan reaches it."""
    shared = {each.name for each in fields(Limits)} & set(Alerts.model_fields)
    changed = dict.fromkeys(shared, 0.25) | {"samples": 40, "free": 1 << 30}
    given = {("minimum_samples" if name == "samples" else name): value for name, value in changed.items()}
    plan = plan_of(parse({**MINIMAL, "alerts": given}, folder=Path()))
    assert {name: getattr(plan.limits, name) for name in changed} == changed
