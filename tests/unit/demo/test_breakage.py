"""Faults and their schedule."""

from __future__ import annotations

from ragwatch.demo import Schedule
from ragwatch.demo.service import Breakage


def test_no_fault_is_left_out_on_a_busy_machine() -> None:
    """One that begins late lasts as long as it should, and delays those after it."""
    schedule = Schedule(30, 10)
    at = [schedule.at(second) for second in (100.0, 109.9, 110.0, 200.0, 209.9, 500.0, 501.0, 510.0, 600.0)]
    vanish, invent, ignore = Breakage
    assert at == [vanish, vanish, None, invent, invent, None, None, ignore, None]
