"""`ragwatch plan`: what each sampling rate would cost, and how soon it would notice a drop."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from ragwatch.commands.replay import read_lines
from ragwatch.config import load
from ragwatch.config.drift import DriftOptions
from ragwatch.config.text import duration_seconds
from ragwatch.core.power import PowerAnswer, PowerQuestion
from ragwatch.core.power import plan as planned
from ragwatch.core.sample import OTHER
from ragwatch.core.scores import LOW_IS_GOOD, Quantity
from ragwatch.errors import ConfigError
from ragwatch.telemetry import configure_logging

RATES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
TOO_SLOW = 1
_DAY, _HOUR = 86400.0, 3600.0
_RUNS, _SEED = 100, 1
_TYPICAL, _FEWEST_CLAIMS, _MOST_CLAIMS = 2000, 2, 8


def plan(
    *,
    per_day: float,
    price: float,
    drop: float,
    within: str | None,
    rates: Sequence[float],
    path: Path | None,
    scores: Path | None,
    quantity: str,
    mean: float,
    as_json: bool,
) -> int:
    """Show, by sampling rate: readings and cost a day, time from a drop to the page, width of the interval."""
    configure_logging("error")
    limit = _hours(within)
    options, detectors = _asked(path)
    past = typical(mean) if scores is None else _past(scores, Quantity(quantity))
    tolerance = _tolerance(past, options)
    found: dict[float, PowerAnswer] = {}
    for rate in sorted(set(rates or RATES)):
        question = PowerQuestion(per_day, rate, price, drop, options.false_alarm_every / _DAY, detectors, tolerance)
        found[rate] = planned(question, past, random.Random(_SEED), runs=_RUNS)  # noqa: S311 - a simulation
    best = None if limit is None else next((rate for rate, each in found.items() if _in_time(each, limit)), None)
    if as_json:
        click.echo(json.dumps(_summary(found, best)))
    else:
        _show(found, best, drop)
        if limit is not None and best is None:
            click.echo(f"no rate notices a drop of {drop:g} within {within}", err=True)
    return TOO_SLOW if limit is not None and best is None else 0


def typical(mean: float) -> list[float]:
    """Scores as judges give them: supported claims of two to eight, each supported with such a probability."""
    rng = random.Random(_SEED)  # noqa: S311 - a simulation
    counts = (rng.randint(_FEWEST_CLAIMS, _MOST_CLAIMS) for _ in range(_TYPICAL))
    return [sum(rng.random() < mean for _ in range(count)) / count for count in counts]


def _past(file: Path, quantity: Quantity) -> list[float]:
    """Past scores, seen from the good end, where the detector's arithmetic stands."""
    found = [score for line in read_lines(file) if (score := line.scores.get(quantity)) is not None]
    if quantity in LOW_IS_GOOD:
        found = [1.0 - score for score in found]
    if not found:
        raise ConfigError(f"{file.name}: holds no score of {quantity}; name another --quantity")
    return found


def _asked(path: Path | None) -> tuple[DriftOptions, int]:
    """How drift is configured, and how many detectors share the false alarms."""
    if path is None:
        options = DriftOptions()
        return options, len(options.quantities)
    settings = load(path).settings
    options = settings.drift
    return options, max(1, len(options.rules("", "", (*settings.routes, OTHER), {}).cells))


def _tolerance(scores: Sequence[float], options: DriftOptions) -> float:
    """How far below the mean the baseline lies that would be learnt from such scores: bound and tolerance together.

    Raises:
        ConfigError: They scatter too much for any baseline.
    """
    mean, square, n = fmean(scores), fmean(each * each for each in scores), float(options.reference)
    scheme = options.rules("", "", (OTHER,), {}).scheme(Quantity.FAITHFULNESS, OTHER)
    baseline = scheme.baseline((n, n, mean * n, n, mean * n, square * n, 1.0))
    if baseline is None:
        raise ConfigError(f"drift.reference: {options.reference} such scores give no baseline; learn from more of them")
    return mean - baseline


def _hours(within: str | None) -> float | None:
    try:
        seconds = None if within is None else duration_seconds(within)
    except ValueError as error:
        raise ConfigError(f"--within: {error}") from error
    return None if seconds is None else float(str(seconds)) / _HOUR


def _in_time(found: PowerAnswer, hours: float) -> bool:
    return found.delay_hours is not None and found.delay_hours <= hours


def _summary(found: dict[float, PowerAnswer], best: float | None) -> dict[str, Any]:
    rates = [{"probability": rate, **asdict(each)} for rate, each in found.items()]
    return {"rates": rates, "lowest_probability": best}


def _show(found: dict[float, PowerAnswer], best: float | None, drop: float) -> None:
    table = Table("rate", "readings a day", "USD a day", f"notices -{drop:g} after", "hour +-", "day +-")
    for rate, each in found.items():
        table.add_row(
            f"{rate:g}",
            f"{each.scores_per_day:,.0f}",
            f"{each.usd_per_day:,.2f}",
            _delay(each),
            *("unknown" if half is None else f"{half:.3f}" for half in (each.half_width_hour, each.half_width_day)),
            style="bold green" if rate == best else None,
        )
    Console(soft_wrap=True).print(table)


def _delay(found: PowerAnswer) -> str:
    if found.delay_scores is None or found.delay_hours is None:
        return "never"
    hours = found.delay_hours
    time = f"{hours * 60:.0f} min" if hours < 1 else f"{hours:.1f} h" if hours < 48 else f"{hours / 24:.1f} days"
    return f"{time} ({found.delay_scores:.0f} scores)"
