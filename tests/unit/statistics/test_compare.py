"""Two variants beside each other: what their difference shows, and when it shows nothing."""

import random
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwatch.statistics.compare import (
    MIN_QUESTIONS,
    Conclusion,
    PairedScore,
    WeightedScore,
    by_category,
    change,
    key_of,
    match_keys,
    mean,
    offset,
    paired,
    per_question,
    unpaired,
)
from ragwatch.statistics.estimators.interval import CountedInterval, Interval

SCORES = st.floats(0.0, 1.0)
TRIALS = pytest.mark.parametrize(
    ("trials", "least"), [(150, 0.92), pytest.param(2000, 0.935, marks=pytest.mark.slow)], ids=["some", "many"]
)
RATIOS = st.sampled_from([0.0, 0.25, 0.5, 1.0])
PAIRS = st.lists(st.tuples(RATIOS, RATIOS), min_size=1, max_size=60)


@given(st.lists(st.tuples(SCORES, SCORES), min_size=1, max_size=60))
def test_the_interval_holds_the_figure_and_the_games_add_up(scores: list[tuple[float, float]]) -> None:
    """-1 <= low <= B - A <= high <= 1; wins, ties and losses are all questions; swapping the sides mirrors it."""
    result = paired([PairedScore(a, b) for a, b in scores])
    mirrored = paired([PairedScore(b, a) for a, b in scores])
    assert -1.0 <= result.change.low <= result.change.value <= result.change.high <= 1.0
    assert (result.wins or 0) + (result.ties or 0) + (result.losses or 0) == result.n == len(scores)
    assert (result.wins, result.losses) == (mirrored.losses, mirrored.wins)
    assert result.change.low == pytest.approx(-mirrored.change.high)


def test_few_differences_among_many_ties_prove_nothing() -> None:
    """Two wins of 472 are noise, though plain t would leave 0 outside; twenty are not."""
    two = paired([PairedScore(0.0, 1.0)] * 2 + [PairedScore(1.0, 1.0)] * 470)
    twenty = paired([PairedScore(0.0, 1.0)] * 20 + [PairedScore(1.0, 1.0)] * 452)
    assert (two.conclusion, two.warning) == (Conclusion.NOISE, "the interval contains 0")
    assert (twenty.conclusion, twenty.warning) == (Conclusion.BETTER, None)


@pytest.mark.costly
@TRIALS
@pytest.mark.parametrize(("rise", "fall", "n"), [(0.1, 0.1, 40), (0.05, 0.02, 100), (0.3, 0.1, 60), (0.01, 0.0, 472)])
def test_the_interval_covers_as_it_says(rise: float, fall: float, n: int, trials: int, least: float) -> None:
    """At 95 % the truth is inside in 93.5 % of 2000 seeded trials at least, with few differences as well."""
    rng = random.Random(7)
    inside = 0
    for _ in range(trials):
        draws = [rng.random() for _ in range(n)]
        pairs = [
            PairedScore(0.5, 1.0) if x < rise else PairedScore(0.5, 0.0) if x > 1 - fall else PairedScore(0.5, 0.5)
            for x in draws
        ]
        result = paired(pairs)
        inside += result.change.low <= 0.5 * (rise - fall) <= result.change.high
    assert inside / trials >= least


def test_small_is_good_for_some() -> None:
    """A falling rate of contradictions is a win for B."""
    result = paired([PairedScore(1.0, 0.0)] * MIN_QUESTIONS, low_is_good=True)
    assert (result.wins, result.losses, result.conclusion) == (MIN_QUESTIONS, 0, Conclusion.BETTER)
    assert result.change.value == -1.0
    rising = unpaired([WeightedScore(0.0)] * 50, [WeightedScore(1.0)] * 50, low_is_good=True)
    assert rising.conclusion is Conclusion.WORSE


def test_too_few_questions_are_noise_whatever_they_say() -> None:
    """One question fewer than enough, all won: still only a hint, and it says so."""
    result = paired([PairedScore(0.0, 1.0)] * (MIN_QUESTIONS - 1))
    apart = unpaired([WeightedScore(0.0)] * 5, [WeightedScore(1.0)] * 500)
    assert result.conclusion is apart.conclusion is Conclusion.NOISE
    assert result.warning == "only 29 questions, fewer than 30"
    assert apart.warning == "only 5 scores on one side, fewer than 30"


def test_nothing_is_unknown() -> None:
    """No pair, no score: no figure."""
    assert paired([]) is None
    assert unpaired([], [WeightedScore(1.0)]) is None
    assert unpaired([WeightedScore(1.0)], []) is None
    assert mean([]) is None


def test_pairing_is_sharper() -> None:
    """Where questions differ in how hard they are, the paired interval is narrower than the one of the means."""
    hard = [(0.0, 0.1), (0.3, 0.4), (0.6, 0.7), (0.9, 1.0)] * 20
    together = paired([PairedScore(a, b) for a, b in hard])
    apart = unpaired([WeightedScore(a) for a, _ in hard], [WeightedScore(b) for _, b in hard])
    assert together.change.value == pytest.approx(apart.change.value)
    assert together.change.high - together.change.low < 0.5 * (apart.change.high - apart.change.low)
    assert (apart.wins, apart.ties, apart.losses) == (None, None, None)


def test_a_step_between_figures_that_do_not_move_is_as_wide_as_both() -> None:
    """Newcombe's interval: the hypotenuse of both halves."""
    assert change(Interval(0.5, 0.2, 0.8), Interval(0.5, 0.1, 0.9)) == pytest.approx((0.0, -0.5, 0.5))


def test_categories_are_told_apart_only_where_there_are_several() -> None:
    """One category is the whole."""
    assert by_category([PairedScore(0, 1, "x"), PairedScore(1, 1, "x")]) == {}
    assert list(by_category([PairedScore(0, 1, "y"), PairedScore(1, 1, "x")])) == ["x", "y"]


@pytest.mark.parametrize(
    ("shared", "only_a", "only_b", "enough"),
    [(0, 5, 5, False), (1, 0, 0, False), (2, 0, 0, True), (2, 3, 9, False), (3, 3, 90, True)],
)
def test_a_few_shared_questions_are_no_pair_of_logs(shared: int, only_a: int, only_b: int, *, enough: bool) -> None:
    """Half of the smaller side must be shared."""
    both = [f"q{number}" for number in range(shared)]
    sides = ([*both, *(f"{name}{number}" for number in range(more))] for name, more in (("a", only_a), ("b", only_b)))
    result = match_keys(*sides)
    assert (result.keys, result.only_a, result.only_b, result.enough) == (tuple(both), only_a, only_b, enough)


def test_a_question_is_itself_however_it_is_written() -> None:
    """Case and white space do not matter; a log without questions is paired by id."""
    assert len({key_of(f"{a}how{b}so?", "x") for a, b in product(("", " ", "\n"), (" ", "\t ", "  "))}) == 1
    assert key_of("", "r1") == key_of(None, "r1") != key_of(None, "r2")
    assert per_question([("a", None, 1.0)]) == {}


def test_unpaired_means_are_those_of_all_traffic() -> None:
    """An answer drawn with probability 1/10 stands for ten; a question asked twice stands for two answers."""
    a = per_question([("x", 1.0, 10.0), ("y", 0.0, 1.0), ("y", 1.0, 1.0)])
    result = unpaired(list(a.values()), [WeightedScore(0.5)] * 40)
    assert result.a == pytest.approx(11 / 12)
    assert result.n == 2


@pytest.mark.costly
@TRIALS
@pytest.mark.parametrize(("good", "better"), [(0.8, 0.9), (0.95, 0.95)])
def test_the_unpaired_interval_covers_as_it_says(good: float, better: float, trials: int, least: float) -> None:
    """Questions asked once to five times, two routes drawn at 1 and 1/5: the truth is inside as often as stated."""
    rng = random.Random(11)

    def side(rate: float) -> tuple[list[WeightedScore], float]:
        """What is drawn of one variant's traffic, and its expected mean."""
        answers = []
        for number in range(300):
            route = number % 2
            right = float(rng.random() < rate - 0.1 * route)  # one question is answered alike each time
            probability = 0.2 if route else 1.0
            answers += [
                (str(number), right, 1 / probability) for _ in range(1 + number % 5) if rng.random() < probability
            ]
        return list(per_question(answers).values()), rate - 0.05

    inside = 0
    for _ in range(trials // 2):
        (a, before), (b, after) = side(good), side(better)
        result = unpaired(a, b)
        inside += result.change.low <= after - before <= result.change.high
    assert inside / (trials // 2) >= least


@given(PAIRS)
def test_turned_around_it_changes_its_sign(pairs: list[tuple[float, float]]) -> None:
    """After minus before is the opposite of before minus after; the value is the mean, inside its interval."""
    change, turned = offset(pairs), offset([(after, before) for before, after in pairs])
    assert turned == CountedInterval(-change.value, -change.high, -change.low, change.n)
    assert abs(change.value - sum(after - before for before, after in pairs) / len(pairs)) < 1e-9
    assert -1.0 <= change.low <= change.value <= change.high <= 1.0


@pytest.mark.costly
def test_the_interval_holds_where_few_answers_differ() -> None:
    """Five in a hundred answers lose half their score, one gains all: the interval misses in at most 5 % of runs."""
    rng, missed = random.Random(4), 0
    for _ in range(400):
        draws = [rng.random() for _ in range(100)]
        change = offset([(0.5, 0.0) if each < 0.05 else (0.0, 1.0) if each < 0.06 else (1.0, 1.0) for each in draws])
        missed += not change.low <= -0.015 <= change.high
    assert missed <= 20


def test_no_difference_leaves_little_doubt() -> None:
    """Two hundred answers alike: the offset is within three hundredths of nothing."""
    change = offset([(0.7, 0.7)] * 200)
    assert (change.value, change.n) == (0.0, 200)
    assert -0.03 < change.low < 0.0 < change.high < 0.03
