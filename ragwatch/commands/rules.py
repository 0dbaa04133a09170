"""`ragwatch rules`: the Prometheus rules that a configuration implies."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType

import click

from ragwatch.commands.terminal import naming
from ragwatch.config import Config, load
from ragwatch.config.alerts import Alerts
from ragwatch.config.canaries import SuitePlace
from ragwatch.daemon.schedule import trigger_of
from ragwatch.errors import ConfigError
from ragwatch.rules import Limits, Links, RulePlan, operator, prometheus, yaml_text

_SOME_DAY = datetime(2001, 1, 1, tzinfo=UTC)
_YEAR_SECONDS = 366 * 86400.0
_MOST_RUNS = 10_000  # of a line such as `* * * * 1-5`, more than a week
_EVERYWHERE = frozenset({"0.0.0.0", "[::]", "::"})  # noqa: S104 - nothing is bound: links need a host one can reach


def rules(path: Path, shape: str, out: Path | None) -> None:
    """Write recording rules and alerts for the thresholds, windows and objectives of a configuration."""
    plan = plan_of(load(path))
    for key, missing in (("runbooks", plan.links.runbooks), ("dashboards", plan.links.dashboards)):
        if missing is None:
            click.echo(f"alerts.{key} is not set: alerts carry no link to {key}", err=True)
    files = prometheus(plan) if shape == "prometheus" else {"ragwatch-prometheusrule.yaml": operator(plan)}
    if out is None:
        merged = {"groups": [group for file in prometheus(plan).values() for group in file["groups"]]}
        click.echo(yaml_text(merged if shape == "prometheus" else operator(plan)), nl=False)
        return
    out.mkdir(parents=True, exist_ok=True)
    for name, file in files.items():
        with naming(str(out / name)):
            (out / name).write_text(yaml_text(file), encoding="utf-8")
        click.echo(f"wrote {out / name}", err=True)


def plan_of(config: Config) -> RulePlan:
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
    pauses = {each.place.suite: longest_pause(each.place) for each in config.canaries}
    return RulePlan(
        judge=judge,
        job=asked.job,
        links=Links(
            runbooks=asked.runbooks,
            dashboards=asked.dashboards,
            pages=settings.web.external_url or _own_address(settings.web.listen),
        ),
        thresholds=MappingProxyType(settings.live_thresholds),
        objectives=MappingProxyType({quantity: slo.objective for quantity, slo in asked.slos.items()}),
        burns=tuple(each.burn for each in asked.burns),
        windows=asked.windows,
        window=asked.window,
        confidence=settings.estimates.confidence,
        rare=MappingProxyType({suite: pause for suite, pause in pauses.items() if pause > asked.canaries / 2}),
        limits=_limits(asked),
    )


def longest_pause(place: SuitePlace) -> float:
    """The longest time between two runs of a suite, in seconds, as its schedule has it: a night, a weekend."""
    trigger = trigger_of(place.schedule, 0.0)
    begun = run = trigger.get_next_fire_time(None, _SOME_DAY)
    found = 0.0
    for _ in range(_MOST_RUNS):
        after = None if run is None else trigger.get_next_fire_time(run, run)
        if begun is None or run is None or after is None:
            break
        found, run = max(found, (after - run).total_seconds()), after
        if (run - begun).total_seconds() > _YEAR_SECONDS:
            break
    return found + place.jitter


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
