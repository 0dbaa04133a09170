"""Stored runs of a suite, read back and compared."""

import json
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Any

import pytest
from support.canaries import a_canary, a_failure, a_reply, a_report, a_text

from ragwatch.statistics.canary import history
from ragwatch.statistics.canary.definition import MAX_STORED_CHARS, Category, Expected, Grade, Hit, Retrieved
from ragwatch.statistics.canary.metric import CanaryMetric
from ragwatch.statistics.canary.report import CanaryReport, SuiteReport

CANARY = a_canary("a")
GOOD, LOST = a_report(CANARY, a_reply("a", "b")), a_report(CANARY, a_reply("x", "b"))
DOWN = a_report(CANARY, a_failure())
LIMITS: dict[str, Any] = {"min_relevance_score": 0.3, "min_recall": 0.5, "tags": ("money",)}
GRADED = Expected("a", "Text of a.", Grade.HIGHLY_RELEVANT)
FULL = a_canary(GRADED, "b", category=Category.COMPARATIVE, reference="A good answer.", **LIMITS)
USUAL = (0.90, 0.86, 0.82)
CANARIES = [a_canary("d0", name=f"c{number}") for number in range(6)]
ASKED = a_canary("a", "b", min_recall=0.5)
BEFORE = a_report(ASKED, a_reply("a", "x", "b"))


def runs(*reports: object) -> list[SuiteReport]:
    """One run for each report, the newest first."""
    return [SuiteReport("docs", (5,), (report,)) for report in reports]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "body",
    [{}, {"ks": [], "reports": []}, {"ks": [5], "reports": [{}]}, {"ks": 5, "reports": []}, {"ks": [5], "reports": 1}],
)
def test_a_run_of_another_version_is_unknown(body: dict[str, object]) -> None:
    """It is passed over instead of breaking the page."""
    assert history.report_of("docs", body) is None


def test_each_canary_is_held_against_its_own_last_success() -> None:
    """Failed and degraded runs in between are passed over; without any success nothing is said."""
    differences = history.changes(runs(LOST, DOWN, LOST, GOOD))
    assert [move.label for move in differences["refunds"].vanished] == ["a"]
    assert history.changes(runs(LOST, DOWN, LOST)) == {}
    assert history.changes(runs(DOWN, GOOD)) == {}
    assert history.changes([]) == {}


def test_long_passages_are_cut() -> None:
    """A store of reports must not become a copy of the corpus; ids, ranks and scores stay, and nothing looks new."""
    whole = a_report(FULL, Retrieved((Hit("a", "x" * 9000, 0.9), Hit(None, "y" * 9000, 0.8))))
    text = a_report(a_canary(category=Category.NEGATIVE), Retrieved((Hit(None, "y" * 9000, 0.8),)))
    for report in (whole, text):
        again = history.from_record(history.to_record(report))
        assert {len(hit.text or "") for hit in again.retrieved.hits} == {MAX_STORED_CHARS}
        change = history.diff(again, report)
        assert change is None or change.newcomers == ()
    assert history.diff(history.from_record(history.to_record(text)), text) is not None


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
    """What comes out of a stored run is what went in, ranks and reasons included."""
    run = history.report_of("docs", json.loads(json.dumps({"ks": [5], "reports": [history.to_record(report)]})))
    assert run == SuiteReport("docs", (5,), (report,))
    (again,) = run.reports
    assert (again.ranks, again.reason) == (report.ranks, report.reason)


def a_run(*scores: Sequence[float], direction: str | None = "similarity") -> SuiteReport:
    """A run in which every canary finds what it expects first; the last scores are those of all further canaries."""
    replies = [scores[min(index, len(scores) - 1)] for index in range(len(CANARIES))]
    reports = [
        a_report(canary, a_reply(*(f"d{rank}" for rank in range(len(row))), scores=list(row), direction=direction))
        for canary, row in zip(CANARIES, replies, strict=True)
    ]
    return SuiteReport("docs", (5,), tuple(reports))


def health(before: SuiteReport, after: SuiteReport) -> tuple[float | None, float | None]:
    """Health and MRR of a run after another one."""
    run, _ = history.with_levels(after, history.with_levels(before, {})[1])
    return run.mean(CanaryMetric.HEALTH), run.mean(CanaryMetric.MRR)


NEAR, FAR = (a_run(scores, direction="distance") for scores in ((0.1, 0.12, 0.15), (0.5, 0.52, 0.55)))
TOPS = [0.7 + 0.04 * number for number in range(6)]
ONE_EACH = a_run(*((score,) for score in TOPS))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (a_run(USUAL), a_run((0.60, 0.55, 0.50)), 0.0),  # all below the worst of before
        (a_run(USUAL), a_run((0.81, 0.80, 0.79)), 0.0),
        (a_run(USUAL), a_run((0.86, 0.82, 0.78)), 1.0),  # by their spread of .08 and less
        (a_run(USUAL), a_run((0.95, 0.91, 0.87)), 1.0),
        (NEAR, FAR, 0.0),  # distances are better the lower they are
        (FAR, NEAR, 1.0),
        (a_run(USUAL), a_run((0.5, 0.4, 0.3), USUAL), 1.0),  # the passages of a single canary may have been edited
        (ONE_EACH, a_run(*((score - 0.3,) for score in TOPS)), 0.0),  # one score, beside the range of the suite
        (ONE_EACH, a_run(*((score - 0.1,) for score in TOPS)), 1.0),
        (a_run((0.9,)), a_run((0.1,)), 1.0),
        (a_run(USUAL, direction=None), a_run((0.1, 0.1, 0.1), direction=None), 1.0),  # nothing can be compared
    ],
)
def test_a_fall_of_all_scores_beyond_their_spread(before: SuiteReport, after: SuiteReport, expected: float) -> None:
    """Though every expected context ranks first, and no canary has a minimum score."""
    assert health(before, after) == (expected, 1.0)


def test_a_canary_without_a_reply_says_nothing_of_the_others() -> None:
    """Neither for nor against a fall of their scores."""
    fallen = a_run((0.5, 0.4, 0.3))
    failed = SuiteReport("docs", (5,), (*fallen.reports[:-1], a_report(CANARIES[-1], a_failure())))
    assert health(a_run(USUAL), failed)[0] == 0.0


def test_lower_scores_become_usual_and_what_fell_does_not_hide_it() -> None:
    """The level stays while all are lower, also when canaries fall one after another, and is learned again at last."""
    run, levels = history.with_levels(a_run(USUAL), {})
    low = (0.5, 0.4, 0.3)
    _, levels = history.with_levels(a_run(low, low, USUAL), levels)
    run, levels = history.with_levels(a_run(low), levels)
    assert run.scores_fell
    for _ in range(history.RELEARN_RUNS + 1):
        run, levels = history.with_levels(a_run(low), levels)
    assert not run.scores_fell
    assert history.levels_of({key: list(level) for key, level in levels.items()}) == levels
    assert history.levels_of({"x": ["a", 1, 2], "y": [1.0], "z": None}) == history.levels_of(None) == {}


def changed(before: CanaryReport, after: CanaryReport) -> history.CanaryDiff:
    """A diff that there must be."""
    change = history.diff(before, after)
    assert change is not None
    return change


@pytest.mark.parametrize(
    ("reply", "vanished"),
    [
        (
            ("y", "x", "b"),
            history.RankChange("a", 1, None, Hit("y", "Text of y.", 0.9)),
        ),  # `a` led, `y` stands at its rank
        (("a", "x", "z"), history.RankChange("b", 3, None, Hit("z", "Text of z.", pytest.approx(0.7)))),
        (("a", "x"), history.RankChange("b", 3, None, None)),  # a shorter reply puts nothing in its place
    ],
)
def test_which_vanished_and_what_came_instead(reply: tuple[str, ...], vanished: history.RankChange) -> None:
    """By rank; what was not there before is a newcomer, with its rank."""
    change = changed(BEFORE, a_report(ASKED, a_reply(*reply)))
    assert (change.vanished, change.moved) == ((vanished,), ())
    assert change.newcomers == (() if vanished.instead is None else ((vanished.before, vanished.instead),))


def test_moves_up_and_back_in() -> None:
    """Ranks then and now; one that was missing and is found moved from nowhere."""
    before = a_report(ASKED, a_reply("x", "y", "a"))
    change = changed(before, a_report(ASKED, a_reply("a", "b", "x")))
    assert [(move.label, move.before, move.after) for move in change.moved] == [("a", 3, 1), ("b", None, 2)]
    assert [rank for rank, _ in change.newcomers] == [2]


def test_scores_shift() -> None:
    """The change of the median score of the top k; a run equals itself."""
    same = changed(BEFORE, BEFORE)
    assert (same.vanished, same.moved, same.newcomers, same.shift) == ((), (), (), 0.0)
    change = changed(BEFORE, a_report(ASKED, a_reply("a", "x", "b", scores=[0.5, 0.4, 0.0])))
    assert change.shift == pytest.approx(0.4 - 0.8)


@pytest.mark.parametrize("scores", [[0.9, None, 0.1], [None, None, None]])
def test_a_missing_score_leaves_the_shift_unknown(scores: list[float | None]) -> None:
    """A median of half the passages would be another quantity."""
    odd = a_report(ASKED, a_reply("a", "x", "b", scores=scores))
    assert (changed(BEFORE, odd).shift, changed(odd, BEFORE).shift) == (None, None)
    assert changed(BEFORE, a_report(ASKED, a_reply())).shift is None


@pytest.mark.parametrize("pair", [(BEFORE, a_report(ASKED, a_failure())), (a_report(ASKED, a_failure()), BEFORE)])
def test_a_failed_run_is_compared_with_nothing(pair: tuple[CanaryReport, CanaryReport]) -> None:
    """A dead endpoint has not lost its contexts."""
    assert history.diff(*pair) is None


def test_an_edited_canary_is_compared_in_what_it_still_expects() -> None:
    """`b` is no longer expected, `c` was not asked for before: neither has moved."""
    edited = a_report(a_canary("a", "c", min_recall=0.5), a_reply("x", "a", "c"))
    change = changed(BEFORE, edited)
    assert [(move.label, move.before, move.after) for move in (*change.vanished, *change.moved)] == [("a", 1, 2)]


def test_passages_without_ids_are_told_apart_by_text() -> None:
    """The same text is no newcomer; a negative canary expects nothing that could vanish."""
    texts = [Hit(None, "One."), Hit(None, "Two.")]
    negative = a_canary(category=Category.NEGATIVE)
    before, after = Retrieved((texts[0],)), Retrieved(tuple(texts))
    change = changed(a_report(negative, before), a_report(negative, after))
    assert (change.vanished, change.moved, change.newcomers) == ((), (), ((2, texts[1]),))


def test_texts_that_begin_alike_are_told_apart() -> None:
    """Passages of one document share their heading: which of two is gone is told all the same."""
    heading = "Terms and conditions, chapter three, as of the first of January: "
    texts = [f"{heading}refunds.", f"{heading}returns."]
    canary = a_canary(*map(a_text, texts))
    same = {"similar": lambda one, other: float(one == other)}
    both = Retrieved(tuple(Hit(text=passage) for passage in texts))
    before, after = (a_report(canary, reply, **same) for reply in (both, Retrieved(both.hits[1:])))
    change = history.diff(before, after)
    assert [(move.before, move.after) for move in change.vanished] == [(1, None)]
    assert [(move.before, move.after) for move in change.moved] == [(2, 1)]
