"""`ragwatch rules`: writes the Prometheus rules and the Grafana dashboards for a configuration, or proposes thresholds.

Thresholds by route are proposed from stored drift baselines, with what they would have paged last week.
"""

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import floor
from pathlib import Path

import click

from ragwatch.config import Config, load
from ragwatch.config.canaries import SuitePlace
from ragwatch.config.drift import lowest_probability
from ragwatch.config.web import is_local
from ragwatch.daemon.runtime import sampling_plan
from ragwatch.daemon.schedule import trigger_of
from ragwatch.errors import ConfigError
from ragwatch.model.estimate import Addends
from ragwatch.model.quantities import LOW_IS_GOOD, Quantity, is_worse
from ragwatch.model.sample import OTHER
from ragwatch.offline.state_reader import score_rows, state_reader
from ragwatch.pipeline.drift.loop import name_of
from ragwatch.pipeline.drift.scores import KIND
from ragwatch.ports import ScoreRow
from ragwatch.ports.capabilities import record_rules
from ragwatch.rules import Links, RulePlan, operator, prometheus, yaml_text
from ragwatch.rules.dashboards import PLACEHOLDER, SQL_FILE, BoardPlan, Feature, Json, boards, sql_board
from ragwatch.rules.promql import span
from ragwatch.statistics.estimators import hajek
from ragwatch.stores.postgres import Options as PostgresOptions
from ragwatch.stores.store_base import StoreBase
from ragwatch.terminal.options.administration import RulesArguments
from ragwatch.terminal.output import file_name_in_errors, moment, say

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
            say(f"alerts.{key} is not set: alerts carry no link to {key}")
    if (warning := link_warning(plan.links.pages)) is not None:
        say(warning)
    files = prometheus(plan) if given.shape == "prometheus" else {"ragwatch-prometheusrule.yaml": operator(plan)}
    if given.out is None:
        merged = {"groups": [group for file in prometheus(plan).values() for group in file["groups"]]}
        click.echo(yaml_text(merged if given.shape == "prometheus" else operator(plan)), nl=False)
        return 0
    _write(given.out, {name: yaml_text(file) for name, file in files.items()})
    return 0


def _write(folder: Path, texts: Mapping[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        with file_name_in_errors(str(folder / name)):
            (folder / name).write_text(text, encoding="utf-8")
        say(f"wrote {folder / name}")


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
        links=Links(runbooks=options.runbooks, dashboards=options.dashboards, pages=settings.web.pages),
        thresholds=settings.live_thresholds,
        route_thresholds=settings.route_thresholds,
        objectives={quantity: slo.objective for quantity, slo in options.slos.items()},
        route_objectives={
            route: {quantity: None if slo is None else slo.objective for quantity, slo in slos.items()}
            for route, slos in options.route_slos.items()
        },
        burns=tuple(window.burn for window in options.burns),
        drift_judge=settings.drift.judge or judges[0],  # as the daemon chooses it
        drift_quantities=settings.drift.quantities,
        controlled=tuple(settings.drift.controls),
        severity=options.severity,
        windows=options.windows,
        window=options.window,
        level_window=_level_window(settings.estimates.windows, options.window),
        confidence=settings.estimates.confidence,
        rare={suite: seconds for suite, seconds in intervals.items() if seconds > options.canaries / 2},
        limits=options.limits,
        rises=options.page_rises,
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
        say(f"web.external_url is not set: links of the dashboards lead to {PLACEHOLDER} until it is")
    shown = board_plan_of(config, plan)
    texts = dashboard_files(shown)
    options = config.store.options
    if isinstance(options, PostgresOptions):
        schema = f"{options.database_schema}_views"
        texts[SQL_FILE] = _text(sql_board(pages=shown.pages, schema=schema, judge=shown.judge))
    _write(folder, texts)


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


WEEK = 7 * 86400.0
_STEP = 900.0


@dataclass(frozen=True, slots=True)
class Proposal:
    """A threshold for one quantity on one route."""

    route: str  # value of the label `route`
    quantity: Quantity
    threshold: float  # the drift baseline (lower bound of the mean, less the tolerance), rounded away from it
    pages: tuple[float, ...]  # times at which a page would have begun in the last week
    configured: float | None  # threshold in the configuration; None for none
    configured_pages: tuple[float, ...]  # the same for that threshold


def show(config: Config, plan: RulePlan) -> int:
    """Print the proposals as YAML, and as comments what they would have paged. Returns 3 if there is no baseline.

    What would have paged last week is a comment as a whole: nobody but the operator knows whether something was broken.
    """
    if plan.watcher != plan.judge:
        raise ConfigError(
            f"alerts.judge: thresholds are for scores of {plan.judge!r}, but baselines are learned from those of "
            f"{plan.watcher!r}; write drift.judge: {plan.judge}, and ask again when /drift shows its baselines"
        )
    with state_reader(config) as store:
        proposals = list(proposals_of(config, plan, store))
    if not proposals:
        say("no baseline is learned yet; /drift shows how far it is")
        return 3
    show_proposals(proposals)
    return 0


def show_proposals(proposals: Sequence[Proposal]) -> None:
    """Print proposals as the section `thresholds` of a configuration."""
    quiet = {proposal.route for proposal in proposals if not proposal.pages}
    click.echo("thresholds:\n  routes:" if quiet else "# thresholds:\n#   routes:")
    for route in dict.fromkeys(proposal.route for proposal in proposals):
        click.echo(f"    {route}:" if route in quiet else f"    # {route}:")
        for proposal in (proposal for proposal in proposals if proposal.route == route):
            line = f"      {proposal.quantity}: {proposal.threshold:g}"
            if proposal.pages:  # of unchanged traffic, it would page again
                line = f"      # not proposed unless those were incidents: {line.strip()}"
            now = "no threshold now"
            if proposal.configured is not None:
                now = f"now {proposal.configured:g}: {_pages(proposal.configured_pages)}"
            click.echo(f"{line:<40}  # last week: {_pages(proposal.pages)}; {now}")


def _pages(times: Sequence[float]) -> str:
    if not times:
        return "no page"
    first = moment(times[0])
    return f"1 page, {first}" if len(times) == 1 else f"{len(times)} pages, the first {first}"


def proposals_of(config: Config, plan: RulePlan, store: StoreBase) -> Iterator[Proposal]:
    """A proposal for each stored baseline."""
    state = store.recall(KIND)
    if state is None:
        return
    sampling, routes = sampling_plan(config), (*config.settings.routes, OTHER)
    probability = next(judge.place.probability for judge in config.judges if judge.place.name == plan.watcher)
    lowest = {route: lowest_probability(sampling, route, probability) for route in routes}
    rules = config.settings.drift.rules(plan.watcher, str(state["version"]), routes, lowest)
    stored = score_rows(store)
    newest = max((row.at for row in stored), default=0.0)
    scored = (row for row in stored if row.judge == plan.watcher and row.scores is not None)
    rows = sorted((row for row in scored if row.at > newest - WEEK), key=lambda row: row.at)
    for quantity, route in rules.cells:
        stream = rules.stream(quantity, route)
        try:
            stream.load(state["streams"][name_of((quantity, route))])
        except (KeyError, TypeError, ValueError):
            continue
        baseline = stream.baseline
        if baseline is None or quantity.row.own_alert:
            continue
        # Two digits, on the side of fewer pages.
        rounded_up = 1.0 - floor((1.0 - baseline) * 100) / 100
        threshold = rounded_up if quantity in LOW_IS_GOOD else floor(baseline * 100) / 100
        configured = plan.threshold(quantity, route)
        here = [row for row in rows if row.route == route]
        yield Proposal(
            route,
            quantity,
            threshold,
            pages=pages(here, quantity, threshold, plan),
            configured=configured,
            configured_pages=() if configured is None else pages(here, quantity, configured, plan),
        )


def pages(rows: Iterable[ScoreRow], quantity: Quantity, threshold: float, plan: RulePlan) -> tuple[float, ...]:
    """Times at which RagwatchQualityBad would have begun, looking every quarter of an hour at rows in order of time."""
    scored = [(row.at, row.scores[quantity], row.probability) for row in rows if row.scores and quantity in row.scores]
    known = deque((at, value, probability) for at, value, probability in scored if value is not None)
    window: deque[tuple[float, float, float]] = deque()
    begun: list[float] = []
    firing = False
    now = known[0][0] + _STEP if known else 0.0
    while known or window:
        while known and known[0][0] <= now:
            window.append(known.popleft())
        while window and window[0][0] <= now - plan.window:
            window.popleft()
        if not known and not window:
            break
        bad = _is_bad([(value, probability) for _, value, probability in window], quantity, threshold, plan)
        if bad and not firing:
            begun.append(now)
        firing = bad
        now += _STEP
    return tuple(begun)


def _is_bad(scores: Sequence[tuple[float, float]], quantity: Quantity, threshold: float, plan: RulePlan) -> bool:
    if not scores:
        return False
    _, low, high, effective = hajek.interval(Addends.of(scores), plan.confidence)
    return effective >= plan.limits.samples and is_worse(quantity, low, high, threshold)
