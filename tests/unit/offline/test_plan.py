"""`ragwatch plan`: more readings notice sooner and cost more; what is asked for is found, or out of reach."""

import json
import math
import random
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import click
import pytest
from support.command_line import command, refused

from ragwatch.errors import ConfigError
from ragwatch.offline.plan import simulated_scores
from ragwatch.offline.power import PowerQuestion, delay, half_width, plan
from ragwatch.statistics.drift.detect import Score
from ragwatch.statistics.drift.detectors import Betting

FEW = ("--probability", 0.05, "--probability", 0.2, "--probability", 0.8)
"""Rates on both sides of what is asked for; a simulation takes a second for each."""

run = partial(command, "plan")
SCORES = [1.0] * 7 + [0.8, 0.75, 0.5]


def rates(*arguments: object) -> list[dict[str, Any]]:
    """What is said of each rate."""
    found: list[dict[str, Any]] = json.loads(run("--json", *arguments).stdout)["rates"]
    return found


@pytest.mark.uncounted
def test_more_readings_notice_sooner_and_cost_more() -> None:
    """By rate: readings and cost rise in proportion, time to the page and the interval's width fall."""
    found = rates("--per-day", 10_000, "--price", 0.01, *FEW)
    assert [each["scores_per_day"] for each in found] == [10_000 * each["probability"] for each in found]
    assert [each["usd_per_day"] for each in found] == pytest.approx([0.01 * each["scores_per_day"] for each in found])
    hours = [each["delay_hours"] for each in found]
    assert hours == sorted(hours, reverse=True)
    assert found[0]["half_width_day"] > 3 * found[-1]["half_width_day"]


@pytest.mark.costly
def test_smaller_drops_and_more_routes_take_longer(tmp_path: Path) -> None:
    """What lies within tolerance and bound is no drop; more routes are more detectors and a higher threshold."""
    few = ("--per-day", 20_000, "--probability", 0.5)
    large, small, tiny = (rates(*few, "--drop", drop)[0]["delay_scores"] for drop in (0.2, 0.08, 0.02))
    assert large < small
    assert tiny is None
    path = tmp_path / "ragwatch.yaml"
    delays = []
    for routes in ("[]", f"[{', '.join(f'r{index}' for index in range(60))}]"):
        path.write_text(f"routes: {routes}\nsources: [{{kind: tail, name: app, path: x}}]\n")
        delays.append(rates("--per-day", 20_000, "--probability", 0.5, "--config", path)[0]["delay_scores"])
    assert delays[0] < delays[1]


@pytest.mark.uncounted
def test_the_lowest_rate_that_is_soon_enough_is_named() -> None:
    """No lower one is; and where none is, the exit code says so."""
    asked = ("--per-day", 20_000, "--within", "6h", *FEW)
    found = json.loads(run("--json", *asked).stdout)
    best = found["lowest_probability"]
    assert all((each["delay_hours"] <= 6.0) == (each["probability"] >= best) for each in found["rates"])
    result = run("--per-day", 100, "--within", "10m", "--probability", 0.8)
    assert result.return_value == 1
    assert "no rate detects a drop of 0.1 within 10m" in result.stderr
    none = run("--per-day", 100, "--within", "10m", "--json", "--probability", 0.8)
    assert json.loads(none.stdout)["lowest_probability"] is None


@pytest.mark.uncounted
def test_past_scores_tell_how_much_they_scatter(tmp_path: Path) -> None:
    """All-or-nothing scores of the same mean take longer than even ones; low is good where it is."""
    delays = []
    for name, values in (("even", [0.88, 0.92]), ("rough", [1.0] * 9 + [0.0])):
        file = tmp_path / f"{name}.csv"
        scores = "".join(f"{index},{value},{1 - value}\n" for index, value in enumerate(values * 50))
        file.write_text(f"at,faithfulness,contradiction\n{scores}")
        few = ("--per-day", 20_000, "--probability", 0.5, "--scores", file)
        delays.append(rates(*few)[0]["delay_scores"])
        assert rates(*few, "--quantity", "contradiction")[0]["delay_scores"] == pytest.approx(delays[-1], rel=0.05)
    assert 2 * delays[0] < delays[1]


@pytest.mark.costly
def test_a_table_for_people() -> None:
    """Never is a word; times have units."""
    text = run("--per-day", 500, "--probability", 0.1, "--probability", 1, "--drop", 0.01).stdout
    assert text.count("never") == 2
    text = run("--per-day", 200, "--probability", 0.02, "--probability", 1, "--drop", 0.3, "--within", "30d").stdout
    assert "days (" in text
    assert " h (" in text
    assert "min (" in run("--per-day", 1_000_000, "--probability", 1).stdout


def test_what_cannot_be_planned_is_named(tmp_path: Path) -> None:
    """As a usage error."""
    file = tmp_path / "scores.csv"
    for scores, arguments, message in (
        ("1,0\n2,0", (), "2000 such scores give no baseline"),
        ("1,0.01\n2,0", (), "2000 such scores give no baseline"),
        ("1,1", ("--quantity", "need_recall"), "has no score of need_recall"),
        ("1,1", ("--within", "soon"), "--within: 'soon' is not a duration"),
    ):
        file.write_text(f"at,faithfulness\n{scores}\n")
        assert message in refused(run("--per-day", 100, "--scores", file, *arguments))


def test_what_is_no_number_is_refused() -> None:
    """As a usage error, before anything is computed; endless seconds would never end."""
    told = {
        "plan --per-day nan": "'--per-day': nan is not a finite number",
        "plan --per-day x": "'--per-day': 'x' is not a valid number.",
        "label --count x": "'--count': 'x' is not a valid integer.",
        "plan --per-day inf": "'--per-day': inf is not a finite number",
        "plan --per-day 1e300": "--per-day 1e+300: is too much; write a number up to 1,000,000,000",
        "plan --per-day 100 --price 1e300": "--price 1e+300: is too much",
    }
    for option in ("--drop", "--probability", "--mean"):
        told[f"plan --per-day 100 {option} nan"] = f"'{option}': nan is not a finite number"
    for option in ("--seconds", "--degrade-after", "--breakage-seconds", "--rate"):
        told[f"demo {option} nan"] = "nan is not a finite number"
    for words, message in told.items():
        error = command(*words.split()).exception
        assert isinstance(error, ConfigError | click.UsageError), words
        assert message in (error.format_message() if isinstance(error, click.UsageError) else str(error))


def test_a_single_score_tells_no_width(tmp_path: Path) -> None:
    """How much scores scatter is then unknown, not 0; and a file without any is no data."""
    file = tmp_path / "scores.csv"
    file.write_text("at,faithfulness\n1,0.9\n")
    (found,) = rates("--per-day", 10_000, "--probability", 0.5, "--scores", file)
    assert (found["half_width_hour"], found["half_width_day"]) == (None, None)
    assert "+-0" not in run("--per-day", 100, "--scores", file).stdout
    file.write_text("at,faithfulness\n")
    result = run("--per-day", 100, "--scores", file)
    assert (result.return_value, result.stderr) == (3, f"no scores in {file}\n")


def test_typical_scores_have_the_mean_that_was_asked_for() -> None:
    """Within chance, and they are claim ratios."""
    assert fmean(simulated_scores(0.8)) == pytest.approx(0.8, abs=0.01)
    assert {0.0, 0.5, 1.0} < set(simulated_scores(0.5))


def test_what_a_drop_takes_to_be_noticed() -> None:
    """Within the tolerance it never is; one reading adds the run length of a day at most, as in the daemon."""
    answer = plan(PowerQuestion(20, 0.5, drop=0.005), SCORES, random.Random(1).random, runs=5)
    assert (answer.delay_scores, answer.delay_hours, answer.half_width_hour) == (None, None, None)
    assert half_width(SCORES, 0.5) is None
    assert half_width([0.0, 1.0] * 50, 400.0) == pytest.approx(1.96 * 0.5 / 20, rel=1e-3)  # z s / sqrt(n)
    assert half_width([0.9], 100.0) is None  # one score does not tell how much they scatter
    scores = [1.0] * 9 + [0.5]
    answer = plan(PowerQuestion(1.0, 0.03, drop=0.9), scores, random.Random(1).random, runs=20)
    daily = plan(PowerQuestion(1.0, 1.0, drop=0.9), scores, random.Random(1).random, runs=20)
    assert answer.delay_scores == daily.delay_scores
    assert (daily.scores_per_day, daily.delay_hours) == (1.0, 24.0 * daily.delay_scores)
    assert answer.delay_scores > 1.5


def test_the_delay_begins_with_the_drop() -> None:
    """A baseline that scores do not reach alarms all the time, and starts over; a drop below nothing is one to 0.

    A run that is given up is no delay: a mean over only those that ended would be too small.
    """
    assert 1 <= delay(Betting(0.9, 10), [0.8], 0.1, random.Random(3).random, runs=5) < 20
    assert delay(Betting(0.9, 100), [0.9, 0.95], 2.0, random.Random(3).random, runs=3) < 5
    assert delay(Betting(0.9, 10_000), [0.905], 0.01, random.Random(1).random, runs=3, max_scores=10) is None


@pytest.mark.uncounted
def test_growth_foretells_the_delay() -> None:
    """ln(threshold) / growth is about the delay, for a drop that breaks a share of answers altogether."""
    watching = Betting(0.9, 1e6)
    scores = [0.92] * 100
    broken = [0.92] * 80 + [0.0] * 20
    steps = [watching.step(watching.start(), Score(score)) for score in broken]
    growth = max(fmean(math.log(evidence) for evidence in bet) for bet in zip(*steps, strict=True))  # Kelly 1956
    waited = delay(watching, scores, 0.92 * 0.2, random.Random(2).random, runs=100)
    assert waited == pytest.approx(math.log(1e6) / growth, rel=0.25)  # to first order (Lorden 1971)
