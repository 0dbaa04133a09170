"""Canary history: runs of a suite as a store keeps them, read back, and what changed for each canary since it was well.

The body of a run holds `ks` and `reports` (see `canary_record`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ragwatch.core.canary.diff import CanaryDiff, diff
from ragwatch.core.canary.record import from_record
from ragwatch.core.canary.suite import SuiteReport


def report_of(suite: str, body: Mapping[str, Any]) -> SuiteReport | None:
    """The report in the body of a stored run; None where it was written by a version that kept other things."""
    try:
        return SuiteReport(suite, tuple(body["ks"]), tuple(from_record(each) for each in body["reports"]))
    except (KeyError, ValueError, TypeError, IndexError):
        return None


def changes(runs: Sequence[SuiteReport]) -> dict[str, CanaryDiff]:
    """By canary: what is different in the newest run from the last earlier one in which that canary succeeded.

    Args:
        runs: The newest first. A canary that never succeeded in them, or had no usable reply, is left out.
    """
    if not runs:
        return {}
    latest, *earlier = runs
    good = [{then.canary.name: then for then in run.reports if then.success} for run in earlier]
    found: dict[str, CanaryDiff] = {}
    for now in latest.reports:
        before = next((run[now.canary.name] for run in good if now.canary.name in run), None)
        change = None if before is None else diff(before, now)
        if change is not None:
            found[now.canary.name] = change
    return found
