"""`ragwatch backtest`: replays past scores through the drift detectors and shows when they would have alarmed."""

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile
from math import inf

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ragwatch.config import Config, JudgeConfig, load
from ragwatch.config.drift import DriftOptions, check_routes, lowest_probability
from ragwatch.config.validation import read_model
from ragwatch.daemon.runtime import sampling_plan
from ragwatch.errors import ConfigError, FormatError
from ragwatch.formats.fields import epoch_seconds
from ragwatch.model.quantities import Quantity
from ragwatch.model.sample import OTHER
from ragwatch.offline.chart import chart
from ragwatch.offline.replay import DetectorTrace, ScoredAnswer, lowest_probabilities, read_answers, replay
from ragwatch.offline.state_reader import score_rows, state_reader
from ragwatch.pipeline.drift.rules import DriftRules
from ragwatch.terminal.given import seconds_of, settings_of, write_text
from ragwatch.terminal.options.offline import BacktestArguments
from ragwatch.terminal.output import figure, moment, say

NOT_ENOUGH_DATA = 3
MONTH_DAYS = 30.0


def backtest(given: BacktestArguments) -> int:
    """Replay the scores in a file, or in a store, through the drift detectors."""
    acknowledged_after = seconds_of("--acknowledge-after", given.acknowledge_after)
    quiet_until = _quiet_until(given.quiet_until)
    config = None if given.path is None else load(given.path)
    options = _options(config, given.settings)
    if given.file is not None:
        answers = read_answers(given.file, (*Quantity, *options.quantities))
    elif config is not None:
        answers = _stored_answers(config, _judge(config, options).place.name)
    else:
        raise ConfigError("FILE: is missing; name one, or give --config to use the scores in its store")
    if not answers:
        say(f"no scores in {given.file or 'the store'}")
    answers, rules = _rules(answers, options, config)
    traces = replay(rules, answers, acknowledged_after)
    if given.svg is not None and traces:
        write_text(f"--svg {given.svg}", given.svg, chart(traces))
    if given.as_json:
        click.echo(json.dumps(_summary(traces, quiet_until)))
    else:
        _show(traces, quiet_until)
    return 0 if any(trace.points for trace in traces) else NOT_ENOUGH_DATA


def _quiet_until(text: str | None) -> float | None:
    try:
        return None if text is None else epoch_seconds(text, "--quiet-until")
    except FormatError as error:
        raise ConfigError(str(error)) from error


def _options(config: Config | None, settings: Sequence[str]) -> DriftOptions:
    """The section `drift` of the configuration, with the changes of `--set`."""
    options = DriftOptions() if config is None else config.settings.drift
    criteria = frozenset[str]() if config is None else config.settings.criterion_names
    data = options.model_dump(exclude_unset=True) | settings_of(settings, "reference=500")
    return read_model(DriftOptions, data, "drift", criteria=criteria)


def _rules(
    answers: list[ScoredAnswer], options: DriftOptions, config: Config | None
) -> tuple[list[ScoredAnswer], DriftRules]:
    """The rules of the configuration, or for everything in the file; and the answers, with routes as label values."""
    if config is None:
        present = {quantity for answer in answers for quantity in answer.scores}
        configured = options.quantities if "quantities" in options.model_fields_set else tuple(Quantity)
        quantities = tuple(quantity for quantity in configured if quantity in present)
        options = options.model_copy(update={"quantities": quantities})
        routes, lowest = tuple(dict.fromkeys(answer.route for answer in answers)), lowest_probabilities(answers)
    else:
        plan, routes = sampling_plan(config), (*config.settings.routes, OTHER)
        place = _judge(config, options).place
        lowest = {route: lowest_probability(plan, route, place.probability) for route in routes}
        answers = [replace(answer, route=plan.label(answer.route)) for answer in answers]
    check_routes(options, routes)
    return answers, options.rules("", "", routes, lowest)


def _judge(config: Config, options: DriftOptions) -> JudgeConfig:
    """The judge whose scores are monitored; `ConfigError` if there is none of that name."""
    by_name = {judge.place.name: judge for judge in config.judges}
    name = options.judge or next(iter(by_name))
    if name not in by_name:
        raise ConfigError(f"drift.judge: {name!r} is not a judge; use one of: {', '.join(by_name)}")
    return by_name[name]


def _stored_answers(config: Config, judge: str) -> list[ScoredAnswer]:
    """The scores by the newest version of a judge, in the order in which they were stored."""
    with state_reader(config) as reader:
        by_judge = [row for row in score_rows(reader) if row.judge == judge]
    return [
        ScoredAnswer(index, row.at, row.route, row.probability, row.scores)
        for index, row in enumerate(by_judge)
        if row.scores is not None and row.version == by_judge[-1].version
    ]


def _summary(traces: Sequence[DetectorTrace], quiet_until: float | None) -> dict[str, object]:
    alarms = [
        {
            "index": answer.index,
            "at": answer.at,
            "quantity": trace.cell[0],
            "route": trace.cell[1],
            "evidence": alarm.evidence,
            "threshold": alarm.threshold,
        }
        for trace in traces
        for answer, alarm in trace.alarms
    ]
    return {
        "scores": sum(len(trace.answers) for trace in traces),
        "alarms": sorted(alarms, key=lambda alarm: (alarm["at"], alarm["index"])),
        "streams": [
            {
                "quantity": trace.cell[0],
                "route": trace.cell[1],
                "scores": len(trace.answers),
                "watched": len(trace.points),
                "baseline": trace.baseline,
                "threshold": trace.threshold,
                "days_watched": trace.days_watched(inf),
                "false_alarms_per_month": _false_alarm_rate(trace, quiet_until),
            }
            for trace in traces
        ],
    }


def _false_alarm_rate(trace: DetectorTrace, quiet_until: float | None) -> float | None:
    """False alarms per thirty days before `quiet_until`; None if that is unknown or nothing was monitored then."""
    days = 0.0 if quiet_until is None else trace.days_watched(quiet_until)
    if quiet_until is None or days == 0.0:
        return None
    return len(list(takewhile(lambda alarm: alarm[0].at < quiet_until, trace.alarms))) / days * MONTH_DAYS


def _show(traces: Sequence[DetectorTrace], quiet_until: float | None) -> None:
    console = Console(soft_wrap=True)
    table = Table("quantity", "scores", "baseline", "days", "alarms", "false/month")
    for trace in traces:
        rate = _false_alarm_rate(trace, quiet_until)
        table.add_row(
            escape(trace.name),
            str(len(trace.answers)),
            "none" if trace.baseline is None else f"{trace.baseline:.3f}",
            f"{trace.days_watched(inf):.1f}" if trace.points else "learning",
            str(len(trace.alarms)),
            figure(rate, ".2f"),
        )
    console.print(table)
    for trace in traces:
        for answer, alarm in trace.alarms:
            console.print(
                f"[red]alarm[/] {moment(answer.at)}  {escape(trace.name)}  "
                f"row {answer.index}  evidence {alarm.evidence:.3g} of {alarm.threshold:.3g} "
                f"after {alarm.scores:.0f} scores"
            )
