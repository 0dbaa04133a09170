"""Stored runs of a suite, read back and compared."""

from __future__ import annotations

import pytest
from support.canaries import a_canary, a_failure, a_reply, a_report

from ragwatch.core.canary.history import changes, report_of, to_record
from ragwatch.core.canary.report import SuiteReport

CANARY = a_canary("a")
GOOD, LOST = a_report(CANARY, a_reply("a", "b")), a_report(CANARY, a_reply("x", "b"))
DOWN = a_report(CANARY, a_failure())


def runs(*reports: object) -> list[SuiteReport]:
    """One run for each report, the newest first."""
    return [SuiteReport("docs", (5,), (report,)) for report in reports]  # type: ignore[arg-type]


def test_a_stored_run_comes_back() -> None:
    """What went into the store is what comes out."""
    (run,) = runs(LOST)
    assert report_of("docs", {"ks": [5], "reports": [to_record(LOST)]}) == run


@pytest.mark.parametrize(
    "body",
    [{}, {"ks": [], "reports": []}, {"ks": [5], "reports": [{}]}, {"ks": 5, "reports": []}, {"ks": [5], "reports": 1}],
)
def test_a_run_of_another_version_is_unknown(body: dict[str, object]) -> None:
    """It is passed over instead of breaking the page."""
    assert report_of("docs", body) is None


def test_each_canary_is_held_against_its_own_last_success() -> None:
    """Failed and degraded runs in between are passed over; without any success nothing is said."""
    differences = changes(runs(LOST, DOWN, LOST, GOOD))
    assert [move.label for move in differences["refunds"].vanished] == ["a"]
    assert changes(runs(LOST, DOWN, LOST)) == {}
    assert changes(runs(DOWN, GOOD)) == {}
    assert changes([]) == {}
