"""`ragwatch rules`: writes the Prometheus rules and the Grafana dashboards for a configuration."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType

import click

from ragwatch.commands.proposals import show
from ragwatch.config import Config, load
from ragwatch.config.canaries import SuitePlace
from ragwatch.config.web import is_local
from ragwatch.daemon.schedule import trigger_of
from ragwatch.errors import ConfigError
from ragwatch.model.quantities import Quantity
from ragwatch.ports.capabilities import record_rules
from ragwatch.rules import Links, RulePlan, operator, prometheus, yaml_text
from ragwatch.rules.dashboards import PLACEHOLDER, SQL_FILE, BoardPlan, Feature, Json, boards, sql_board
from ragwatch.rules.promql import span
from ragwatch.stores.postgres import Options as PostgresOptions
from ragwatch.terminal.options.administration import RulesArguments
from ragwatch.terminal.output import file_name_in_errors

_ANY_DAY = datetime(2001, 1, 1, tzinfo=UTC)
_YEAR_SECONDS = 366 * 86400.0
_MAX_RUNS = 10_000  # more than a week of `* * * * 1-5`


def rules(given: RulesArguments) -> int:
    """Write recording rules and alerts for the thresholds, windows and objectives of a configuration."""
    config = load(given.path)
    plan = plan_of(config)
    if given.from_baseline:
        return show(config, plan)
    if given.dashboards is not None:
        write_dashboards(config, plan, given.dashboards)
        if given.out is None:
            return 0
    for key, url in (("runbooks", plan.links.runbooks), ("dashboards", plan.links.dashboards)):
        if url is None:
            click.echo(f"alerts.{key} is not set: alerts carry no link to {key}", err=True)
    if (warning := link_warning(plan.links.pages)) is not None:
        click.echo(warning, err=True)
    files = prometheus(plan) if given.shape == "prometheus" else {"ragwatch-prometheusrule.yaml": operator(plan)}
    if given.out is None:
        merged = {"groups": [group for file in prometheus(plan).values() for group in file["groups"]]}
        click.echo(yaml_text(merged if given.shape == "prometheus" else operator(plan)), nl=False)
        return 0
    given.out.mkdir(parents=True, exist_ok=True)
    for name, file in files.items():
        with file_name_in_errors(str(given.out / name)):
            (given.out / name).write_text(yaml_text(file), encoding="utf-8")
        click.echo(f"wrote {given.out / name}", err=True)
    return 0


def link_warning(pages: str | None) -> str | None:
    """Warning if the links of alerts to answers are missing, or lead to the machine of whoever opens them."""
    if pages is None:
        return "web.external_url is not set: alerts carry no link to the answers, because only this machine can open it"
    if is_local(pages):
        return f"web.external_url: {pages} leads to the machine of whoever opens it; give the address that others use"
    return None


def plan_of(config: Config) -> RulePlan:
    """The plan of rules and alerts for a configuration; `ConfigError` if the judge in `alerts.judge` is unknown."""
    settings = config.settings
    options = settings.alerts
    judges = [judge.place.name for judge in config.judges]
    name = judges[0] if options.judge is None else options.judge
    if name not in judges:
        raise ConfigError(f"alerts.judge: {name!r} is not a judge; use one of: {', '.join(judges)}")
    intervals = {suite.place.suite: longest_interval(suite.place) for suite in config.canaries}
    return RulePlan(
        judge=name,
        job=options.job,
        links=Links(
            runbooks=options.runbooks,
            dashboards=options.dashboards,
            pages=settings.web.pages,
        ),
        thresholds=MappingProxyType(settings.live_thresholds),
        route_thresholds=MappingProxyType(settings.route_thresholds),
        objectives=MappingProxyType({quantity: slo.objective for quantity, slo in options.slos.items()}),
        route_objectives=MappingProxyType(
            {
                route: {quantity: None if slo is None else slo.objective for quantity, slo in slos.items()}
                for route, slos in options.route_slos.items()
            }
        ),
        burns=tuple(window.burn for window in options.burns),
        drift_judge=settings.drift.judge or judges[0],  # as the daemon chooses it
        drift_quantities=settings.drift.quantities,
        controlled=tuple(settings.drift.controls),
        severity=MappingProxyType(dict(options.severity)),
        windows=options.windows,
        window=options.window,
        level_window=_level_window(settings.estimates.windows, options.window),
        confidence=settings.estimates.confidence,
        rare=MappingProxyType(
            {suite: seconds for suite, seconds in intervals.items() if seconds > options.canaries / 2}
        ),
        limits=options.limits,
        rises=MappingProxyType(dict(options.page_rises)),
        segments=bool(settings.segments),
        criteria=tuple(criterion.quantity for criterion in settings.criterion_rules),
    )


def _level_window(windows: Mapping[str, float], least: float) -> str:
    """The shortest window of the estimates that is at least as long; the longest if none is."""
    long = [name for name, seconds in windows.items() if seconds >= least]
    return min(long, key=windows.__getitem__) if long else max(windows, key=windows.__getitem__)


def longest_interval(place: SuitePlace) -> float:
    """The longest time between two scheduled runs of a suite in seconds, for example over a weekend."""
    trigger = trigger_of(place.schedule, 0.0)
    first = run = trigger.get_next_fire_time(None, _ANY_DAY)
    longest = 0.0
    for _ in range(_MAX_RUNS):
        following = None if run is None else trigger.get_next_fire_time(run, run)
        if first is None or run is None or following is None:
            break
        longest, run = max(longest, (following - run).total_seconds()), following
        if (run - first).total_seconds() > _YEAR_SECONDS:
            break
    return longest + place.jitter


_FREE = frozenset({"lexical", "local", "detector"})


def write_dashboards(config: Config, plan: RulePlan, folder: Path) -> None:
    """Write the dashboards to a directory, as Grafana's provisioning and import read them."""
    if plan.links.pages is None:
        click.echo(f"web.external_url is not set: links of the dashboards lead to {PLACEHOLDER} until it is", err=True)
    folder.mkdir(parents=True, exist_ok=True)
    shown = board_plan_of(config, plan)
    texts = dashboard_files(shown)
    options = config.store.options
    if isinstance(options, PostgresOptions):
        schema = f"{options.database_schema}_views"
        texts[SQL_FILE] = _text(sql_board(pages=shown.pages, schema=schema, judge=shown.judge))
    for name, text in texts.items():
        with file_name_in_errors(str(folder / name)):
            (folder / name).write_text(text, encoding="utf-8")
        click.echo(f"wrote {folder / name}", err=True)


def dashboard_files(plan: BoardPlan) -> dict[str, str]:
    """Text of the dashboards, by file name."""
    return {name: _text(board) for name, board in boards(plan).items()}


def stored_dashboard() -> str:
    """Text of the dashboard for a PostgreSQL store, with the defaults."""
    return _text(sql_board())


def _text(board: Json) -> str:
    return json.dumps(board, indent=1, ensure_ascii=False) + "\n"


def board_plan_of(config: Config, plan: RulePlan) -> BoardPlan:
    """The plan of the dashboards for a configuration; that of its rules names the judge and the window."""
    return BoardPlan(
        pages=(plan.links.pages or PLACEHOLDER).rstrip("/"),
        judge=plan.judge,
        window=span(plan.window),
        quantities=frozenset(
            quantity
            for judge in config.judges
            for quantity in (Quantity if judge.place.quantities is None else judge.place.quantities)
            if judge.kind not in quantity.row.unread_by
        ),
        features=frozenset({*_features(config), Feature.LABELS}),
        optional=frozenset({Feature.LABELS}),
    )


def _features(config: Config) -> Iterator[Feature]:
    rules = [record_rules(source.options) for source in config.sources]
    has = {
        Feature.PAID: any(judge.kind not in _FREE for judge in config.judges),
        Feature.BUDGET: any(judge.place.budget.caps for judge in config.judges),
        Feature.REPEAT: any(judge.place.repeat > 0 for judge in config.judges),
        Feature.KNOWN_BAD: any(judge.place.known_bad > 0 for judge in config.judges),
        Feature.ANCHORS: bool(config.anchors),
        Feature.CANARIES: bool(config.canaries),
        Feature.MIXED: any(rule.where is not None or rule.prefix is not None for rule in rules),
        Feature.JOINED: any(source.kind == "join" for source in config.sources),
        Feature.TRACES: any(source.kind == "otlp" for source in config.sources),
        Feature.EXPORT: config.settings.export.otlp is not None,
        Feature.SEGMENTS: bool(config.settings.segments),
        Feature.CRITERIA: bool(config.settings.criterion_rules),
    }
    return (feature for feature, is_there in has.items() if is_there)
