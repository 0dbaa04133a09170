"""Manifests for Kubernetes: pod, monitor, policy and configuration agree. Schemas: `make check-deploy`."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.programs import tool

from ragwatch.config import parse
from ragwatch.config.web import WebOptions
from ragwatch.daemon.web_access import read_rules
from ragwatch.errors import ConfigError
from ragwatch.web import Access
from tools.kit import files, kit

KIT = kit()
FOLDER = Path(__file__).parents[2] / "deploy" / "kubernetes"
GRACE_SECONDS, ANNOTATION_BYTES = 30.0, 262_144


def access_of(web: WebOptions, file: Path, text: str) -> Access:
    """The rights of a web file, which starts with hashes in place of its placeholders only and asks everybody."""
    here = web.model_copy(update={"config_file": file})
    file.write_text(text)
    with pytest.raises(ConfigError, match="is not a bcrypt hash"):
        read_rules(here)
    file.write_text(text.replace("PUT A BCRYPT HASH HERE", "$2y$10$" + "a" * 53))
    access = read_rules(here).access
    assert access.anonymous == frozenset()
    return access


def document(file: str, kind: str) -> Any:
    """The only document of a kind in a file."""
    (found,) = [each for each in yaml.safe_load_all(KIT[f"kubernetes/{file}"]) if each["kind"] == kind]
    return found


def test_the_rules_fit_into_an_annotation() -> None:
    """`kubectl apply` keeps a copy of what it applied in an annotation, and those have a limit."""
    assert len(KIT["kubernetes/prometheusrule.yaml"].encode()) < ANNOTATION_BYTES


def test_pod_monitor_policy_and_configuration_agree() -> None:
    """The port that is scraped is opened, let in and listened on; the state is mounted, and there is time to drain."""
    template = yaml.safe_load((FOLDER / "sidecar.yaml").read_text())["spec"]["template"]
    (sidecar,) = template["spec"]["initContainers"]
    ports = {each["name"]: each["containerPort"] for each in sidecar["ports"]}
    monitor, policy = (
        document("podmonitor.yaml", "PodMonitor")["spec"],
        document("config.yaml", "NetworkPolicy")["spec"],
    )
    (endpoint,) = monitor["podMetricsEndpoints"]
    assert monitor["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    assert policy["podSelector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    assert {"port": ports[endpoint["port"]]} in policy["ingress"][0]["ports"]
    assert sidecar["livenessProbe"]["httpGet"]["port"] in ports

    text = document("config.yaml", "ConfigMap")["data"]["ragwatch.yaml"]
    settings = parse(yaml.safe_load(text), folder=FOLDER).settings
    assert settings.web.listen == f"0.0.0.0:{ports[endpoint['port']]}"
    writable = {each["mountPath"] for each in sidecar["volumeMounts"] if not each.get("readOnly")}
    assert str(settings.state) in writable
    assert settings.drain < template["spec"].get("terminationGracePeriodSeconds", GRACE_SECONDS)


def test_who_asks_needs_a_password(tmp_path: Path) -> None:
    """Secret, mount, users and monitor agree; the placeholders do not start, and hashes in their place do."""
    template = yaml.safe_load((FOLDER / "sidecar.yaml").read_text())["spec"]["template"]["spec"]
    secrets = {
        each["metadata"]["name"]: each["stringData"]
        for each in yaml.safe_load_all((FOLDER / "secret.yaml").read_text())
    }
    web = parse(
        yaml.safe_load(document("config.yaml", "ConfigMap")["data"]["ragwatch.yaml"]), folder=FOLDER
    ).settings.web
    (volume,) = [each for each in template["volumes"] if "secret" in each]
    (mount,) = [each for each in template["initContainers"][0]["volumeMounts"] if each["name"] == volume["name"]]
    name = volume["secret"]["secretName"]
    assert web.config_file == Path(mount["mountPath"]) / "web.yml"
    access = access_of(web, tmp_path / "web.yml", secrets[name]["web.yml"])
    (endpoint,) = document("podmonitor.yaml", "PodMonitor")["spec"]["podMetricsEndpoints"]
    for part, reference in endpoint["basicAuth"].items():
        assert part in secrets[reference["name"]]
        assert reference["key"] == part
    assert access.rights_of([secrets["ragwatch-scrape"]["username"]]) == {"metrics"}


def test_the_web_file_of_the_service_starts_with_hashes_only(tmp_path: Path) -> None:
    """The placeholders for systemd are refused; with hashes, the users of the unit's comment are asked."""
    text = (FOLDER.parent / "systemd" / "web.yml").read_text()
    unit = (FOLDER.parent / "systemd" / "ragwatch.service").read_text()
    assert "LoadCredential=web.yml:/etc/ragwatch/web.yml" in unit
    assert 'config_file: "${CREDENTIALS_DIRECTORY}/web.yml"' in unit
    web = WebOptions(listen="0.0.0.0:10477", config_file=tmp_path / "web.yml", users={"prometheus": ("metrics",)})
    assert access_of(web, tmp_path / "web.yml", text).rights_of(["prometheus"]) == {"metrics"}


def test_the_secured_stack_agrees(tmp_path: Path) -> None:
    """Its ragwatch asks the users of the web file, Prometheus is one of them, and asks by a name that is allowed."""
    stack = yaml.safe_load((FOLDER.parent / "compose.secured.yaml").read_text())
    web = parse(yaml.safe_load(stack["configs"]["ragwatch"]["content"]), folder=FOLDER).settings.web
    (job,) = yaml.safe_load(stack["configs"]["prometheus"]["content"])["scrape_configs"]
    assert {str(web.config_file), job["basic_auth"]["password_file"]} == {
        f"/run/secrets/{name}" for name in stack["secrets"]
    }
    access = access_of(web, tmp_path / "web.yml", (FOLDER.parent / "systemd" / "web.yml").read_text())
    assert access.rights_of([job["basic_auth"]["username"]]) == {"metrics"}
    assert job["static_configs"] == [{"targets": [f"{stack['services']['ragwatch']['hostname']}:10477"]}]


def test_a_state_directory_has_one_writer() -> None:
    """The state is of the pod, not of a claim that the next pod of a rollout would share with this one."""
    volumes = yaml.safe_load((FOLDER / "sidecar.yaml").read_text())["spec"]["template"]["spec"]["volumes"]
    assert all("persistentVolumeClaim" not in each for each in volumes)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole kit."""
    root = tmp_path_factory.mktemp("kit")
    for name, text in KIT.items():
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
    template = KIT["helm/ragwatch/templates/prometheusrule.yaml"]
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
