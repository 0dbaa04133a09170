"""The measured error of judges belongs to the judges that ship."""

from __future__ import annotations

import time

import pytest

from ragwatch.judges import KINDS
from ragwatch.judges.error_rates import LEXICAL, LOCAL, measured_rates, rates
from ragwatch.pipeline.sampling_control import InMemoryBudget
from ragwatch.ports import JudgeContext
from ragwatch.telemetry import Telemetry


@pytest.mark.parametrize("name", sorted(measured_rates()))
def test_rates_are_of_the_judge_that_ships(name: str) -> None:
    """A change of what a judge reads is measured again: run `python training/levels.py --judge NAME`."""
    kind = KINDS[name]
    judge = kind.build(kind.Options(), name=name, context=JudgeContext(Telemetry(), InMemoryBudget(), time.time))
    assert judge.version == measured_rates()[name].version


def test_a_local_judge_without_its_model_errs_as_words_do() -> None:
    """Its version says that it has read words alone; that of one with its model begins with the model."""
    by_words, by_model = (measured_rates()[name].version for name in (LEXICAL, LOCAL))
    assert rates(LOCAL, by_words) == rates(LEXICAL, by_words)
    assert rates(LOCAL, by_model) != rates(LEXICAL, by_words)
