"""Intervals cover what they say at rates of .02 to .98, equal and unequal weights; the tables of docs/statistics.md.

The bars, over 2,000 runs a cell (where all are drawn alike, over all counts there are): covered in 93.5 % at least; at
rates of .1 to .9 in 96.5 % at most; below .1 and above .9 no wider on average than Clopper and Pearson's interval at
n_eff. Yes/no scores, n = 60 to 2,000: all cells hold. Of cells that cover 95 % exactly 2,000 runs show one in 500
outside the bars; a cell that they show outside is decided by 20,000 others, at the same bars.

Two things that no interval can do, and what holds instead:

- At n = 60 and rates of .02 and .05, drawn alike, .968 and .970 are the only shares from .93 to .975 that any set of
  neighbouring counts adds up to: the upper bar begins at .1.
- If traffic with a low inclusion probability is worse, the variance of the estimate is above p (1 - p) / n_eff, and the
  Clopper-Pearson interval at n_eff covers too little. `worse_where_rare`, nine times worse, shows what the width limit
  costs: a coverage of at least 90 %, and of at least 93.5 % from 25 effective failures on.
"""

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from scipy.stats import beta, binom
from support.score_draws import Floats, bernoulli, separate_claims
from support.score_draws import beta as smooth

from ragwatch.model.estimate import Addends, Estimate
from ragwatch.statistics.estimators import hajek

pytestmark = pytest.mark.uncounted

RUNS = 2000
LEAST, MOST = 0.935, 0.965
SEED = 2026
SIZES = (60, 120, 240, 500, 2000)
RATES = (0.02, 0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95, 0.98)
Scores = Callable[[np.random.Generator, Floats, int], Floats]
Maker = Callable[[np.random.Generator, float, int, Scores], Estimate]


def some(found: Estimate | None) -> Estimate:
    """It is there."""
    assert found is not None
    return found


def addends(scores: np.ndarray, weights: np.ndarray) -> Addends:
    """Addends of many scores at once."""
    squares = weights**2
    sums = (weights.sum(), (weights * scores).sum(), squares.sum(), (squares * scores).sum())
    powers = ((squares * scores**2).sum(), (squares * weights).sum(), (squares**2).sum())
    return Addends(len(scores), *map(float, (*sums, *powers)))


def mean_of(rng: np.random.Generator, rates: np.ndarray, p: np.ndarray, scores: Scores) -> Estimate:
    """Of traffic of these rates, each request drawn with its probability."""
    kept = rng.random(len(p)) < p
    return some(hajek.estimate(addends(scores(rng, rates[kept], int(kept.sum())), 1.0 / p[kept])))


def equal(rng: np.random.Generator, rate: float, n: int, scores: Scores) -> Estimate:
    """All drawn alike."""
    return mean_of(rng, np.full(n, rate), np.ones(n), scores)


def weighted(rng: np.random.Generator, rate: float, n: int, scores: Scores) -> Estimate:
    """Of the traffic half is drawn at .1 and half at 1, n on average."""
    size = round(n / 0.55)
    return mean_of(rng, np.full(size, rate), np.where(np.arange(size) % 2 == 0, 0.1, 1.0), scores)


def mixed(rng: np.random.Generator, rate: float, n: int, scores: Scores) -> Estimate:
    """Probabilities of .1 to 1, as a budget that rises and falls leaves them, n on average."""
    size = round(n / 0.55)
    return mean_of(rng, np.full(size, rate), rng.uniform(0.1, 1.0, size), scores)


def worse_where_rare(rng: np.random.Generator, rate: float, n: int, scores: Scores) -> Estimate:
    """Like `weighted`, but the half drawn at .1 fails nine times as often."""
    size = round(n / 0.55)
    rare = np.arange(size) % 2 == 0
    apart = 0.8 * min(rate, 1.0 - rate) * (1.0 if rate < 0.5 else -1.0)
    return mean_of(rng, np.where(rare, rate + apart, rate - apart), np.where(rare, 0.1, 1.0), scores)


def covered(maker: Maker, rate: float, n: int, *, scores: Scores = bernoulli, runs: int = RUNS) -> tuple[float, float]:
    """Share of runs that hold the rate, and mean width over that of Clopper and Pearson's interval at n_eff."""
    # Each cell by itself: no two share their luck.
    rng = np.random.default_rng([SEED, n, round(1000 * rate), *([] if runs == RUNS else [runs])])
    held, width, exact = 0, 0.0, 0.0
    for _ in range(runs):
        found = maker(rng, rate, n, scores)
        held += found.low <= rate <= found.high
        width += found.high - found.low
        ones, zeros = found.value * found.n_eff, (1.0 - found.value) * found.n_eff
        exact -= float(beta.ppf(0.025, ones, zeros + 1)) if ones > 1e-9 else 0.0
        exact += float(beta.ppf(0.975, ones + 1, zeros)) if zeros > 1e-9 else 1.0
    return held / runs, width / exact


def exactly(rate: float, n: int) -> tuple[float, float]:
    """The same of yes/no scores that are all drawn alike, over all counts instead of runs."""
    counts = np.arange(n + 1)
    ends = [some(hajek.estimate(Addends(n, n, float(each), n, float(each), float(each), n, n))) for each in counts]
    held = np.array([each.low <= rate <= each.high for each in ends])
    wide = np.array([each.high - each.low for each in ends])
    low = np.where(counts > 0, beta.ppf(0.025, np.maximum(counts, 1), n - counts + 1), 0.0)
    high = np.where(counts < n, beta.ppf(0.975, counts + 1, np.maximum(n - counts, 1)), 1.0)
    chance = binom.pmf(counts, n, rate)
    return float(chance @ held), float(chance @ wide / (chance @ (high - low)))


def within(rate: float) -> bool:
    """Whether the rate is neither near 0 nor near 1."""
    return 0.1 <= rate <= 0.9


def table(
    maker: Maker, n: int, rates: tuple[float, ...], scores: Scores = bernoulli
) -> dict[float, tuple[float, float]]:
    """Coverage and width by rate, printed as a row."""
    exact = maker is equal and scores is bernoulli
    found = {rate: exactly(rate, n) if exact else covered(maker, rate, n, scores=scores) for rate in rates}
    for rate, (share, _) in found.items():
        if not exact and not LEAST <= share <= (MOST if within(rate) else 1.0):
            found[rate] = covered(maker, rate, n, scores=scores, runs=10 * RUNS)
            print(f"{share:.3f} at {rate}, decided by {10 * RUNS} runs: {found[rate][0]:.4f}")
    shown = " ".join(f"{rate}: {share:.3f} ({width:.2f})" for rate, (share, width) in found.items())
    print(f"n={n}: {shown}")
    return found


DESIGNS = {"equal": equal, "weighted": weighted, "mixed": mixed}


FEW = product((smooth, separate_claims), ("equal", "weighted"), (60, 240, 2000), [(0.02, 0.1, 0.5, 0.9, 0.98)])
CASES = [*product([bernoulli], DESIGNS, SIZES, [RATES]), *FEW]


@pytest.mark.slow
@pytest.mark.parametrize(("scores", "design", "n", "rates"), CASES)
def test_covers(scores: Scores, design: str, n: int, rates: tuple[float, ...]) -> None:
    """93.5 % at least; 96.5 % at most within .1 and .9; beyond no wider than Clopper and Pearson's at n_eff.

    Scores between 0 and 1, how finely they scatter is learnt from the same scores, are nowhere wider.
    """
    found = table(DESIGNS[design], n, rates, scores)
    yes_no = scores is bernoulli
    assert {rate: share for rate, (share, _) in found.items() if share < LEAST} == {}
    assert {rate: share for rate, (share, _) in found.items() if within(rate) and share > MOST} == {}
    assert {rate: width for rate, (_, width) in found.items() if width > 1.0 and not (yes_no and within(rate))} == {}


def covered_with_rare_kind(share: float, n: int, runs: int, *, is_weighted: bool) -> float:
    """Share of runs that hold the mean of scores of which most hardly differ and few lie far from them."""
    rng, held = np.random.default_rng([SEED, n, round(1000 * share), is_weighted]), 0
    truth = (1.0 - share) * 0.0065 + share * 0.72
    for _ in range(runs):
        is_far = rng.random(n) < share
        scores = np.where(is_far, rng.uniform(0.69, 0.75, n), rng.uniform(0.005, 0.008, n))
        weights = np.where(rng.random(n) < 1 / 11, 10.0, 1.0) if is_weighted else np.ones(n)
        found = some(hajek.estimate(addends(scores, weights)))
        held += found.low <= truth <= found.high
    return held / runs


@pytest.mark.parametrize(
    ("n", "is_weighted", "runs"),
    [
        *((n, False, 400) for n in (10, 20, 40)),
        *(
            pytest.param(*case, RUNS, marks=pytest.mark.slow)
            for case in product((10, 20, 40, 60, 120, 500), (False, True))
        ),
    ],
)
def test_scores_that_hardly_differ_may_hide_others(n: int, is_weighted: bool, runs: int) -> None:  # noqa: FBT001 - a case
    """Expectations of .005 to .008, and of .69 to .75 in 2 or 5 of 100: the interval allows for those not seen yet."""
    for share in (0.02, 0.05) if runs == RUNS else (0.05,):
        found = covered_with_rare_kind(share, n, runs, is_weighted=is_weighted)
        print(f"n={n}, {share:.0%}: {found:.3f}")
        if not is_weighted or n <= 60:
            assert found >= (LEAST if runs == RUNS else 0.925)  # without it 35 to 85 % were covered


@pytest.mark.slow
@pytest.mark.parametrize("n", SIZES)
def test_the_rarely_drawn_part_is_the_bad_one(n: int) -> None:
    """Nine times as many failures where few are drawn: 90 % at least, 93.5 % from 25 effective failures on."""
    for rate, (share, _) in table(worse_where_rare, n, RATES).items():
        assert share >= (0.935 if n / 3.0 * min(rate, 1.0 - rate) >= 25.0 else 0.9), rate


@pytest.mark.parametrize("design", ["weighted", "mixed"])
@pytest.mark.parametrize("rate", [0.02, 0.9])
def test_covers_in_short(design: str, rate: float) -> None:
    """The same with few runs, for every change: 400 runs know a coverage to two points."""
    share, width = covered(DESIGNS[design], rate, 120, runs=400)
    assert 0.925 <= share <= (0.975 if within(rate) else 1.0)
    assert width <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize("confidence", [0.8, 0.9, 0.99])
def test_other_levels(confidence: float) -> None:
    """Not only 95 %: within a quarter of the error of any level."""
    for rate in (0.1, 0.3, 0.9):
        rng, held = np.random.default_rng(5), 0
        for _ in range(RUNS):
            sums = addends(bernoulli(rng, rate, 500), rng.choice([1.0, 2.0, 5.0], 500))
            found = some(hajek.estimate(sums, confidence=confidence))
            held += found.low <= rate <= found.high
        print(f"{confidence} at {rate}: {held / RUNS:.4f}")
        assert abs(held / RUNS - confidence) <= 0.25 * (1.0 - confidence) + 0.005
