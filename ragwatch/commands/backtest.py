"""`ragwatch backtest`: scores of the past through estimators and detectors. When would it have paged?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import takewhile
from math import inf
from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ragwatch import stores
from ragwatch.commands.chart import chart
from ragwatch.commands.replay import DetectorTrace, ScoredAnswer, lowest_of, read_lines, replay, routes_of
from ragwatch.commands.terminal import naming
from ragwatch.config import Config, JudgeConfig, load
from ragwatch.config.drift import DriftOptions, check_routes, lowest_probability
from ragwatch.config.text import duration_seconds, explain_all, value_of
from ragwatch.core.sample import OTHER
from ragwatch.core.scores import Quantity
from ragwatch.daemon.runtime import sampling_plan
from ragwatch.errors import ConfigError, FormatError
from ragwatch.formats.times import epoch_seconds
from ragwatch.pipeline.drift.rules import DriftRules
from ragwatch.ports import ScoreRow, Store
from ragwatch.telemetry import configure_logging

NOT_ENOUGH = 3
MONTH_DAYS = 30.0
_ROWS = 5000


@dataclass(frozen=True, slots=True)
class _KnownDates:
    """What the person knows about the past.

    Attributes:
        acknowledged_after: Seconds in which somebody would have acknowledged an alarm.
        quiet_until: All was well before, so that alarms are false; None for unknown.
    """

    acknowledged_after: float
    quiet_until: float | None


def backtest(
    file: Path | None,
    path: Path | None,
    settings: Sequence[str],
    acknowledge_after: str,
    quiet_until: str | None,
    *,
    as_json: bool,
    svg: Path | None,
) -> int:
    """Replay the scores in a file, or in a store, through the detectors."""
    configure_logging("error")
    moments = _moments(acknowledge_after, quiet_until)
    config = None if path is None else load(path)
    options = _options(config, settings)
    if file is not None:
        lines = read_lines(file)
    elif config is not None:
        lines = _stored(config, _judge(config, options).place.name)
    else:
        raise ConfigError("FILE: is missing; name one, or --config for the scores in its store")
    lines, rules = _rules(lines, options, config)
    traces = replay(rules, lines, moments.acknowledged_after)
    if svg is not None and traces:
        with naming(str(svg)):
            svg.write_text(chart(traces), encoding="utf-8")
    if as_json:
        click.echo(json.dumps(_summary(traces, moments)))
    else:
        _show(traces, moments)
    return 0 if any(trace.points for trace in traces) else NOT_ENOUGH


def _moments(acknowledge_after: str, quiet_until: str | None) -> _KnownDates:
    try:
        seconds = duration_seconds(acknowledge_after)
        until = None if quiet_until is None else epoch_seconds(quiet_until, "--quiet-until")
    except ValueError as error:
        raise ConfigError(f"--acknowledge-after: {error}") from error
    except FormatError as error:
        raise ConfigError(str(error)) from error
    return _KnownDates(float(str(seconds)), until)


def _options(config: Config | None, settings: Sequence[str]) -> DriftOptions:
    """What the configuration says of drift, changed as asked."""
    options = DriftOptions() if config is None else config.settings.drift
    data: dict[str, Any] = options.model_dump(exclude_unset=True)
    for each in settings:
        key, equals, value = each.partition("=")
        if not equals:
            raise ConfigError(f"--set {each}: is not KEY=VALUE, such as reference=500")
        data[key] = value_of(value)
    try:
        return DriftOptions.model_validate(data)
    except ValidationError as error:
        known = sorted(DriftOptions.model_fields)
        lines = explain_all(error.errors(include_url=False), "drift", lambda _: known)
        raise ConfigError("\n".join(lines)) from error


def _rules(
    lines: list[ScoredAnswer], options: DriftOptions, config: Config | None
) -> tuple[list[ScoredAnswer], DriftRules]:
    """What is watched: as configured, or everything in the file. And the lines, with routes as label values."""
    if config is None:
        present = {quantity for line in lines for quantity in line.scores}
        wanted = options.quantities if "quantities" in options.model_fields_set else tuple(Quantity)
        options = options.model_copy(update={"quantities": tuple(each for each in wanted if each in present)})
        routes, lowest = routes_of(lines), lowest_of(lines)
    else:
        plan, routes = sampling_plan(config), (*config.settings.routes, OTHER)
        place = _judge(config, options).place
        lowest = {route: lowest_probability(plan, route, place.probability) for route in routes}
        lines = [replace(line, route=plan.label(line.route)) for line in lines]
    check_routes(options, routes)
    return lines, options.rules("", "", routes, lowest)


def _judge(config: Config, options: DriftOptions) -> JudgeConfig:
    """The judge whose scores are watched.

    Raises:
        ConfigError: There is none of that name.
    """
    by_name = {each.place.name: each for each in config.judges}
    name = options.judge or next(iter(by_name))
    if name not in by_name:
        raise ConfigError(f"drift.judge: {name!r} is not a judge; use one of: {', '.join(by_name)}")
    return by_name[name]


def _stored(config: Config, judge: str) -> list[ScoredAnswer]:
    """The scores of a judge, as its newest version gave them, in the order in which they were settled."""
    store: Store = stores.KINDS[config.store.kind].build(config.store.options, config.settings.state)
    try:
        rows: list[ScoreRow] = []
        while more := store.window(rows[-1].seq if rows else 0, 0.0, _ROWS):
            rows += more
    finally:
        store.close()
    mine = [row for row in rows if row.judge == judge]
    return [
        ScoredAnswer(index, row.at, row.route, row.probability, row.scores)
        for index, row in enumerate(mine)
        if row.scores is not None and row.version == mine[-1].version
    ]


def _summary(traces: Sequence[DetectorTrace], moments: _KnownDates) -> dict[str, Any]:
    alarms = [
        {
            "index": line.index,
            "at": line.at,
            "quantity": trace.cell[0],
            "route": trace.cell[1],
            "evidence": alarm.evidence,
            "threshold": alarm.threshold,
        }
        for trace in traces
        for line, alarm in trace.alarms
    ]
    return {
        "scores": sum(len(trace.lines) for trace in traces),
        "alarms": sorted(alarms, key=lambda each: (each["at"], each["index"])),
        "streams": [
            {
                "quantity": trace.cell[0],
                "route": trace.cell[1],
                "scores": len(trace.lines),
                "watched": len(trace.points),
                "baseline": trace.baseline,
                "threshold": trace.threshold,
                "days_watched": trace.days_watched(inf),
                "false_alarms_per_month": _false_rate(trace, moments.quiet_until),
            }
            for trace in traces
        ],
    }


def _false_rate(trace: DetectorTrace, quiet_until: float | None) -> float | None:
    """Alarms in thirty days of the quiet part; None where nobody said which that is, or nothing was watched in it."""
    days = 0.0 if quiet_until is None else trace.days_watched(quiet_until)
    if quiet_until is None or days == 0.0:
        return None
    return len(list(takewhile(lambda each: each[0].at < quiet_until, trace.alarms))) / days * MONTH_DAYS


def _show(traces: Sequence[DetectorTrace], moments: _KnownDates) -> None:
    console = Console(soft_wrap=True)
    table = Table("quantity", "scores", "baseline", "days", "pages", "false a month")
    for trace in traces:
        rate = _false_rate(trace, moments.quiet_until)
        table.add_row(
            escape(trace.name),
            str(len(trace.lines)),
            "none" if trace.baseline is None else f"{trace.baseline:.3f}",
            f"{trace.days_watched(inf):.1f}" if trace.points else "learning",
            str(len(trace.alarms)),
            "unknown" if rate is None else f"{rate:.2f}",
        )
    console.print(table)
    for trace in traces:
        for line, alarm in trace.alarms:
            console.print(
                f"[red]page[/] {_moment(line.at)}  {escape(trace.name)}  row {line.index}  "
                f"evidence {alarm.evidence:.3g} of {alarm.threshold:.3g} after {alarm.scores:.0f} scores"
            )


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")
