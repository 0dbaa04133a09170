"""Manifests of a fleet of workers: pods, secrets, policies, database, autoscaler and configuration agree."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from house.test_manifests import access_of

from ragwatch.config import Config, parse
from ragwatch.exporter.catalogue import CATALOGUE
from ragwatch.rules.dashboards import sql_board
from ragwatch.sources.brokers.nats import Options as NatsOptions
from ragwatch.sources.brokers.redis_streams import Options as RedisOptions
from ragwatch.stores.postgres import Options as PostgresOptions

DEPLOY = Path(__file__).parents[2] / "deploy"
FLEET = DEPLOY / "kubernetes" / "fleet"


def documents() -> Iterator[dict[str, Any]]:
    """Every resource of the fleet."""
    for file in sorted(FLEET.glob("*.yaml")):
        yield from yaml.safe_load_all(file.read_text(encoding="utf-8"))


def of(kind: str, name: str = "ragwatch-fleet") -> dict[str, Any]:
    """The resource of a kind and a name."""
    (match,) = [one for one in documents() if (one["kind"], one["metadata"]["name"]) == (kind, name)]
    return match


def pod() -> dict[str, Any]:
    """The template of the workers."""
    template: dict[str, Any] = of("Deployment")["spec"]["template"]
    return template


@pytest.fixture
def config(monkeypatch: pytest.MonkeyPatch) -> Config:
    """The configuration of the workers, with the variables of their container."""
    (worker,) = pod()["spec"]["containers"]
    for variable in worker["env"]:
        value = "postgresql://u:p@h/d" if "DATABASE" in variable["name"] else "secret"
        monkeypatch.setenv(variable["name"], value)
    return parse(yaml.safe_load(of("ConfigMap")["data"]["ragwatch.yaml"]), folder=FLEET)


def test_a_worker_asks_the_database_that_is_made(config: Config) -> None:
    """Its address, its certificate and its port are those of the cluster; the key of the authority stays out."""
    cluster = of("Cluster", "ragwatch-db")["metadata"]["name"]
    (worker,) = pod()["spec"]["containers"]
    env = {one["name"]: one for one in worker["env"]}
    assert env["RAGWATCH_DATABASE_URL"]["valueFrom"]["secretKeyRef"] == {"name": f"{cluster}-app", "key": "uri"}
    assert env["PGSSLMODE"]["value"] == "verify-full"
    (volume,) = [one for one in pod()["spec"]["volumes"] if one["name"] == "ragwatch-db-ca"]
    assert volume["secret"]["secretName"] == f"{cluster}-ca"
    assert [item["key"] for item in volume["secret"]["items"]] == ["ca.crt"]
    (mount,) = [one for one in worker["volumeMounts"] if one["name"] == volume["name"]]
    assert env["PGSSLROOTCERT"]["value"] == f"{mount['mountPath']}/ca.crt"
    assert isinstance(config.store.options, PostgresOptions)
    allowed = [rule for rule in of("NetworkPolicy")["spec"]["egress"] if rule["ports"] == [{"port": 5432}]]
    assert allowed[0]["to"][0]["podSelector"]["matchLabels"] == {"cnpg.io/cluster": cluster}
    policy = of("NetworkPolicy", "ragwatch-db")["spec"]
    assert policy["podSelector"]["matchLabels"] == {"cnpg.io/cluster": cluster}
    assert policy["ingress"][0]["from"][0]["podSelector"] == of("NetworkPolicy")["spec"]["podSelector"]


def test_pods_policies_and_configuration_agree(config: Config, tmp_path: Path) -> None:
    """The port is opened and listened on, the state can be written, who asks needs a password, a drain has time."""
    template = pod()
    (worker,) = template["spec"]["containers"]
    ports = {one["name"]: one["containerPort"] for one in worker["ports"]}
    labels = template["metadata"]["labels"]
    for kind, place in (
        ("Deployment", "selector"),
        ("PodDisruptionBudget", "selector"),
        ("NetworkPolicy", "podSelector"),
    ):
        assert of(kind)["spec"][place]["matchLabels"].items() <= labels.items(), kind
    monitor = yaml.safe_load((FLEET.parent / "podmonitor.yaml").read_text())["spec"]
    assert monitor["selector"]["matchLabels"].items() <= labels.items()
    port = ports[monitor["podMetricsEndpoints"][0]["port"]]
    assert {"port": port} in of("NetworkPolicy")["spec"]["ingress"][0]["ports"]
    settings = config.settings
    assert settings.web.listen == f"0.0.0.0:{port}"
    assert str(settings.state) in {one["mountPath"] for one in worker["volumeMounts"] if not one.get("readOnly")}
    assert settings.drain < template["spec"]["terminationGracePeriodSeconds"]
    (volume,) = [one for one in template["spec"]["volumes"] if one["name"] == "ragwatch-web"]
    secrets = {
        one["metadata"]["name"]: one["stringData"]
        for one in yaml.safe_load_all((FLEET.parent / "secret.yaml").read_text())
    }
    access = access_of(settings.web, tmp_path / "web.yml", secrets[volume["secret"]["secretName"]]["web.yml"])
    assert access.rights_of([secrets["ragwatch-scrape"]["username"]]) == {"metrics"}
    (broker,) = [one for one in documents() if one["kind"] == "Secret"]
    (password,) = [one["valueFrom"]["secretKeyRef"] for one in worker["env"] if "BROKER" in one["name"]]
    assert (broker["metadata"]["name"], password["key"] in broker["stringData"]) == (password["name"], True)


def test_a_worker_may_nothing_and_ends_one_at_a_time(config: Config) -> None:
    """Not root, a read-only root, no token; no two workers are taken away at once; the source may be shared."""
    spec = pod()["spec"]
    (worker,) = spec["containers"]
    allowed = worker["securityContext"]
    assert spec["automountServiceAccountToken"] is False
    assert (allowed["runAsNonRoot"], allowed["readOnlyRootFilesystem"]) == (True, True)
    assert (allowed["allowPrivilegeEscalation"], allowed["capabilities"]) == (False, {"drop": ["ALL"]})
    assert worker["readinessProbe"]["httpGet"]["path"] == "/-/ready"
    assert of("PodDisruptionBudget")["spec"]["maxUnavailable"] == 1
    assert "replicas" not in of("Deployment")["spec"]  # an apply would undo what the autoscaler has set
    (source,) = config.sources
    assert isinstance(source.options, NatsOptions)
    assert isinstance(config.store.options, PostgresOptions)


def test_the_autoscaler_asks_for_series_that_exist(config: Config) -> None:
    """Each metric is exported, by its labels; connections of all replicas fit into the database."""
    spec = of("HorizontalPodAutoscaler")["spec"]
    assert spec["scaleTargetRef"]["name"] == of("Deployment")["metadata"]["name"]
    series = {one.name: one for one in CATALOGUE}
    comment = (FLEET / "hpa.yaml").read_text()
    for metric in spec["metrics"]:
        wanted = metric["external"]["metric"]
        assert set(wanted.get("selector", {}).get("matchLabels", {})) <= set(series[wanted["name"]].labels)
        assert re.search(rf"seriesQuery: .*\b{wanted['name']}\b", comment)
        assert metric["external"]["target"]["type"] == "AverageValue"
    (source,) = config.sources
    assert spec["metrics"][0]["external"]["metric"]["selector"]["matchLabels"] == {"source": source.options.name}  # type: ignore[attr-defined]
    options = config.store.options
    assert isinstance(options, PostgresOptions)
    limit = of("Cluster", "ragwatch-db")["spec"]["postgresql"]["parameters"]["max_connections"]
    assert spec["maxReplicas"] * options.connections < int(limit)


def test_the_composed_fleet_agrees(tmp_path: Path) -> None:
    """Secrets, users, names and dashboards of the stack fit together, and every file of a secret is ignored by git."""
    stack = yaml.safe_load((DEPLOY / "compose.fleet.yaml").read_text())
    content = {name: yaml.safe_load(one["content"].replace("$$", "$")) for name, one in stack["configs"].items()}
    text = json.dumps(content["ragwatch"])
    for name in re.findall(r"file:/run/secrets/([\w-]+)", text):
        (tmp_path / name).write_text("postgresql://ragwatch:p@postgres/ragwatch")
    config = parse(json.loads(text.replace("/run/secrets", str(tmp_path))), folder=tmp_path)
    worker = stack["services"]["worker"]
    used = {"web.yml", *re.findall(r"file:/run/secrets/([\w-]+)", text)}
    assert used == set(worker["secrets"])
    assert not worker.get("ports")  # of two workers, both would want it
    (source,) = config.sources
    assert isinstance(source.options, RedisOptions)
    assert {"redis", "postgres"} <= set(stack["services"])
    access = access_of(config.settings.web, tmp_path / "web.yml", (DEPLOY / "systemd" / "web.yml").read_text())
    (job,) = content["prometheus"]["scrape_configs"]
    assert access.rights_of([job["basic_auth"]["username"]]) == {"metrics"}
    assert job["dns_sd_configs"][0] | {"refresh_interval": ""} == {
        "names": ["worker"],
        "type": "A",
        "port": 10477,
        "refresh_interval": "",
    }
    ignored = (DEPLOY.parent / ".gitignore").read_text().split()
    assert {f"/deploy/{one['file'].removeprefix('./')}" for one in stack["secrets"].values()} <= set(ignored)
    for service in stack["services"].values():
        assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
        assert set(service.get("secrets", ())) <= set(stack["secrets"])


def test_grafana_has_the_data_source_of_the_dashboard() -> None:
    """The stack provides the plugin that the dashboard asks for, and mounts the folder where it lies."""
    stack = yaml.safe_load((DEPLOY / "compose.fleet.yaml").read_text())
    sources = yaml.safe_load(stack["configs"]["datasources"]["content"])["datasources"]
    variables: Any = sql_board()["templating"]
    assert variables["list"][0]["query"] in [one["type"] for one in sources]
    provided = yaml.safe_load((DEPLOY.parent / "grafana/provisioning/dashboards/ragwatch.yaml").read_text())
    path = provided["providers"][0]["options"]["path"]
    mounts = stack["services"]["grafana"]["volumes"]
    for folder in ("dashboards", "postgres"):
        (mount,) = [one for one in mounts if one.startswith(f"../grafana/{folder}:")]
        assert mount.split(":")[1].startswith(f"{path}/")
