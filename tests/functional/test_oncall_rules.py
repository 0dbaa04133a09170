"""Every alert, played to promtool: it fires once, holds its peace, resolves, and its texts can be rendered."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from oncall_cases import CASES, PLAN, STEP, STEPS, Case, Phase, series

from ragwatch.exporter.oncall import prometheus, yaml_text

PHASE = STEP * STEPS


def promtool(*arguments: str | Path) -> tuple[int, str]:
    """Exit code of promtool, and what it says."""
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool is missing: Debian package `prometheus`")
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False, timeout=300)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the rule files of the test plan."""
    folder = tmp_path_factory.mktemp("rules")
    for name, file in prometheus(PLAN).items():
        (folder / name).write_text(yaml_text(file))
    return folder


def firing(case: Case, phases: Iterable[Phase], at: int, instances: Iterable[str], *, fires: bool) -> dict[str, Any]:
    """One test of promtool: how often the alert fires at an instant, and with which labels."""
    chosen = ",".join(f'{name}="{value}"' for name, value in sorted(case.labels.items()))
    told = f'ALERTS{{alertname="{case.alert}",alertstate="firing",{chosen}}}'
    return {
        "interval": f"{STEP}s",
        "input_series": series(phases, instances),
        "promql_expr_test": [
            {
                "expr": f"count({told})",
                "eval_time": f"{at}s",
                "exp_samples": [{"labels": "{}", "value": 1}] if fires else [],
            }
        ],
    }


def run(rules: Path, tests: list[dict[str, Any]]) -> tuple[int, str]:
    """Run tests against the rules."""
    file = rules / "case.json"
    names = sorted(each.name for each in rules.glob("ragwatch-*.yaml"))
    content = {"rule_files": names, "evaluation_interval": f"{STEP}s", "tests": tests}
    file.write_text(json.dumps(content))
    return promtool("test", "rules", file)


def ids(case: Case) -> str:
    """A readable name."""
    return f"{case.alert}-{CASES.index(case)}"


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_an_alert_fires_once_holds_its_peace_and_resolves(case: Case, rules: Path) -> None:
    """It fires, once for two replicas; not just below, not without data; and it resolves."""
    begun = PHASE if case.before else 0
    silent = [] if case.alert == "RagwatchAbsent" else [firing(case, [], PHASE, ["a"], fires=False)]
    end = begun + case.after * STEP
    code, told = run(
        rules,
        [
            firing(case, [case.before, case.bad], end, ["a", "b"], fires=True),
            firing(case, [case.before, case.short], end, ["a"], fires=False),
            firing(case, [case.before, case.bad, case.good], begun + 2 * PHASE - STEP, ["a"], fires=False),
            *silent,
        ],
    )
    assert code == 0, told


def test_texts_can_be_rendered(rules: Path) -> None:
    """No template of any alert fails or misprints; promtool shows what it got where nothing was expected."""
    tests = [
        {
            "interval": f"{STEP}s",
            "input_series": series([case.before, case.bad]),
            "alert_rule_test": [
                {
                    "alertname": case.alert,
                    "eval_time": f"{(PHASE if case.before else 0) + case.after * STEP}s",
                    "exp_alerts": [],
                }
            ],
        }
        for case in CASES
    ]
    code, told = run(rules, tests)
    assert code == 1
    assert told.count("description=") >= len(CASES)
    assert "error expanding" not in told
    assert "%!" not in told
    assert "faithfulness 70%, threshold 85%, beyond it by at least" in told
