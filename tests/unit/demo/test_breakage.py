"""Faults, their schedule and their messages."""

from __future__ import annotations

import pytest

from ragwatch.demo.breakage import Breakage, Schedule, vanishes
from ragwatch.demo.corpus import MODULES, read_corpus
from ragwatch.demo.questions import questions


def test_breakages_follow_one_another_with_health_between() -> None:
    """Health, then each once with an equal healthy time after it, then health for good."""
    schedule = Schedule(30, 10)
    at = [schedule.at(second + 0.5) for second in range(0, 120, 10)]
    assert at == [
        None,
        None,
        None,
        Breakage.VANISH,
        None,
        Breakage.INVENT,
        None,
        Breakage.IGNORE_TOP,
        None,
        None,
        None,
        None,
    ]


def test_no_fault_is_left_out_on_a_busy_machine() -> None:
    """One that begins late lasts as long as it should, and delays those after it."""
    schedule = Schedule(30, 10)
    at = [schedule.at(second) for second in (100.0, 109.9, 110.0, 200.0, 209.9, 500.0, 501.0, 510.0, 600.0)]
    vanish, invent, ignore = Breakage
    assert at == [vanish, vanish, None, invent, invent, None, None, ignore, None]


@pytest.mark.costly
def test_most_modules_that_are_asked_for_vanish() -> None:
    """Nine in ten or so, always the same ones."""
    by_title = {passage.title: passage.module for passage in read_corpus()}
    asked = {by_title[question.about] for question in questions(read_corpus()) if question.about}
    gone = [module for module in asked if vanishes(module)]
    assert 0.8 < len(gone) / len(asked) < 0.99
    assert [vanishes(module) for module in MODULES] == [vanishes(module) for module in MODULES]
