"""`ragwatch plan`: shows the cost of each sampling rate, and how soon it detects a drop of the mean."""

import json
import random
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean

import click
from rich.console import Console
from rich.table import Table

from ragwatch.config import load
from ragwatch.config.drift import DriftOptions
from ragwatch.errors import ConfigError
from ragwatch.model.quantities import LOW_IS_GOOD, Quantity, quantity_of
from ragwatch.model.sample import OTHER
from ragwatch.offline.power import PowerAnswer, PowerQuestion, half_width
from ragwatch.offline.power import plan as planned
from ragwatch.offline.replay import read_answers
from ragwatch.terminal.given import seconds_of
from ragwatch.terminal.options.offline import PlanArguments
from ragwatch.terminal.output import figure, say

RATES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
TOO_SLOW, NOT_ENOUGH_DATA = 1, 3
MAX_PER_DAY, MAX_PRICE = 1e9, 1e6  # far above any service; the figures stay finite, and the simulation short
_DAY, _HOUR = 86400.0, 3600.0
_RUNS, _SEED = 100, 1
REFERENCE_READINGS = 200
"""Readings of a reference judge of which cost and precision are shown."""
_SIMULATED_SCORES, _MIN_CLAIMS, _MAX_CLAIMS = 2000, 2, 8


def plan(given: PlanArguments) -> int:
    """Show, per sampling rate: judged samples and cost per day, detection delay for a drop, interval width."""
    for option, value, most in (("--per-day", given.per_day, MAX_PER_DAY), ("--price", given.price, MAX_PRICE)):
        if value > most:
            raise ConfigError(f"{option} {value:g}: is too much; write a number up to {most:,.0f}")
    limit = None if given.within is None else seconds_of("--within", given.within) / _HOUR
    options, detectors = _drift_options(given.path)
    file, quantity = given.scores, quantity_of(given.quantity)
    past = simulated_scores(given.mean) if file is None else _past_scores(file, quantity)
    if not past:
        say(f"no scores in {given.scores}")
        return NOT_ENOUGH_DATA
    tolerance = _tolerance(past, options)
    answers: dict[float, PowerAnswer] = {}
    for rate in sorted(set(given.rates or RATES)):
        question = PowerQuestion(
            per_day=given.per_day,
            probability=rate,
            price=given.price,
            drop=given.drop,
            false_alarm_days=options.false_alarm_every / _DAY,
            detectors=detectors,
            tolerance=tolerance,
        )
        answers[rate] = planned(question, past, random.Random(_SEED).random, runs=_RUNS)  # noqa: S311 - a simulation
    delays = ((rate, answer.delay_hours) for rate, answer in answers.items())
    best = next((rate for rate, hours in delays if limit is not None and hours is not None and hours <= limit), None)
    usd = REFERENCE_READINGS * given.price
    # Of the 95 % interval of the mean of as many scores, which a cheaper judge can make narrower only.
    width = half_width(past, REFERENCE_READINGS)
    if given.as_json:
        reference = {"readings": REFERENCE_READINGS, "usd": usd, "half_width": width}
        rates = [{"probability": rate, **asdict(answer)} for rate, answer in answers.items()]
        click.echo(json.dumps({"rates": rates, "lowest_probability": best, "reference": reference}))
    else:
        _show(answers, best, given.drop)
        interval = "" if width is None else f"; the 95 % interval of its mean is then +-{width:.3f} or narrower"
        click.echo(
            f"{REFERENCE_READINGS} readings by a reference judge (judges[].reference) cost ${usd:,.2f}{interval}."
        )
        if limit is not None and best is None:
            say(f"no rate detects a drop of {given.drop:g} within {given.within}")
    return TOO_SLOW if limit is not None and best is None else 0


def simulated_scores(mean: float) -> list[float]:
    """Simulate scores: the share of supported claims of 2 to 8, each supported with probability `mean`."""
    rng = random.Random(_SEED)  # noqa: S311 - a simulation
    counts = (rng.randint(_MIN_CLAIMS, _MAX_CLAIMS) for _ in range(_SIMULATED_SCORES))
    return [sum(rng.random() < mean for _ in range(count)) / count for count in counts]


def _past_scores(file: Path, quantity: Quantity) -> list[float]:
    """Past scores of a quantity, inverted if low is good, as the detector expects; none if the file has no row."""
    answers = read_answers(file)
    scores = [score for answer in answers if (score := answer.scores.get(quantity)) is not None]
    if quantity in LOW_IS_GOOD:
        scores = [1.0 - score for score in scores]
    if answers and not scores:
        raise ConfigError(f"{file.name}: has no score of {quantity}; name another --quantity")
    return scores


def _drift_options(path: Path | None) -> tuple[DriftOptions, int]:
    """The options of drift detection, and the number of detectors that share the false alarm rate."""
    if path is None:
        options = DriftOptions()
        return options, len(options.quantities)
    settings = load(path).settings
    options = settings.drift
    return options, max(1, len(options.rules("", "", (*settings.routes, OTHER), {}).cells))


def _tolerance(scores: Sequence[float], options: DriftOptions) -> float:
    """Distance from the mean to the baseline learned from such scores: confidence bound and tolerance together."""
    mean, square, n = fmean(scores), fmean(score * score for score in scores), float(options.reference)
    scheme = options.rules("", "", (OTHER,), {}).scheme(Quantity.FAITHFULNESS, OTHER)
    baseline = scheme.baseline((n, n, mean * n, n, mean * n, square * n, 1.0))
    if baseline is None:
        raise ConfigError(f"drift.reference: {options.reference} such scores give no baseline; raise it")
    return mean - baseline


def _show(answers: dict[float, PowerAnswer], best: float | None, drop: float) -> None:
    table = Table("rate", "judged/day", "USD/day", f"detects -{drop:g} after", "hour +-", "day +-")
    for rate, answer in answers.items():
        table.add_row(
            f"{rate:g}",
            f"{answer.scores_per_day:,.0f}",
            f"{answer.usd_per_day:,.2f}",
            _delay(answer),
            figure(answer.half_width_hour),
            figure(answer.half_width_day),
            style="bold green" if rate == best else None,
        )
    Console(soft_wrap=True).print(table)


def _delay(answer: PowerAnswer) -> str:
    if answer.delay_scores is None or answer.delay_hours is None:
        return "never"
    hours = answer.delay_hours
    time = f"{hours * 60:.0f} min" if hours < 1 else f"{hours:.1f} h" if hours < 48 else f"{hours / 24:.1f} days"
    return f"{time} ({answer.delay_scores:.0f} scores)"
