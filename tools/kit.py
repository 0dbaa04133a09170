"""Writes what is generated: into the repository what people apply from it, and everything else into dist/kit.

In the repository lie the rules of deploy/prometheus, the dashboards, docs/alerts.md and the patch of the sidecar. In
dist/kit are the Helm chart, the manifests for Kubernetes and the jsonnet mixin, each with its generated files, and the
manual page; `make wheel` takes the page from there.

The dashboards have the panels of canaries, anchors, joins, exports, segments and criteria, which config.example.yaml
shows as comments, in closed rows.
"""

import json
from dataclasses import replace
from pathlib import Path
from shutil import rmtree
from typing import Any

import yaml

from ragwatch.commands.rules import board_plan_of, dashboard_files, plan_of, stored_dashboard
from ragwatch.config import load
from ragwatch.config.paging import failures_table
from ragwatch.rules import RulePlan, alerts, operator, prometheus, yaml_text
from ragwatch.rules.alert import Alert
from ragwatch.rules.dashboards import Feature
from ragwatch.rules.promql import in_words
from tools.chart import values_schema
from tools.dashboard_linter import exclusions
from tools.manual import manual

ROOT = Path(__file__).parent.parent


def files() -> dict[str, str]:
    """Text of every generated file, by its path in the repository."""
    config = load(ROOT / "config.example.yaml")
    plan = plan_of(config)
    texts = {f"deploy/prometheus/{name}": yaml_text(file) for name, file in prometheus(plan).items()}
    texts["deploy/kubernetes/sidecar-patch.yaml"] = SIDECAR_PATCH + yaml_text(sidecar_patch())
    shown = board_plan_of(config, plan)
    commented = {
        Feature.CANARIES,
        Feature.ANCHORS,
        Feature.JOINED,
        Feature.MIXED,
        Feature.EXPORT,
        Feature.SEGMENTS,
        Feature.CRITERIA,
    }
    shown = replace(shown, features=shown.features | commented, optional=shown.optional | (commented - shown.features))
    dashboards = dashboard_files(shown)
    texts |= {f"grafana/dashboards/{name}": text for name, text in dashboards.items()}
    texts["grafana/postgres/stored.json"] = stored_dashboard()
    texts["grafana/dashboards/.lint"] = yaml_text(exclusions(json.loads(text) for text in dashboards.values()))
    texts["docs/alerts.md"] = alerts_page(plan)
    return texts


def kit() -> dict[str, str]:
    """Text of every file of the kit, by its path in dist/kit: what is copied from the repository, and what is not."""
    plan = plan_of(load(ROOT / "config.example.yaml"))
    texts = {
        str(file.relative_to(ROOT)).removeprefix("deploy/"): file.read_text(encoding="utf-8")
        for folder in ("deploy/helm", "deploy/kubernetes", "deploy/jsonnet", "grafana/dashboards")
        for file in sorted((ROOT / folder).rglob("*"))
        if file.is_file()
    }
    texts["helm/ragwatch/values.schema.json"] = _json(values_schema())
    texts["helm/ragwatch/files/rules.yaml"] = yaml_text(operator(plan)["spec"])
    texts["kubernetes/prometheusrule.yaml"] = yaml_text(operator(plan))
    component = texts["kubernetes/kustomization.yaml"]
    texts["kubernetes/kustomization.yaml"] = component.replace(
        "podmonitor.yaml]", "podmonitor.yaml, prometheusrule.yaml]"
    )
    texts["jsonnet/rules.json"] = _json(prometheus(plan))
    texts["jsonnet/mixin.libsonnet"] = texts["jsonnet/mixin.libsonnet"].replace("../../grafana/", "../grafana/")
    texts["ragwatch.1"] = manual()
    return texts


def _json(value: object) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


ALERTS_PAGE = """# Alerts

Written by `tools/kit.py` from the rows of alerts (`ragwatch/rules/*_alerts.py`); the figures are those of the
default configuration. `ragwatch rules` writes the rules for another one. `alerts.severity` changes a severity:
`critical` pages, `warning` is a ticket, `info` notifies nobody.

## How soon

A new value waits for a scrape (15 s), for the recording rules and for the alert (30 s each, `evaluation_interval`). The
first notification goes out at most one evaluation and `group_wait` (30 s) after the condition of the alert holds. So it
comes at most 105 s after the cause is in the figures of ragwatch, plus the time in the column *delay*.

## How many

One incident is one notification.

- All pages of a job form one group: a break of all routes is one page; a route that follows is an update of it.
- QualityDrift, QualityBad and the critical ErrorBudgetBurn are about the same: the quality of a route. Whichever starts
  first pages, the others do not start for a day, nor within an hour after it. So they do not hide each other, and
  nothing is sent after the mend.
- A page of drift begins and ends with the alarm of the detector. A break of one segment is a ticket; not while a page
  tells of its whole route, nor within an hour after that.
- A warning never mutes a page. A failing or drifted judge mutes the tickets on its own quality, not those of other
  judges.
- A page about a route names a judge or canaries that changed too: look at these first.
- A signal of traffic that pages (refusals, empty answers, another language, repeated answers, empty retrievals) holds
  back the alerts on the quality of its route: their figures follow from it. A drop of quality that began before the end
  of that page does not page for 6 hours after it; one that began later does.
- Such a signal pages once its share has risen by more than half of the answers with 98 % confidence: nine answers
  where all have it, 16 where four in five do. Until that is decided, for an hour at most, neither its ticket nor the
  page about quality is sent.
- A signal that follows from another one of its route is no ticket of its own: citations after any of these five;
  refusals, empty answers and duplicate contexts after empty retrievals.

## What pages

Each kind of failure, and what reports it. `ragwatch check --all` and the overview name those that do not page under a
configuration, by route, with the key to write. Drift and signals have a baseline to learn first: by default 100
scores, and 500 requests, and answers of a day.

{failures}

## The list

{table}

## Silence

Silence an alert only while someone works on it, and always with an end:

```sh
amtool silence add alertname=RagwatchQualityDrift route=search --duration 2h --comment "rollback is running, $USER"
```
"""


SIDECAR_PATCH = (
    "# The sidecar of sidecar.yaml for any Deployment: what kustomization.yaml adds. Written by tools/kit.py.\n"
)


def sidecar_patch() -> dict[str, Any]:
    """The sidecar without the names of a Deployment and of its own containers."""
    manifest: dict[str, Any] = yaml.safe_load((ROOT / "deploy/kubernetes/sidecar.yaml").read_text(encoding="utf-8"))
    template = manifest["spec"]["template"]
    pod = {name: value for name, value in template["spec"].items() if name != "containers"}
    return {
        "apiVersion": manifest["apiVersion"],
        "kind": manifest["kind"],
        "metadata": {"name": "any"},
        "spec": {
            "template": {"metadata": {"labels": {"ragwatch": template["metadata"]["labels"]["ragwatch"]}}, "spec": pod}
        },
    }


def alerts_page(plan: RulePlan) -> str:
    """The page about all alerts: severity, meaning, delay, false alarms and runbook of each."""
    by_name: dict[str, list[Alert]] = {}
    for alert in alerts(plan):
        by_name.setdefault(alert.name, []).append(alert)
    rows = ["| alert | severity | it fires when | delay | false alarms |", "|---|---|---|---|---|"]
    for name, (alert, *others) in by_name.items():
        severity = ", ".join(dict.fromkeys(each.severity for each in (alert, *others)))
        link = f"[{name}](../deploy/runbooks/{name}.md)"
        rows.append(f"| {link} | {severity} | {alert.meaning} | {_delay(alert, plan)} | {alert.promise} |")
    return ALERTS_PAGE.format(table="\n".join(rows), failures=failures_table())


def _delay(alert: Alert, plan: RulePlan) -> str:
    if alert.hold is not None:
        return f"{alert.delay}; no hold"
    hold = f"{in_words(plan.limits.hold)} (`alerts.hold`)"
    return f"{alert.delay}, then {hold}" if alert.delay else hold


if __name__ == "__main__":
    rmtree(ROOT / "dist" / "kit", ignore_errors=True)
    for name, text in (files() | {f"dist/kit/{name}": text for name, text in kit().items()}).items():
        file = ROOT / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        print(name)
