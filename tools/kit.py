"""Writes rules (deploy/prometheus, kubernetes, jsonnet) and grafana/dashboards from config.example.yaml.

The dashboards have the panels of canaries and anchors, which the example only shows as comments.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from ragwatch.commands.dashboards import board_plan_of, dashboard_files
from ragwatch.commands.rules import plan_of
from ragwatch.config import load
from ragwatch.rules import operator, prometheus, yaml_text
from ragwatch.rules.dashboards import Feature
from tools.dashboard_linter import exclusions

ROOT = Path(__file__).parent.parent


def files() -> dict[str, str]:
    """Text of every generated file, by its path in the repository."""
    config = load(ROOT / "config.example.yaml")
    plan = plan_of(config)
    texts = {f"deploy/prometheus/{name}": yaml_text(file) for name, file in prometheus(plan).items()}
    texts["deploy/kubernetes/prometheusrule.yaml"] = yaml_text(operator(plan))
    texts["deploy/jsonnet/rules.json"] = json.dumps(prometheus(plan), indent=1, ensure_ascii=False) + "\n"
    shown = board_plan_of(config, plan)
    shown = replace(shown, features=shown.features | {Feature.CANARIES, Feature.ANCHORS})
    dashboards = dashboard_files(shown)
    texts |= {f"grafana/dashboards/{name}": text for name, text in dashboards.items()}
    texts["grafana/dashboards/.lint"] = yaml_text(exclusions(json.loads(text) for text in dashboards.values()))
    return texts


if __name__ == "__main__":
    for name, text in files().items():
        file = ROOT / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        print(name)
