"""Agreement: figures by hand, beside other people's code, and refusals that say how many labels are missing."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr
from support.draws import draws

from ragwatch.model.evidence import ClaimVerdict
from ragwatch.model.quantities import Quantity
from ragwatch.statistics.estimators.interval import wilson
from ragwatch.statistics.labels import agreement
from ragwatch.statistics.labels.calibration import LabelledClaim, LabelledScore, report, traffic_agreement

MATRIX = [[50, 5, 2], [4, 30, 6], [1, 3, 19]]
F = Quantity.FAITHFULNESS
YES, NO = ClaimVerdict.SUPPORTED, ClaimVerdict.NOT_IN_CONTEXT


def test_kappa_is_that_of_statsmodels() -> None:
    """Value and 95 % interval over three classes."""
    inter_rater = pytest.importorskip("statsmodels.stats.inter_rater", reason="needs statsmodels")
    expected = inter_rater.cohens_kappa(MATRIX)
    result = agreement.kappa(MATRIX)
    assert (result.value, result.low, result.high) == pytest.approx(
        (expected.kappa, expected.kappa_low, expected.kappa_upp), abs=1e-6
    )


@pytest.mark.parametrize("matrix", [[[0, 0], [0, 0]], [[20, 0], [0, 0]]])
def test_no_kappa(matrix: list[list[int]]) -> None:
    """Without labels, or with one class on both sides, chance explains all: no kappa."""
    assert agreement.kappa(matrix) is None
    assert agreement.share(0, 0) is None


def test_figures_by_class() -> None:
    """Sensitivity and specificity of each class against the rest, with counts behind them; an empty class has none."""
    result = agreement.compare([[*row, 0] for row in MATRIX] + [[0, 0, 0, 0]])
    assert isinstance(result, agreement.Agreement)
    assert result.agreement.value == pytest.approx(99 / 120)
    assert [estimate and estimate.n for estimate in result.sensitivity] == [57, 40, 23, None]
    assert result.sensitivity[1] is not None
    assert result.sensitivity[1].value == pytest.approx(30 / 40)
    assert result.specificity[1] is not None
    assert result.specificity[1].value == pytest.approx(72 / 80)


@pytest.mark.parametrize("matrix", [[[0, 0], [0, 0]], [[5, 1], [1, 3]], [[29, 0], [0, 0]], [[30, 10], [10, 10]]])
def test_too_few_labels(matrix: list[list[int]]) -> None:
    """Below what the width needs nothing is said but how many more; with those added something is."""
    result = agreement.compare(matrix)
    assert isinstance(result, agreement.TooFewLabels)
    assert result.labels == sum(map(sum, matrix))
    assert result.missing > 0
    scale = (result.labels + result.missing) / result.labels if result.labels else 0.0
    if scale:
        more = [[round(cell * scale + 0.5) for cell in row] for row in matrix]
        assert isinstance(agreement.compare(more), agreement.Agreement)


@given(st.floats(0.02, 0.3), st.floats(0, 1))
def test_labels_needed_is_the_least_number(half_width: float, value: float) -> None:
    """With so many labels the interval is narrow enough, with one less it is not."""

    def half(n: int) -> float:
        low, high = wilson(value, n, 1.959963984540054)
        return (high - low) / 2

    n = agreement.labels_needed(half_width, value)
    assert half(n) <= half_width
    assert n == 1 or half(n - 1) > half_width


def test_reliability() -> None:
    """Bins in order, the score 1 in the last, empty ones left out; the error is the distance, by rows."""
    curve = agreement.reliability([(1.0, True)] * 3 + [(0.95, False)] + [(0.05, False)] * 4)
    assert [point.said.n for point in curve] == [4, 4]
    assert curve[1].mean_score == pytest.approx(0.9875)
    assert agreement.calibration_error(curve) == pytest.approx((0.05 * 4 + 0.2375 * 4) / 8)
    assert agreement.reliability([]) == ()
    assert agreement.calibration_error(()) is None


@pytest.mark.parametrize(("one", "other"), [(0, 0), (3, 8), (40, 20), (700, 640)])
def test_mcnemar_is_the_binomial_test(one: int, other: int) -> None:
    """The p-value is scipy's exact one."""
    stats = pytest.importorskip("scipy.stats")
    expected = stats.binomtest(one, one + other, 0.5).pvalue if one + other else 1.0
    assert agreement.mcnemar(one, other) == agreement.mcnemar(other, one) == pytest.approx(expected)


def test_flips() -> None:
    """A judge that became harsher: flips, their balance and their p; of no rows nothing."""
    result = agreement.flips({(True, True): 50, (True, False): 12, (False, False): 30})
    assert (result.rate.value, result.net) == pytest.approx((12 / 92, -12 / 92))
    assert result.p < 0.001
    assert agreement.flips({}) is None


def found(rows: list[agreement.LengthScore], minimum: int = 4) -> agreement.LengthPreference:
    """The preference of a judge, of which there must be enough labels."""
    result = agreement.length_preference(rows, minimum=minimum)
    assert isinstance(result, agreement.LengthPreference)
    return result


@settings(max_examples=draws(25), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(1, 9)), min_size=6, max_size=40))
def test_one_label_gives_spearmans_correlation(pairs: list[tuple[int, int]]) -> None:
    """With equal labels it is Spearman's rho, ties included, as scipy computes it, inside its interval."""
    rows = [agreement.LengthScore(score / 6, 1.0, chars) for score, chars in pairs]
    if len({score for score, _ in pairs}) < 2 or len({chars for _, chars in pairs}) < 2:
        assert isinstance(agreement.length_preference(rows, minimum=4), agreement.TooFewLabels)
        return
    correlation = found(rows).correlation
    assert correlation.value == pytest.approx(spearmanr(*zip(*pairs, strict=True)).statistic, abs=1e-9)
    assert -1.0 <= correlation.low <= correlation.value + 1e-9
    assert correlation.value - 1e-9 <= correlation.high <= 1.0


def test_what_people_see_as_better_is_no_preference() -> None:
    """Long answers that people score higher too leave no correlation: it is taken at equal label."""
    random = Random(5)
    rows = []
    for good in (0.0, 0.5, 1.0) * 60:
        judge = min(1.0, max(0.0, good + random.gauss(0.0, 0.1)))
        rows.append(agreement.LengthScore(judge, good, int(100 + 400 * good + random.random() * 90)))
    assert spearmanr([row.judge for row in rows], [row.chars for row in rows]).statistic > 0.7
    result = found(rows)
    assert (result.strata, result.answers) == (3, 180)
    assert abs(result.correlation.value) < 0.2
    assert not result.matters


@pytest.mark.parametrize(("sign", "matters"), [(1.0, True), (-1.0, True), (0.0, False)])
def test_a_preference_is_reported_in_either_direction(sign: float, matters: bool) -> None:  # noqa: FBT001
    """A judge that adds or takes score by length is named; one that scores at random is not."""
    random = Random(7)
    rows = [
        agreement.LengthScore(sign * chars / 500 + random.random() / 2, 1.0, chars)
        for chars in [random.randrange(10, 500) for _ in range(80)]
    ]
    assert found(rows).matters is matters


def test_equal_scores_say_nothing() -> None:
    """A label at which the judge gave one score, or answers have one length, adds no answer to the figure."""
    rows = [agreement.LengthScore(1.0, 1.0, chars) for chars in range(40)]
    rows += [agreement.LengthScore(chars / 9, 0.0, 7) for chars in range(9)]
    assert agreement.length_preference(rows) == agreement.TooFewLabels(0, 30)
    assert agreement.length_preference([]) == agreement.TooFewLabels(0, 30)


def pairs(good: int, bad: int) -> list[LabelledScore]:
    """Answers on which judge and people agree, and on which they do not."""
    return [LabelledScore(f"g{index}", 1.0, 1.0, 0.1) for index in range(good)] + [
        LabelledScore(f"b{index}", 0.5, 1.0 if index % 2 else 0.0, 0.4) for index in range(bad)
    ]


def test_nothing_is_concluded_from_few() -> None:
    """Twenty labels are too few: how many more is said, and no figure is given."""
    result = report({F: pairs(15, 5)}, [], [])
    labelled = result.quantities[F].labelled
    assert isinstance(labelled, agreement.TooFewLabels)
    assert (result.conclusive, result.quantities[F].traffic, result.people, result.claims) == (False, None, None, None)
    assert result.missing == labelled.missing > 30


@pytest.mark.parametrize(
    ("labels", "missing", "uncalibrated"), [(0, 50, 50), (1, 49, 49), (20, 30, 30), (36, 0, 14), (50, 0, 0), (60, 0, 0)]
)
def test_people_are_asked_for_as_many_labels_as_a_level_needs(labels: int, missing: int, uncalibrated: int) -> None:
    """Where judge and people agree, the number is that of a calibrated level."""
    result = report({F: pairs(labels, 0)}, [], [])
    assert (result.missing, result.uncalibrated) == (missing, uncalibrated)


def test_what_enough_labels_tell() -> None:
    """Agreement on the labelled ones is a share; in traffic it is weighted; the worst misses come first."""
    claims = (
        [LabelledClaim(YES, 0.9, YES)] * 90 + [LabelledClaim(YES, 0.8, NO)] * 10 + [LabelledClaim(NO, None, NO)] * 100
    )
    result = report({F: pairs(80, 40), Quantity.CONTRADICTION: []}, claims, [(1.0, 1.0)] * 70 + [(1.0, 0.0)] * 5)
    (only,) = result.quantities.values()
    assert isinstance(only.labelled, agreement.Agreement)
    assert only.labels == 120
    assert only.labelled.agreement.value == pytest.approx(80 / 120)
    assert only.traffic.value == pytest.approx(800 / 900)
    assert [pair.difference for pair in only.worst] == [0.5] * 10
    assert result.conclusive
    assert result.missing == 0
    assert isinstance(result.claims.labelled, agreement.Agreement)
    assert result.claims.error == pytest.approx(0.17)  # of ten, nine were said to be .9 and are 1, one .8 and is 0
    assert isinstance(result.people, agreement.Agreement)


def test_all_labels_count_where_few_have_a_probability() -> None:
    """Labels from elsewhere say something of the judge too."""
    known = [LabelledScore("a", 1.0, 1.0, 0.1)] + [LabelledScore(str(index), 0.0, 1.0) for index in range(9)]
    result = traffic_agreement(known, minimum=5)
    assert result.value == pytest.approx(0.1)
    assert result.n == 10
