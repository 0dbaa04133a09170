"""Root: a crossing is found as exactly as by halving, whatever the curve looks like, and with fewer looks if smooth."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwatch.core.estimators.score import WIDTH, crossing


def looked(height: Callable[[float], float], start: float) -> tuple[float, list[float]]:
    """What was found, and the places that were looked at."""
    places: list[float] = []

    def noted(place: float) -> float:
        places.append(place)
        return height(place)

    return crossing(noted, start), places


CURVES: dict[str, Callable[[float], float]] = {
    "a line": lambda away: -away,
    "steep": lambda away: -math.expm1(30.0 * away),
    "flat at the crossing": lambda away: -(away**3),
    "a step": lambda away: 1.0 if away < 0.0 else -26.0,
    "a small step": lambda away: 1e-9 if away < 0.0 else -26.0,
    "a step, then a slope": lambda away: 3.0 if away < 0.0 else -1e-9 - away,
}


@pytest.mark.parametrize("curve", CURVES)
@given(st.floats(0.001, 0.999))
def test_the_crossing_is_behind_it(curve: str, place: float) -> None:
    """It is at most WIDTH behind what is found, no place is looked at outside (0, 1), and a step costs little more."""
    result, places = looked(lambda x: CURVES[curve](x - place), CURVES[curve](-place))
    assert result - 1e-15 <= place <= result + WIDTH + 1e-15
    assert all(0.0 < each < 1.0 for each in places)
    assert len(places) <= 3 * 32


@given(st.floats(0.01, 0.99))
def test_smooth_curves_take_few_looks(place: float) -> None:
    """On a smooth curve, half of what halving takes."""
    _, places = looked(lambda x: math.tanh(2.0 * (place - x)), math.tanh(2.0 * place))
    assert len(places) <= 16


@pytest.mark.parametrize(("height", "end"), [(1.0, 1.0), (-1.0, 0.0)])
def test_no_crossing_inside(height: float, end: float) -> None:
    """A curve that stays on one side crosses at an end."""
    assert crossing(lambda _: height, 1.0) == pytest.approx(end, abs=2 * WIDTH)
