"""`ragwatch rules`: the Prometheus rules that a configuration implies."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType

import click

from ragwatch.config import Config, load
from ragwatch.config.alerts import Alerts
from ragwatch.errors import ConfigError
from ragwatch.exporter.oncall import Limits, Links, Plan, operator, prometheus, yaml_text

_EVERYWHERE = frozenset({"0.0.0.0", "[::]", "::"})  # noqa: S104 - nothing is bound: links need a host one can reach


@click.command()
@click.option("--config", "path", type=click.Path(path_type=Path), required=True, help="Configuration file (YAML).")
@click.option(
    "--format",
    "shape",
    type=click.Choice(["prometheus", "operator"]),
    default="prometheus",
    show_default=True,
    help="Rule files, or one PrometheusRule resource.",
)
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Directory to write to; else stdout.")
def rules(path: Path, shape: str, out: Path | None) -> None:
    """Write recording rules and alerts for the thresholds, windows and objectives of a configuration."""
    plan = plan_of(load(path))
    files = prometheus(plan) if shape == "prometheus" else {"ragwatch-prometheusrule.yaml": operator(plan)}
    if out is None:
        merged = {"groups": [group for file in prometheus(plan).values() for group in file["groups"]]}
        click.echo(yaml_text(merged if shape == "prometheus" else operator(plan)), nl=False)
        return
    out.mkdir(parents=True, exist_ok=True)
    for name, file in files.items():
        (out / name).write_text(yaml_text(file), encoding="utf-8")
        click.echo(f"wrote {out / name}", err=True)


def plan_of(config: Config) -> Plan:
    """What a configuration asks of the on-call kit.

    Raises:
        ConfigError: The judge that is to call people is not configured.
    """
    settings = config.settings
    asked = settings.alerts
    judges = [each.place.name for each in config.judges]
    judge = judges[0] if asked.judge is None else asked.judge
    if judge not in judges:
        raise ConfigError(f"alerts.judge: {judge!r} is not a judge; use one of: {', '.join(judges)}")
    return Plan(
        judge=judge,
        job=asked.job,
        links=Links(
            runbooks=asked.runbooks or "https://runbooks.example.com/ragwatch",
            dashboards=asked.dashboards or "https://grafana.example.com",
            pages=settings.web.external_url or _own_address(settings.web.listen),
        ),
        thresholds=MappingProxyType(settings.live_thresholds),
        objectives=MappingProxyType({quantity: slo.objective for quantity, slo in asked.slos.items()}),
        burns=tuple(each.burn for each in asked.burns),
        windows=asked.windows,
        window=asked.window,
        confidence=settings.estimates.confidence,
        limits=_limits(asked),
    )


def _own_address(listen: str) -> str:
    host, _, port = listen.rpartition(":")
    return f"http://{'localhost' if host in _EVERYWHERE else host}:{port}"


def _limits(asked: Alerts) -> Limits:
    return Limits(
        samples=asked.minimum_samples,
        hold=asked.hold,
        coverage=asked.coverage,
        stale=asked.stale,
        silent=asked.silent,
        lag=asked.lag,
        rejects=asked.rejects,
        canaries=asked.canaries,
        failures=asked.failures,
        budget=asked.budget,
        unquoted=asked.unquoted,
        free=asked.free,
    )
