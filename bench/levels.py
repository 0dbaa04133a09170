"""What levels add to a digest: twenty routes, nine quantities, three windows, without labels and with fifty a route.

    python bench/levels.py

Prints milliseconds of CPU of the estimates of a digest in which every route has a new answer, and of their levels.
Fails above `MOST` times the estimates alone.
"""

import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from ragwatch.judges.error_rates import families
from ragwatch.model.quantities import Quantity
from ragwatch.pipeline.labels.levels import Levels
from ragwatch.pipeline.labels.verdicts import AnswerLabel, AnswerVerdicts, LabelRules
from ragwatch.pipeline.windows import SlidingWindows
from ragwatch.ports import ScoreRow
from ragwatch.statistics.labels.label import Label
from ragwatch.stores.sqlite.store import SqliteStore

ROUTES, ANSWERS, DIGESTS, LABELS = 20, 1000, 60, 50
SPANS = {"15m": 900.0, "1h": 3600.0, "1d": 86400.0}
NOW = 1_700_000_000.0
JUDGE, VERSION = "embedded", "v1"
MOST = 1.5


def row(number: int, at: float, rng: random.Random) -> ScoreRow:
    """One answer, scored in nine quantities."""
    scores = {quantity: float(rng.random() < 0.8) for quantity in list(Quantity)[:9]}
    route = f"route{number % ROUTES}"
    return ScoreRow(number, f"k{number}", at, route, JUDGE, VERSION, 1.0, scores, None, None)


def labelled(rng: random.Random) -> list[AnswerLabel]:
    """Fifty labels a route, of answers of the last day."""
    answers = []
    for number in range(ROUTES * LABELS):
        said, people = float(rng.random() < 0.8), float(rng.random() < 0.9)
        scores = {JUDGE: {Quantity.FAITHFULNESS: said}}
        verdicts = AnswerVerdicts(
            f"l{number}", f"route{number % ROUTES}", NOW - 80.0 * number, {}, scores, {JUDGE: 1.0}
        )
        label = Label(verdicts.key, f"ann{number % 2}", NOW, {Quantity.FAITHFULNESS: people}, probability=0.1)
        answers.append(AnswerLabel(verdicts, label.scores, 0.1, (label,)))
    return answers


def measured(answers: Sequence[AnswerLabel], store: SqliteStore) -> tuple[float, float]:
    """Milliseconds of CPU of the estimates and of the levels of a digest, medians."""
    rng, windows = random.Random(3), SlidingWindows(SPANS, {JUDGE: VERSION}, 0.95)
    windows.add(row(number, NOW - 60.0 * rng.random() * 600, rng) for number in range(ROUTES * ANSWERS))
    known = {(JUDGE, Quantity.FAITHFULNESS): tuple(one.rates for one in families("lexical", "faithfulness"))}
    levels = Levels(LabelRules({JUDGE: VERSION}, (JUDGE,), families=known), store, SPANS)
    times: list[tuple[float, float]] = []
    for digest in range(DIGESTS):
        now = NOW + digest
        windows.add(row(10**6 + digest * ROUTES + route, now, rng) for route in range(ROUTES))
        begin = time.thread_time()
        estimates, _ = windows.summary(now)
        between = time.thread_time()
        list(levels.rows(answers, estimates, now, {}))
        times.append((1e3 * (between - begin), 1e3 * (time.thread_time() - between)))
    first, second = zip(*times[5:], strict=True)
    return median(first), median(second)


def main() -> None:
    """Measure both, and fail where levels cost too much."""
    too_much = False
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "state")
        for name, answers in (("no label", []), (f"{LABELS} labels a route", labelled(random.Random(5)))):
            estimates, levels = measured(answers, store)
            ratio = (estimates + levels) / estimates
            print(f"{name:20} estimates {estimates:7.1f} ms, levels {levels:6.1f} ms, x {ratio:.2f} (bar {MOST})")
            too_much |= ratio > MOST
        store.close()
    if too_much:
        sys.exit("levels cost more than the bar")


if __name__ == "__main__":
    main()
