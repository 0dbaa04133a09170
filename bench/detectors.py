"""How soon a drop is noticed, beside river's ADWIN and Page-Hinkley tuned to the same average run length in this run.

Run: python bench/detectors.py [RUNS]. Scores of mean .90 fall to .80 after 1,000; the delay is counted in scores, runs
with an earlier alarm are left out. Ours is not tuned: its threshold is 1 / alpha = 10,000. The other two are given the
parameter at which 2,000,000 scores of the same kind raise one false alarm in 10,000, which nobody has in production.
Needs river.
"""

import math
import sys
from collections.abc import Callable, Iterable
from functools import partial

import numpy as np

from ragwatch.statistics.drift.detect import Score
from ragwatch.statistics.drift.detectors import Betting

try:
    from river import drift
except ImportError:
    print("skipped: needs river (pip install river)")
    raise SystemExit(0) from None

RUN_LENGTH = 10_000
IN_CONTROL, TUNING = 1_000_000, 2_000_000
BEFORE, AFTER = 1000, 3000
Watcher = Callable[[float], bool]
Draw = Callable[[np.random.Generator, int, float], list[float]]


def beta(rng: np.random.Generator, size: int, mean: float) -> list[float]:
    """Smooth scores: Beta(9, 1) and Beta(8, 2)."""
    return rng.beta(10 * mean, 10 * (1 - mean), size).tolist()


def claims(rng: np.random.Generator, size: int, mean: float) -> list[float]:
    """Supported of 2 to 8 claims, alike within an answer: sd .22 at .90, .30 at .80."""
    counts = rng.integers(2, 9, size)
    of_answer = rng.beta(1.5 * mean, 1.5 * (1 - mean), size)
    return (rng.binomial(counts, of_answer) / counts).tolist()


def bernoulli(rng: np.random.Generator, size: int, mean: float) -> list[float]:
    """Yes or no."""
    return (rng.random(size) < mean).astype(float).tolist()


def ours() -> Watcher:
    """The default detector, baseline known, no tolerance, no calibration."""
    watching = Betting(baseline=0.9, threshold=RUN_LENGTH)
    numbers = watching.start()

    def update(score: float) -> bool:
        nonlocal numbers
        numbers = watching.step(numbers, Score(score))
        return watching.evidence(numbers) >= watching.threshold

    return update


def adwin(delta: float) -> Watcher:
    """River's ADWIN, looking after every score."""
    found = drift.ADWIN(delta=delta, clock=1)
    return lambda score: bool(found.update(score) or found.drift_detected)


def page_hinkley(threshold: float) -> Watcher:
    """River's Page-Hinkley for falls."""
    found = drift.PageHinkley(threshold=threshold, mode="down")
    return lambda score: bool(found.update(score) or found.drift_detected)


def alarms(make: Callable[[], Watcher], scores: Iterable[float]) -> int:
    """Alarms among the scores; each begins the watch anew."""
    watch, count = make(), 0
    for score in scores:
        if watch(score):
            watch, count = make(), count + 1
    return count


def delays(make: Callable[[], Watcher], draw: Draw, runs: int, rng: np.random.Generator) -> list[int]:
    """Scores from the drop to the alarm, of runs without an earlier one."""
    found = []
    for _ in range(runs):
        before, after = draw(rng, BEFORE, 0.9), draw(rng, AFTER, 0.8)
        watch = make()
        if not any(watch(score) for score in before):
            found.append(next((index for index, score in enumerate(after, 1) if watch(score)), AFTER))
    return found


def tuned(make: Callable[[float], Watcher], ends: tuple[float, float], scores: list[float]) -> float:
    """The parameter between the ends at which these scores raise one alarm in RUN_LENGTH; the first end raises more."""
    more, fewer = map(math.log, ends)
    for _ in range(10):
        middle = (more + fewer) / 2
        parameter = math.exp(middle)
        if alarms(partial(make, parameter), scores) * RUN_LENGTH > len(scores):
            more = middle
        else:
            fewer = middle
    return math.exp(fewer)


def main() -> None:
    """Measure and print the table."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    print(f"{'scores':<12}{'detector':<16}{'parameter':>12}{'run length':>12}{'mean':>8}{'p95':>8}")
    worse = []
    for draw in (beta, claims, bernoulli):
        rng = np.random.default_rng(20260101)
        scores = draw(rng, TUNING, 0.9)
        delta, threshold = tuned(adwin, (8.0, 1e-3), scores), tuned(page_hinkley, (0.5, 100.0), scores)
        fresh = draw(rng, IN_CONTROL, 0.9)
        table = {}
        for name, parameter, make in (
            ("betting", float(RUN_LENGTH), ours),
            ("adwin", delta, lambda delta=delta: adwin(delta)),
            ("page-hinkley", threshold, lambda threshold=threshold: page_hinkley(threshold)),
        ):
            length = len(fresh) / max(1, alarms(make, fresh))
            waits = delays(make, draw, runs, np.random.default_rng(7))
            table[name] = float(np.mean(waits))
            p95 = np.quantile(waits, 0.95)
            print(f"{draw.__name__:<12}{name:<16}{parameter:>12.4g}{length:>12.0f}{table[name]:>8.1f}{p95:>8.0f}")
        if min(table, key=table.__getitem__) != "betting":
            worse.append(draw.__name__)
    if worse:
        raise SystemExit(f"another detector was faster on {worse}")


if __name__ == "__main__":
    main()
