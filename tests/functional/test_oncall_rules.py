"""Every alert, played to promtool: it fires once, holds its peace, resolves, and its texts can be rendered."""

import json
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from support.oncall_cases import CASES, PLAN, STEP, STEPS, Case, Climb, Phase, series
from support.programs import promtool

from ragwatch.model.quantities import Quantity
from ragwatch.rules import RulePlan, prometheus, yaml_text

PHASE = STEP * STEPS


def needed(plan: RulePlan, names: Collection[str], quantities: Collection[str]) -> list[dict[str, Any]]:
    """Groups of a plan, less what these alerts do not build upon: promtool is slow, and nothing is lost."""
    groups: Any = [group for file in prometheus(plan).values() for group in file["groups"]]
    about = [rule for group in groups for rule in group["rules"]]
    about = [rule for rule in about if rule.get("labels", {}).get("quantity") in {None, *quantities}]
    used = [rule for rule in about if rule.get("alert") in names]
    for rule in used:  # grows while it is walked
        text = json.dumps(rule)
        used += [each for each in about if "record" in each and each["record"] in text and each not in used]
    kept = ({**group, "rules": [rule for rule in group["rules"] if rule in used]} for group in groups)
    return [group for group in kept if group["rules"]]


def rules_of(case: Case) -> list[dict[str, Any]]:
    """Groups of the plan that a case's alert builds upon."""
    quantities = {each for each in map(str, Quantity) for name in {**case.before, **case.bad} if f"_{each}_" in name}
    return needed(PLAN, [case.alert], quantities)


def played(case: Case, phases: Iterable[Phase], counts: Mapping[int, int], instances: str = "a") -> dict[str, Any]:
    """One test of promtool: how often the alert fires at each instant, with the labels of the case."""
    chosen = ",".join(f'{name}="{value}"' for name, value in sorted(case.labels.items()))
    told = f'count(ALERTS{{alertname="{case.alert}",alertstate="firing",{chosen}}})'
    asked = [
        {"expr": told, "eval_time": f"{at}s", "exp_samples": [{"labels": "{}", "value": count}] if count else []}
        for at, count in counts.items()
    ]
    return {"interval": f"{STEP}s", "input_series": series(phases, instances), "promql_expr_test": asked}


def run(case: Case, folder: Path, tests: list[dict[str, Any]], every: int = STEP) -> tuple[int, str]:
    """Run tests against the rules of a case, evaluated every so many seconds."""
    groups = rules_of(case)
    (folder / "rules.yaml").write_text(yaml_text({"groups": groups}))
    content = {
        "rule_files": ["rules.yaml"],
        "evaluation_interval": f"{every}s",
        "group_eval_order": [group["name"] for group in groups],  # otherwise another one in every run
        "tests": tests,
    }
    (folder / "case.json").write_text(json.dumps(content))
    return promtool("test", "rules", folder / "case.json")


def ids(case: Case) -> str:
    """A readable name."""
    return f"{case.alert}-{CASES.index(case)}"


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_an_alert_fires_once_holds_its_peace_and_resolves(case: Case, tmp_path: Path) -> None:
    """It fires, once for two replicas; not just below, not without data; and it resolves.

    No template of its texts fails or misprints: promtool shows what it got where nothing was expected.
    """
    begun = PHASE if case.before else 0
    end = begun + case.after * STEP
    main = played(case, [case.before, case.bad, case.good], {end: 1, begun + 2 * PHASE - STEP: 0}, "ab")
    main["alert_rule_test"] = [{"alertname": case.alert, "eval_time": f"{end}s", "exp_alerts": []}]
    tests = [main, played(case, [case.before, case.short], {end: 0})]
    if case.alert != "RagwatchAbsent":
        tests.append(played(case, [], {PHASE: 0}))
    code, told = run(case, tmp_path, tests)
    assert (code, "expr:" in told, "description=" in told) == (1, False, True), told
    assert "error expanding" not in told
    assert "%!" not in told


def test_a_rejudge_is_no_alert_on_quotes(tmp_path: Path) -> None:
    """Unquoted claims of all readings are divided by these, and not by the few live answers judged meanwhile."""
    (case,) = (each for each in CASES if each.alert == "RagwatchJudgeUnverifiedQuotes")
    readings, live = "ragwatch_judge_checked_readings_total", "ragwatch_samples_judged_total"
    own = '{judge="embedded"}'
    rejudge = {
        f"ragwatch_judge_unquoted_cells_total{own}": Climb(30),
        f"{readings}{own}": Climb(300),
        f"{live}{own}": Climb(10),
    }
    weak = {**rejudge, f"{readings}{own}": Climb(100)}
    end = case.after * STEP
    tests = [played(case, [phase], {end: int(phase is weak)}, "ab") for phase in (rejudge, weak)]
    code, told = run(case, tmp_path, tests)
    assert code == 0, told
