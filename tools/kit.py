"""Writes rules (deploy/prometheus, kubernetes, jsonnet) and grafana/dashboards from config.example.yaml."""

from __future__ import annotations

import json
from pathlib import Path

from ragwatch.commands.rules import plan_of
from ragwatch.config import load
from ragwatch.rules import operator, prometheus, yaml_text
from tools.dashboards import boards

ROOT = Path(__file__).parent.parent
LOCAL_PAGES = "http://127.0.0.1:10477"  # where config.example.yaml listens


def files() -> dict[str, str]:
    """Text of every generated file, by its path in the repository."""
    plan = plan_of(load(ROOT / "config.example.yaml"))
    texts = {f"deploy/prometheus/{name}": yaml_text(file) for name, file in prometheus(plan).items()}
    texts["deploy/kubernetes/prometheusrule.yaml"] = yaml_text(operator(plan))
    texts["deploy/jsonnet/rules.json"] = json.dumps(prometheus(plan), indent=1, ensure_ascii=False) + "\n"
    for name, board in boards(plan.links.pages or LOCAL_PAGES).items():
        texts[f"grafana/dashboards/{name}"] = json.dumps(board, indent=1, ensure_ascii=False) + "\n"
    return texts


if __name__ == "__main__":
    for name, text in files().items():
        file = ROOT / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        print(name)
