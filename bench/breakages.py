"""False alarms of a month and delays by breakage and traffic, beside other detectors on the same streams.

Run: python bench/breakages.py, some minutes. Ours runs at the default settings as one of sixteen detectors; the others
at the settings that their documentation names. A threshold on a windowed mean is set five points below the mean. Scores
are shares of supported claims whose mean swings by .02 over the day. The breakage begins on the eleventh day at noon.
The tables stand in docs/statistics.md. It ends with an error if ours breaks its promise, or does not notice a breakage.
Needs river.
"""

import math
import sys
from collections import deque
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np

from ragwatch.config.drift import DriftOptions
from ragwatch.model.quantities import Quantity
from ragwatch.model.sample import OTHER
from ragwatch.statistics.drift.detect import DetectorState, Score, acknowledge, begin, step

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.score_draws import claims

try:
    from river import drift
except ImportError:
    print("skipped: needs river (pip install river)")
    raise SystemExit(0) from None

Watcher = Callable[[float, float], bool]
"""Called with the time in seconds and the score of each answer; True when an alarm begins."""


def adwin() -> Watcher:
    """ADWIN (Bifet and Gavalda 2007) of river, at its defaults; it starts again after an alarm."""
    detector = drift.ADWIN()

    def watch(_: float, score: float) -> bool:
        before = detector.estimation
        detector.update(score)
        return bool(detector.drift_detected) and detector.estimation < before  # a rise is no breakage

    return watch


def page_hinkley() -> Watcher:
    """Page-Hinkley test for a fall (Page 1954) of river, which forgets nothing; it starts again after an alarm."""
    detector = drift.PageHinkley(alpha=1.0, mode="down")

    def watch(_: float, score: float) -> bool:
        detector.update(score)
        return bool(detector.drift_detected)

    return watch


def windowed_mean(limit: float, seconds: float, least: int = 1) -> Watcher:
    """A threshold on the mean of a sliding window: the rule that Langfuse, Opik and Grafana document.

    Args:
        limit: An alarm begins when the mean comes below it.
        seconds: Length of the window.
        least: Number of scores below which nothing is said.
    """
    window: deque[tuple[float, float]] = deque()
    total, below = 0.0, False

    def watch(at: float, score: float) -> bool:
        nonlocal total, below
        window.append((at, score))
        total += score
        while window[0][0] <= at - seconds:
            total -= window.popleft()[1]
        before, below = below, len(window) >= least and total / len(window) < limit
        return below and not before

    return watch


DAY, HOUR, SWING, DISTANCE = 86400.0, 3600.0, 0.02, 0.05
ROUTES = ("search", "support", "chat", OTHER)
BEGIN, LONGEST = 10.5 * DAY, 20 * DAY
BREAKAGES = {"a fall by .05": 0.05, "a fall by .20": 0.20, "a fall by .60": 0.60}
MEAN = 0.92


def ragwatch() -> Watcher:
    """Our detector of faithfulness on one of four routes; each alarm is acknowledged after a day."""
    scheme = DriftOptions().rules("", "", ROUTES, {}).scheme(Quantity.FAITHFULNESS, ROUTES[0])
    state: DetectorState[Score] = begin(scheme)

    def watch(at: float, score: float) -> bool:
        nonlocal state
        if state.alarm is not None and at >= state.alarm.at + DAY:
            state = acknowledge(state)
        before = state.alarm
        state = step(scheme, state, state.seq + 1, at, Score(score))
        return before is None and state.alarm is not None

    return watch


DETECTORS: dict[str, Callable[[], Watcher]] = {
    "ragwatch": ragwatch,
    "ADWIN": adwin,
    "Page-Hinkley": page_hinkley,
    "mean of an hour": lambda: windowed_mean(MEAN - DISTANCE, HOUR),
    "mean of a day": lambda: windowed_mean(MEAN - DISTANCE, DAY),
}


@cache
def stream(per_hour: float, seed: int, days: float, fall: float) -> tuple[tuple[float, float], ...]:
    """(time, score) of all answers; from `BEGIN` on the mean is lower by `fall`."""
    rng = np.random.default_rng([41, int(10 * per_hour), seed, int(100 * fall)])
    times = np.sort(rng.random(rng.poisson(per_hour * 24 * days))) * days * DAY
    means = MEAN + SWING * np.sin(2 * math.pi * times / DAY) - np.where(times >= BEGIN, fall, 0.0)
    return tuple(zip(times.tolist(), claims(rng, means, times.size).tolist(), strict=True))


def alarms(name: str, answers: tuple[tuple[float, float], ...]) -> Iterator[tuple[int, float]]:
    """Index and time of each alarm."""
    watch = DETECTORS[name]()
    for index, (at, score) in enumerate(answers):
        if watch(at, score):
            yield index, at


def quiet_month(per_hour: float, seeds: int) -> bool:
    """Nothing breaks for 31 days; whether ours keeps the promise of one false alarm in 30 days over 16 detectors."""
    kept = True
    for name in DETECTORS:
        found = [sum(1 for _ in alarms(name, stream(per_hour, seed, 31.0, 0.0))) for seed in range(seeds)]
        print(f"{per_hour}/h, {name}: {np.mean(found):.2f} false alarms a month in {seeds} months")
        kept &= name != "ragwatch" or sum(found) <= seeds / 16 + 2 * math.sqrt(seeds / 16)
    return kept


def delays(per_hour: float, seeds: int, breakage: str) -> bool:
    """Answers and time from the breakage to the first alarm after it; whether ours notices it within twenty days."""
    fall, noticed = BREAKAGES[breakage], True
    days = (BEGIN + (LONGEST if per_hour < 100 else LONGEST / 10)) / DAY
    for name in DETECTORS:
        waits, hours = [], []
        for seed in range(seeds):
            answers = stream(per_hour, seed, days, fall)
            first = sum(at < BEGIN for at, _ in answers)
            index, at = next(((index, at) for index, at in alarms(name, answers) if at >= BEGIN), (0, math.inf))
            if index:
                waits.append(index - first + 1)
                hours.append((at - BEGIN) / HOUR)
        shown = f"{np.mean(waits):.0f} answers, {np.mean(hours):.1f} h" if waits else "never"
        print(f"{per_hour}/h, {breakage}, {name}: {shown}, noticed {len(waits) / seeds:.0%}")
        noticed &= name != "ragwatch" or len(waits) == seeds or (per_hour < 10 and fall < 0.2)
    return noticed


def main() -> None:
    """Measure and print both tables."""
    kept = [quiet_month(per_hour, seeds) for per_hour, seeds in ((1, 8), (10, 8), (100, 4), (1000, 1))]
    runs = ((1, 20), (10, 20), (100, 10), (1000, 3))
    noticed = [delays(per_hour, seeds, breakage) for breakage in BREAKAGES for per_hour, seeds in runs]
    if not all((*kept, *noticed)):
        raise SystemExit("ours has more false alarms than it promises, or did not notice a breakage")


if __name__ == "__main__":
    main()
