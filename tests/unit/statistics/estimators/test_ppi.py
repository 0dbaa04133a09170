"""PPI++: equal to its authors' code, unbiased by weights, three tiers, and sums that add up."""

import random
from dataclasses import replace
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwatch.model.estimate import Estimate
from ragwatch.model.quantities import Quantity
from ragwatch.statistics.estimators import corrected
from ragwatch.statistics.estimators.ppi import PpiSums, solve
from ragwatch.statistics.labels.label import MAX_EARLIER, Label, from_record

Row = tuple[list[float], list[float]]
ALL = Estimate(0.3, 0.2, 0.4, n=90, n_eff=80.0, coverage=1.0, bound_low=0.3, bound_high=0.3, interval="ppi++")


def total(rows: list[Row], tiers: int = 2) -> PpiSums:
    """Sums over rows of (scores by tier, probabilities by tier)."""
    return PpiSums.of(tiers, rows)


def traffic(rng: random.Random, size: int, labelled: int, noise: float = 0.2) -> list[Row]:
    """Rows of a judge that is right more often than not, the first `labelled` of them labelled."""
    rows: list[Row] = []
    for index in range(size):
        quality = rng.random()
        said = min(1.0, max(0.0, quality + rng.gauss(0, noise)))
        label = float(rng.random() < quality)
        rows.append(([said, label], [1.0, 1.0]) if index < labelled else ([said], [1.0]))
    return rows


@pytest.mark.parametrize("kind", ["unrelated", "shifted", "noisy", "galaxies", "forest", "few"])
def test_equal_to_ppi_python(kind: str) -> None:
    """With two tiers and equal weights, value and normal interval of each level are those of ppi_py to 1e-6.

    On the draws of its own tests of a mean, which are normal labels beside predictions that are unrelated, shifted by
    2, or the label with noise of ten times its spread and a bias; on data shaped like its examples', which are yes/no
    labels beside probabilities (galaxies: 1,000 labels of 16,743; forest: 300 of 1,596); and on 30 labels of 100.
    """
    ppi_py = pytest.importorskip("ppi_py", reason="needs ppi-python")
    numpy = pytest.importorskip("numpy")
    rng = numpy.random.default_rng(0)
    n, others = {"galaxies": (1000, 15_743), "forest": (300, 1296), "few": (30, 70)}.get(kind, (1000, 10_000))
    if kind in {"galaxies", "forest", "few"}:
        truth = rng.random(n + others) < {"galaxies": 0.26, "forest": 0.15, "few": 0.5}[kind]
        labels, said = truth.astype(float), rng.beta(1.0 + 8.0 * truth, 9.0 - 8.0 * truth)
    else:
        labels = rng.normal(10.0 if kind == "noisy" else 0.0, 1.0, n + others)
        noise = rng.normal(0.0, 1.0, n + others)
        said = {"unrelated": noise - 2.0, "shifted": labels + 2.0, "noisy": labels + 10.0 * noise + 5.0}[kind]
    label, judged, rest = labels[:n], said[:n], said[n:]
    rows: list[Row] = [([float(f), float(y)], [1.0, 1.0]) for f, y in zip(judged, label, strict=True)]
    result = solve(total(rows + [([float(f)], [1.0]) for f in rest]))
    assert result.value == pytest.approx(float(ppi_py.ppi_mean_pointestimate(label, judged, rest)[0]), abs=1e-6)
    for alpha in (0.5, 0.2, 0.1, 0.05, 0.01):
        error = NormalDist().inv_cdf(1.0 - alpha / 2.0) * result.variance**0.5
        low, high = ppi_py.ppi_mean_ci(label, judged, rest, alpha=alpha)
        assert (result.value - error, result.value + error) == pytest.approx((float(low[0]), float(high[0])), abs=1e-6)


@given(st.integers(0, 2**31), st.integers(1, 59))
def test_parts_add_up(seed: int, cut: int) -> None:
    """Sums of two parts are the sums of the whole, in value and variance."""
    rows = traffic(random.Random(seed), 60, 10)
    rows = rows[::3] + rows[1::3] + rows[2::3]
    one, whole = solve(total(rows[:cut]) + total(rows[cut:])), solve(total(rows))
    assert (one.value, one.variance) == pytest.approx((whole.value, whole.variance))


def test_a_useless_judge_costs_nothing() -> None:
    """A judge that says the same of everything is not trusted: the estimate is that of labels alone.

    Nor is one that errs the other way turned round: tuning stays within [0, 1 + n / N].
    """
    rows = [([0.5, float(index % 3 == 0)], [1.0, 1.0]) for index in range(60)] + [([0.5], [1.0])] * 500
    result = corrected.correct(total(rows))
    assert solve(total(rows)).tuning == (0.0,)
    assert result.gain == pytest.approx(1.0)
    assert result.estimate.value == pytest.approx(1 / 3)
    rows = [([1.0 - index % 2, float(index % 2)], [1.0, 1.0]) for index in range(60)] + [([0.5], [1.0])] * 60
    assert solve(total(rows)).tuning == (0.0,)


def test_every_row_labelled() -> None:
    """Where every row has a label the judge has nothing to add."""
    rows = traffic(random.Random(1), 60, 60)
    result = solve(total(rows))
    assert result.tuning == (0.0,)
    assert result.value == pytest.approx(sum(row[0][1] for row in rows) / 60)
    assert result.variance == pytest.approx(result.variance_of_labels)


@pytest.mark.costly
def test_weights_take_out_a_biased_choice_of_labels() -> None:
    """People asked five times as often where the judge is unsure: the weighted estimate is right, on average."""
    rng, errors = random.Random(7), []
    for _ in range(100):
        rows, truth = [], 0.0
        for _ in range(600):
            quality = rng.random()
            said, label = round(quality), float(rng.random() < quality)
            truth += label / 600
            asked = 0.5 if 0.25 < quality < 0.75 else 0.1
            rows.append(([said, label], [0.5, asked]) if rng.random() < asked else ([float(said)], [0.5]))
        errors.append(solve(total(rows)).value - truth)
    mean = sum(errors) / len(errors)
    spread = (sum((each - mean) ** 2 for each in errors) / len(errors)) ** 0.5
    assert abs(mean) < 3 * spread / len(errors) ** 0.5


def three_tiers(rng: random.Random, size: int) -> list[Row]:
    """An embedded judge on all, a better LLM on a fifth, people on a fifth of those."""
    rows: list[Row] = []
    for _ in range(size):
        quality = rng.random()
        label = float(rng.random() < quality)
        embedded, llm = min(1.0, max(0.0, quality + rng.gauss(0, 0.4))), 0.15 + 0.8 * label
        scores, probabilities = [embedded, llm, label], [0.1, 0.2, 0.2]
        depth = 1 if rng.random() > 0.2 else 2 if rng.random() > 0.2 else 3
        rows.append((scores[:depth], probabilities[:depth]))
    return rows


@pytest.mark.costly
def test_three_tiers() -> None:
    """Each tier adds: three leave less variance than two, two less than labels alone; and the truth is covered."""
    rng, covered, values = random.Random(3), 0, []
    for _ in range(20):
        rows = three_tiers(rng, 1200)
        result = corrected.correct(total(rows, 3))
        without_embedded = solve(total([(row[0][1:], row[1][1:]) for row in rows if len(row[0]) > 1]))
        solution = solve(total(rows, 3))
        assert solution.variance < without_embedded.variance < without_embedded.variance_of_labels
        covered += result.estimate.low <= 0.5 <= result.estimate.high
        values.append(result.estimate.value)
    assert covered >= 17
    assert sum(values) / 20 == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize("labels", [0, 29])
def test_too_few_labels(labels: int) -> None:
    """Below thirty labels there is no estimate."""
    assert corrected.correct(total(traffic(random.Random(1), 100, labels))) is None


def test_rare_failures_are_left_to_labels() -> None:
    """With fewer than five labels on the smaller side the normal limit does not hold: labels alone, exact name."""
    rows: list[Row] = [([0.9, float(index >= corrected.MIN_MINORITY_LABELS - 1)], [1.0, 1.0]) for index in range(100)]
    result = corrected.correct(total(rows + [([0.9], [1.0])] * 900), unjudged_weight=250.0)
    assert result.gain == 1.0
    assert result.estimate.interval == "labels"
    assert result.estimate.value == pytest.approx(0.96)
    assert result.estimate.coverage == pytest.approx(0.8)
    assert (result.estimate.bound_low, result.estimate.bound_high) == pytest.approx((0.768, 0.968))


def test_a_judge_that_never_erred_may_err_next() -> None:
    """A hundred agreements do not prove a perfect judge: the interval keeps the width of the rule of three."""
    rows = [([float(index % 2)] * 2, [1.0, 1.0]) for index in range(100)] + [([1.0], [1.0]), ([0.0], [1.0])] * 5000
    result = corrected.correct(total(rows))
    assert result.estimate.value == pytest.approx(0.5)
    assert result.estimate.high - result.estimate.low > 2 * 1.9 * 3**0.5 / 100 * 0.99


def test_beyond_the_end() -> None:
    """An estimate that correction carries beyond 1 stays at 1, with an interval below it."""
    rows = [([float(index % 10 > 0), float(index % 10 > 0)], [1.0, 1.0]) for index in range(60)]
    result = corrected.correct(total(rows + [([1.0], [1.0])] * 600))
    assert result.estimate.low < result.estimate.value <= result.estimate.high <= 1.0


def without(name: str, labels: int, value: float | None) -> corrected.WithoutAnnotator:
    """The estimate without somebody; None where too little is left."""
    left = None if value is None else replace(ALL, value=value, low=value - 0.15, high=value + 0.15)
    return corrected.WithoutAnnotator(name, labels, left)


def test_the_interval_spans_those_without_each() -> None:
    """One of several is hostile: the interval without that one is inside; trusted people widen nothing."""
    shares = corrected.shares_of(
        ALL, 3, [without("bob", 20, 0.28), without("mallory", 50, 0.6), without("ann", 20, 0.27)]
    )
    assert [one.annotator for one in shares.without] == ["mallory", "ann", "bob"]
    assert (shares.count, shares.stands_on, round(shares.change or 0.0, 6)) == (3, None, 0.3)
    wide = corrected.widened(ALL, shares, (0.0, 1.0))
    assert (wide.value, round(wide.low, 6), round(wide.high, 6)) == (0.3, 0.12, 0.75)
    trusting = corrected.widened(ALL, shares, (0.0, 1.0), {"mallory"})
    assert (round(trusting.low, 6), round(trusting.high, 6)) == (0.12, 0.43)


def test_a_figure_that_stands_on_one_reaches_to_the_judge() -> None:
    """Unless that one is trusted, or the judge is not known."""
    shares = corrected.shares_of(ALL, 1, [without("ann", 90, None)])
    assert (shares.stands_on, shares.change) == ("ann", None)
    wide = corrected.widened(ALL, shares, (0.5, 0.7))
    assert (wide.low, wide.high) == (0.2, 0.7)
    assert corrected.widened(ALL, shares, None) == corrected.widened(ALL, shares, (0.5, 0.7), ["ann"]) == ALL


def test_a_label_keeps_what_it_replaces() -> None:
    """The same again keeps nothing; something else, or what was taken back, is kept, the newest few."""
    first = Label("k", "ann", 1.0, {Quantity.FAITHFULNESS: 0.0})
    assert replace(first, at=2.0).after(first).earlier == ()
    second = Label("k", "ann", 2.0, {Quantity.FAITHFULNESS: 1.0}).after(first)
    assert [record["scores"] for record in second.earlier] == [{"faithfulness": 0.0}]
    again = Label("k", "ann", 3.0, {Quantity.FAITHFULNESS: 1.0}).after(replace(second, revoked=2.5))
    assert [record.get("revoked") for record in again.earlier] == [None, 2.5]
    for turn in range(9):
        again = Label("k", "ann", 4.0, {}, note=str(turn)).after(again)
    assert len(again.earlier) == MAX_EARLIER
    whole = replace(again, owner="bob", without={"bob": 0.5}, revoked=5.0)
    assert from_record(whole.to_record()) == whole
