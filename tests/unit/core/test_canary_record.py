"""Records: a report survives the store."""

from __future__ import annotations

import json
from difflib import SequenceMatcher

import pytest
from support.canaries import a_canary, a_failure, a_reply, a_report, a_text

from ragwatch.core.canary.definition import MAX_STORED_CHARS, Category, Expected, Grade, Hit, Retrieved
from ragwatch.core.canary.history import diff, from_record, to_record
from ragwatch.core.canary.report import CanaryReport

FULL = a_canary(
    Expected("a", "Text of a.", Grade.HIGHLY_RELEVANT),
    "b",
    category=Category.COMPARATIVE,
    min_relevance_score=0.3,
    min_recall=0.5,
    reference="A good answer.",
    tags=("money",),
)


def test_long_passages_are_cut() -> None:
    """A store of reports must not become a copy of the corpus; ids, ranks and scores stay, and nothing looks new."""
    whole = a_report(FULL, Retrieved((Hit("a", "x" * 9000, 0.9), Hit(None, "y" * 9000, 0.8))))
    text = a_report(a_canary(category=Category.NEGATIVE), Retrieved((Hit(None, "y" * 9000, 0.8),)))
    for report in (whole, text):
        again = from_record(to_record(report))
        assert {len(hit.text or "") for hit in again.retrieved.hits} == {MAX_STORED_CHARS}
        change = diff(again, report)
        assert change is None or change.newcomers == ()
    assert diff(from_record(to_record(text)), text) is not None


@pytest.mark.parametrize(
    "report",
    [
        a_report(FULL, a_reply("x", "a", answer="An answer.", seconds=0.25)),
        a_report(FULL, a_reply("a", direction=None)),
        a_report(FULL, a_failure("redirect")),
        a_report(a_canary(category=Category.NEGATIVE), a_reply("x", scores=[None], direction="distance")),
        a_report(
            a_canary(a_text("Cats.")),
            Retrieved((Hit(None, "Cats!"),)),
            similar=lambda one, other: SequenceMatcher(None, one, other).ratio(),
        ),
    ],
    ids=["found", "no_scores", "failed", "negative", "text"],
)
def test_round_trip_through_json(report: CanaryReport) -> None:
    """What comes out is what went in, ranks and reasons included."""
    again = from_record(json.loads(json.dumps(to_record(report))))
    assert again == report
    assert (again.ranks, again.reason) == (report.ranks, report.reason)
