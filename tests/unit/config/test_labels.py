"""Labels in the configuration."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from ragwatch.config.judge_options import JudgeOptions
from ragwatch.config.labels import LabelsOptions, second_of
from ragwatch.model.quantities import Quantity

F = Quantity.FAITHFULNESS


def test_the_example() -> None:
    """The section as the design shows it."""
    options = LabelsOptions.model_validate({"fresh": "30d", "minimum": 30, "share_unsure": 0.5})
    assert options == LabelsOptions()
    assert options.fresh == 30 * 86400.0


@pytest.mark.parametrize("wrong", [{"minimum": 3}, {"share_unsure": 1.0}, {"fresh": 0}, {"double": "yes"}, {"x": 1}])
def test_what_cannot_be_is_refused(wrong: dict[str, object]) -> None:
    """Nobody may have no chance of being drawn, and three labels conclude nothing."""
    with pytest.raises(ValidationError):
        LabelsOptions.model_validate(wrong)


def test_one_judge_is_a_chain() -> None:
    """Without a second judge, people correct the first."""
    rules = LabelsOptions().rules([JudgeOptions(name="embedded")], {"embedded": "1"}, 0.9)
    assert (rules.chain, rules.judges, rules.confidence) == (("embedded",), {"embedded": "1"}, 0.9)
    assert rules.readers(F) == ("embedded",)


def test_a_judge_that_follows_makes_a_chain_of_two() -> None:
    """It reads a known part of what the first has read, of the quantities that it is asked for."""
    places = [JudgeOptions(name="a", probability=0.5), JudgeOptions(name="b", follows="a", quantities=(F,))]
    rules = LabelsOptions().rules(places, {"a": "1", "b": "2"}, 0.95)
    assert (rules.readers(F), rules.readers(Quantity.CONTEXT_USE)) == (("a", "b"), ("a",))
    assert LabelsOptions().rules(places, {"a": "1"}, 0.95).chain == ("a",)


def test_a_judge_that_draws_for_itself() -> None:
    """It reads a part of what the first has read only where that one reads everything."""
    other = JudgeOptions(name="b", probability=0.1)
    assert second_of([JudgeOptions(name="a"), other]) == other
    assert second_of([JudgeOptions(name="a", probability=0.5), other]) is None
    assert second_of([JudgeOptions(name="a"), JudgeOptions(name="b", follows="c")]) is None
