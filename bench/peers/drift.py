"""Delay until a fall of scores is detected: our detectors and river's, all tuned to the same average run length.

A run begins with 500 healthy scores, from which a detector may learn; an alarm among them starts it again and does not
count. Run lengths and delays are counted from there. The parameter of every detector is searched until healthy scores
raise one alarm in RUN_LENGTH (time under observation / alarms, so runs that were cut off count). ADWIN and KSWIN look
for changes in both directions, the others for a fall only, which is an advantage at the same run length.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from detectors import Draw, beta, claims
from peers.page import Bar, Chart, Part, figure
from river import drift

from ragwatch.statistics.drift.detect import Score
from ragwatch.statistics.drift.detectors import Betting, Cusum

RUN_LENGTH, CUT_OFF, WARMING = 1000, 4000, 500
HEALTHY, MEANS = 0.9, (0.85, 0.8, 0.7, 0.5)
KSWIN_MEMORY, KSWIN_CUT_OFF = 99, 2000
SEARCH_STEPS = 9


class Watcher(Protocol):
    """A detector in use."""

    def update(self, score: float) -> bool:
        """Take a score; True for an alarm."""
        ...


Maker = Callable[[float, Sequence[float]], Watcher]


class Ours:
    """One of our detectors; its baseline is the mean of the scores that it learned from."""

    def __init__(self, detector: Betting | Cusum) -> None:
        self._detector, self._numbers = detector, detector.start()

    def update(self, score: float) -> bool:
        """Take a score."""
        self._numbers = self._detector.step(self._numbers, Score(score))
        return self._detector.evidence(self._numbers) >= self._detector.threshold


class Rivers:
    """One of river's detectors."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make, self._detector = make, make()

    def learn(self, scores: Sequence[float]) -> Rivers:
        """Take healthy scores; an alarm starts the detector again."""
        for score in scores:
            if self.update(score):
                self._detector = self._make()
        return self

    def update(self, score: float) -> bool:
        """Take a score."""
        self._detector.update(score)
        return bool(self._detector.drift_detected)


@dataclass(frozen=True, slots=True)
class Tried:
    """A detector to be tuned."""

    name: str  # what it is called in the table
    make: Maker  # makes it from its parameter and the healthy scores before
    more: float  # a parameter at which it raises more alarms than wanted
    fewer: float  # one at which it raises fewer
    runs: float = 1.0  # part of the runs that it is given; less than 1 for a slow one


def _mean(scores: Sequence[float]) -> float:
    return sum(scores) / len(scores)


def _kswin(alpha: float, before: Sequence[float]) -> Watcher:
    # Its window is full with the next score, so no alarm can fall into the scores before.
    return Rivers(lambda: drift.KSWIN(alpha=alpha, seed=1)).learn(before[-KSWIN_MEMORY:])


TRIED = (
    Tried("ragwatch betting, baseline known", lambda at, _: Ours(Betting(HEALTHY, at)), 1.0, 1e6),
    Tried("ragwatch betting, baseline learned", lambda at, before: Ours(Betting(_mean(before), at)), 1.0, 1e6),
    Tried("ragwatch cusum, baseline learned", lambda at, before: Ours(Cusum(_mean(before), at)), 0.2, 50.0),
    Tried(
        "river ADWIN",
        lambda at, before: Rivers(lambda: drift.ADWIN(delta=at, clock=1)).learn(before),
        20.0,
        1e-6,
    ),
    Tried(
        "river Page-Hinkley",
        lambda at, before: Rivers(lambda: drift.PageHinkley(threshold=at, mode="down")).learn(before),
        0.3,
        200.0,
    ),
    Tried("river KSWIN", _kswin, 0.05, 1e-7, runs=0.25),
)


def length(watcher: Watcher, scores: Sequence[float]) -> int | None:
    """Scores until the alarm; None where there is none."""
    return next((count for count, score in enumerate(scores, 1) if watcher.update(score)), None)


def run_length(tried: Tried, parameter: float, streams: Sequence[list[float]]) -> tuple[float, int]:
    """Average run length on healthy streams, and the number of alarms that it is an average of."""
    observed, alarms = 0, 0
    for stream in streams:
        reached = length(tried.make(parameter, stream[:WARMING]), stream[WARMING:])
        observed += len(stream) - WARMING if reached is None else reached
        alarms += reached is not None
    return observed / max(1, alarms), alarms


@dataclass(frozen=True, slots=True)
class Tuning:
    """A parameter, the average run length that it has, and the number of alarms that this is an average of."""

    parameter: float
    run_length: float
    alarms: int


def tuned(tried: Tried, streams: Sequence[list[float]]) -> Tuning:
    """The parameter at which these streams have the wanted average run length."""
    if tried.make is _kswin:
        return _tuned_kswin(streams)
    more, fewer = math.log(tried.more), math.log(tried.fewer)
    for _ in range(SEARCH_STEPS):
        middle = (more + fewer) / 2
        if run_length(tried, math.exp(middle), streams)[0] < RUN_LENGTH:
            more = middle
        else:
            fewer = middle
    parameter = math.exp((more + fewer) / 2)
    return Tuning(parameter, *run_length(tried, parameter, streams))


def _tuned_kswin(streams: Sequence[list[float]]) -> Tuning:
    """The same in one pass: until its first alarm KSWIN does not depend on alpha, and it takes .7 ms a score."""
    passed = []
    for stream in streams:
        detector = drift.KSWIN(alpha=0.0, seed=1)
        smallest, records = 1.0, []
        for count, score in enumerate(stream[WARMING - KSWIN_MEMORY : WARMING + KSWIN_CUT_OFF]):
            detector.update(score)
            if count >= KSWIN_MEMORY and detector.p_value < smallest:
                smallest = float(detector.p_value)
                records.append((count - KSWIN_MEMORY + 1, smallest))
        passed.append((records, KSWIN_CUT_OFF))

    def at(alpha: float) -> Tuning:
        firsts = [next((count for count, low in records if low <= alpha), None) for records, _ in passed]
        observed = sum(whole if first is None else first for first, (_, whole) in zip(firsts, passed, strict=True))
        alarms = sum(first is not None for first in firsts)
        return Tuning(alpha, observed / max(1, alarms), alarms)

    lows = {low for records, _ in passed for _, low in records}
    return min(map(at, lows), key=lambda tuning: abs(math.log(tuning.run_length / RUN_LENGTH)))


def streams_of(draw: Draw, count: int, size: int, seed: int) -> list[list[float]]:
    """Healthy scores: warm-up and more."""
    rng = np.random.default_rng(seed)
    return [draw(rng, WARMING + size, HEALTHY) for _ in range(count)]


def delays(tried: Tried, parameter: float, draw: Draw, mean: float, runs: int) -> list[int | None]:
    """Scores from the fall to the alarm."""
    rng = np.random.default_rng(7)
    waited = []
    for _ in range(runs):
        before, after = draw(rng, WARMING, HEALTHY), draw(rng, CUT_OFF, mean)
        waited.append(length(tried.make(parameter, before), after))
    return waited


def row(tried: Tried, draw: Draw, runs: int) -> dict[str, Any]:
    """Figures of a detector on one kind of score."""
    count = max(20, round(runs * tried.runs))
    streams = streams_of(draw, count, CUT_OFF, 20260101)
    tuning = tuned(tried, streams)
    watcher, sample = tried.make(tuning.parameter, streams[0][:WARMING]), streams[0][:CUT_OFF]
    start = time.process_time()
    for score in sample:
        watcher.update(score)
    cost = (time.process_time() - start) / len(sample) * 1e6
    waits = {str(mean): delays(tried, tuning.parameter, draw, mean, count) for mean in MEANS}
    known = {mean: [one for one in all_waits if one is not None] for mean, all_waits in waits.items()}
    return {
        "scores": draw.__name__,
        "detector": tried.name,
        "parameter": float(tuning.parameter),
        "run_length": tuning.run_length,
        "error": tuning.run_length / math.sqrt(max(1, tuning.alarms)),
        "runs": count,
        "us": cost,
        # Where an alarm never came, the delay counts as the time that was waited for it.
        "delays": {mean: (sum(one) + CUT_OFF * (count - len(one))) / count for mean, one in known.items()},
        "missed": {mean: (count - len(one)) / count for mean, one in known.items()},
    }


def measure(chosen: argparse.Namespace) -> dict[str, Any]:
    """Tune and measure all detectors on both kinds of score."""
    rows = []
    for draw in (claims, beta):
        for tried in TRIED:
            rows.append(row(replace(tried), draw, chosen.drift_runs))
            print(rows[-1], flush=True)
    return {"rows": rows}


def part(results: dict[str, Any]) -> Part:
    """The table, and bars of the delays as multiples of ours."""
    lines = [
        f"| scores | detector | run length | µs a score | {' | '.join(f'.90 to {mean:.2f}' for mean in MEANS)} |",
        "|---" * (4 + len(MEANS)) + "|",
    ]
    base: dict[str, dict[str, float]] = {}
    bars: dict[str, list[Bar]] = {str(mean): [] for mean in MEANS}
    for one in results["rows"]:
        ours = base.setdefault(one["scores"], one["delays"])
        cells = []
        for mean in map(str, MEANS):
            missed = one["missed"][mean]
            ratio = one["delays"][mean] / ours[mean]
            told = f" ({missed:.0%} missed)" if missed else ""
            cells.append(f"{ratio:.2f}× ({one['delays'][mean]:.0f}){told}")
            if one["scores"] == "claims":
                bars[mean].append(Bar(one["detector"], ratio))
        lines.append(
            f"| {one['scores']} | {one['detector']} | {one['run_length']:.0f} ± {one['error']:.0f} | "
            f"{figure(one['us'])} | {' | '.join(cells)} |"
        )
    groups = [(f".90 to {float(mean):.2f}", values) for mean, values in bars.items()]
    chart = Chart("Delay until a fall of claim ratios is detected, as a multiple of the first line", groups, "×")
    return Part("\n".join(lines), chart)
