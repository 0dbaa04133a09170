"""Fusion and language: what the model's numbers mean, and which texts it is asked about."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwatch.judges.local.cross_encoder import is_english
from ragwatch.judges.local.fusion import FittedCurve, ModelSignals, interpolate, numbers

KNOTS = ((-2.0, 0.1), (0.0, 0.4), (1.0, 0.4), (3.0, 0.9))
WEIGHTS = (1.0, 2.0, -3.0, 0.5, 0.25, -0.5, 0.0, -1.0)
NUMBERS = st.floats(-1e6, 1e6)


def test_between_knots_is_a_line_and_beyond_them_it_is_level() -> None:
    """Points on, between and outside the knots."""
    found = [interpolate(KNOTS, x) for x in (-99.0, -2.0, -1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 99.0)]
    assert found == pytest.approx([0.1, 0.1, 0.25, 0.4, 0.4, 0.4, 0.65, 0.9, 0.9])
    assert interpolate(((0.0, 0.3),), -1.0) == interpolate(((0.0, 0.3),), 1.0) == 0.3


@given(NUMBERS, st.builds(ModelSignals, NUMBERS, NUMBERS, NUMBERS, NUMBERS))
def test_no_claim_is_certain(lexical: float, signals: ModelSignals) -> None:
    """Whatever the numbers, the probability is between the first and the last knot."""
    assert 0.1 <= FittedCurve(0.0, WEIGHTS, KNOTS).probability(numbers(lexical, signals, 1.0)) <= 0.9


@given(NUMBERS, NUMBERS)
def test_more_support_by_words_is_never_less_support(one: float, other: float) -> None:
    """With a positive weight the probability rises with the words' figure."""
    curve, still = FittedCurve(0.0, (1.0, *[0.0] * 7), KNOTS), ModelSignals(0.0, 0.0, 0.0, 0.0)
    low, high = sorted((one, other))
    assert curve.probability(numbers(low, still, 0.0)) <= curve.probability(numbers(high, still, 0.0))


@pytest.mark.parametrize(
    ("bias", "weights", "knots"),
    [
        (0.0, WEIGHTS[:7], KNOTS),
        (math.nan, WEIGHTS, KNOTS),
        (0.0, (1.0, math.inf, *[0.0] * 6), KNOTS),
        (0.0, WEIGHTS, ()),
        (0.0, WEIGHTS, ((0.0, 0.4), (0.0, 0.5))),
        (0.0, WEIGHTS, ((0.0, 0.4), (-1.0, 0.5))),
        (0.0, WEIGHTS, ((0.0, 0.4), (1.0, 0.3))),
        (0.0, WEIGHTS, ((0.0, 0.0), (1.0, 0.3))),
        (0.0, WEIGHTS, ((0.0, 0.4), (1.0, 1.0))),
        (0.0, WEIGHTS, ((math.inf, 0.4),)),
    ],
    ids=["seven weights", "nan", "inf", "no knot", "same knot", "falls back", "p falls", "p = 0", "p = 1", "inf knot"],
)
def test_what_is_no_curve_is_refused(
    bias: float, weights: tuple[float, ...], knots: tuple[tuple[float, float], ...]
) -> None:
    """A damaged or careless table is found when it is loaded, not when it is used."""
    with pytest.raises(ValueError, match=r"knot|weight"):
        FittedCurve(bias, weights, knots)


@pytest.mark.parametrize(
    "text",
    [
        "The museum opens at nine and closes at five, and there is no charge for children.",
        "Tea is green.",  # too short to tell
        "$ 1,200.00",
        "",
        "The Ｖｏｒｔｅｘ kettle boils one litre of water in ninety seconds, as it says on the box.",
        "Beyoncé and Dvořák met in São Paulo, where they talked about the music of Händel.",
    ],
)
def test_english_is_read(text: str) -> None:
    """Also with names from elsewhere, in other typography, and where there is too little to tell."""
    assert is_english(text)


@pytest.mark.parametrize(
    "text",
    [
        "Die Hauptstadt von Deutschland ist Berlin. Der Umzug der Regierung dauerte mehrere Monate.",
        "La capitale de la France est Paris. La ville est traversée par la Seine et compte deux millions d'habitants.",
        "De hoofdstad van Nederland is Amsterdam, maar de regering zetelt in Den Haag, waar ook het gerechtshof is.",
        "Le musée ouvre à neuf heures en été, et ferme à cinq heures, sauf à Noël.",
        "La capital de España es Madrid, que cuenta con más de tres millones de habitantes y es la sede del gobierno.",
        "Stolicą Polski jest Warszawa, miasto położone nad Wisłą, liczące prawie dwa miliony mieszkańców.",
        "Ibu kota Indonesia adalah Jakarta, sebuah kota besar di pantai barat laut pulau Jawa.",
        "Столица России Москва.",
        "中国的首都是北京。北京位于华北平原，人口超过两千万。",
        "عاصمة مصر هي القاهرة",
        "הבירה היא ירושלים",
        "กรุงเทพมหานครเป็นเมืองหลวง",
        "name price weight height width depth colour maker model year stock shelf",  # words, but nobody's sentence
    ],
)
def test_what_is_not_english_is_left_to_words(text: str) -> None:
    """Other scripts by their letters, other languages and tables by what they lack."""
    assert not is_english(text)


@given(NUMBERS, st.floats(0.0, 12.0))
def test_what_is_missing_is_taken_from_the_logit(lexical: float, less: float) -> None:
    """It counts as so much less by words, whose weight is 1, and never raises the probability."""
    curve, still = FittedCurve(0.0, (1.0, *[0.0] * 7), KNOTS), ModelSignals(0.0, 0.0, 0.0, 0.0)
    whole = curve.probability(numbers(lexical, still, 0.0))
    taken = curve.probability(numbers(lexical, still, 0.0), less)
    assert taken == pytest.approx(curve.probability(numbers(lexical - less, still, 0.0)))
    assert taken <= whole
