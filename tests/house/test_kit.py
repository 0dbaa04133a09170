"""The kit: chart, manifests, mixin and manual page with what is generated, as a release takes them from dist/kit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from support.programs import tool

from tools.kit import files, kit


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole kit."""
    root = tmp_path_factory.mktemp("kit")
    for name, text in kit().items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


def test_chart_operator_and_mixin_hold_the_rules_of_the_repository(folder: Path) -> None:
    """They are those of deploy/prometheus, in the form that each takes."""
    wanted = {
        name.rpartition("/")[2]: yaml.safe_load(text)
        for name, text in files().items()
        if name.startswith("deploy/prometheus/")
    }
    groups = [group for file in wanted.values() for group in file["groups"]]
    assert json.loads((folder / "jsonnet/rules.json").read_text()) == wanted
    assert yaml.safe_load((folder / "helm/ragwatch/files/rules.yaml").read_text()) == {"groups": groups}
    rule = yaml.safe_load((folder / "kubernetes/prometheusrule.yaml").read_text())
    assert (rule["kind"], rule["spec"]) == ("PrometheusRule", {"groups": groups})


def test_a_chart_without_its_rules_says_how_to_make_them() -> None:
    """The chart of the repository lacks them: it must fail, not deploy a PrometheusRule without rules."""
    template = kit()["helm/ragwatch/templates/prometheusrule.yaml"]
    assert '{{- required "files/rules.yaml: ' in template


def test_the_component_names_files_that_are_there(folder: Path) -> None:
    """Kustomize would refuse the whole."""
    component = yaml.safe_load((folder / "kubernetes/kustomization.yaml").read_text())
    assert "prometheusrule.yaml" in component["resources"]
    paths = [*component["resources"], *(patch["path"] for patch in component["patches"])]
    assert [path for path in paths if not (folder / "kubernetes" / path).is_file()] == []


def test_the_mixin_holds_rules_and_dashboards(folder: Path) -> None:
    """Jsonnet renders it, with labels and a URL of one's own."""
    mixin = folder / "jsonnet" / "mixin.libsonnet"
    asked = (
        f"local kit = (import '{mixin}') + {{_config+:: {{labels: {{team: 'x'}}, pages: 'https://own.example'}}}};"
        "std.length(kit.prometheusRules.groups) > 5"
        " && std.length(std.objectFields(kit.grafanaDashboards)) == 5"
        " && kit.prometheusAlerts.groups[0].rules[0].labels.team == 'x'"
        " && std.filter(function(v) v.name == 'pages', kit.grafanaDashboards['ragwatch-overview.json'].templating.list)"
        "[0].options[0].value == 'https://own.example'"
    )
    assert tool("jsonnet", "-e", asked, package="jsonnet") == "true\n"
