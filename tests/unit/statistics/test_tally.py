"""Tallies: what one verdict adds, and the buckets of histograms."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.kit import a_draw, a_verdict, an_evidence, an_unjudged

from ragwatch.statistics.segments import Segment, Segments
from ragwatch.statistics.tally import (
    SPELL_SECONDS,
    Invariant,
    Rejections,
    Tallies,
    Tally,
    bucket_label,
    verdict_tallies,
    violations,
)

FAITHFUL = ("faithfulness", "search", "embedded")
counts = st.integers(0, 50)
SEGMENTS = Segments({"release": ("v1", "v2"), "user.tier": ("free", "1", "true")})
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


def test_unjudged_counts_its_reason_only() -> None:
    """A draw that was not read adds to no score; coverage is known by segment, too."""
    draw = replace(a_draw(), segments=(("release", "other"),))
    assert verdict_tallies(an_unjudged(draw, reason="refused")) == {
        (Tally.UNJUDGED, ("search", "embedded", "refused")): 1,
        (Tally.SEGMENT_UNJUDGED, ("release", "other", "search", "embedded")): 1,
    }


def test_judged_adds_weighted_sums() -> None:
    """A score x at p adds w = 1/p to the sums, and one to its bucket."""
    tallies = verdict_tallies(a_verdict(a_draw(probability=0.25), an_evidence((1, 0), (0, 0))))
    sums = {tally: tallies[tally, FAITHFUL] for tally in (Tally.N, Tally.W, Tally.WX, Tally.W2, Tally.W2X, Tally.W2X2)}
    assert list(sums.values()) == [1, 4.0, 2.0, 16.0, 8.0, 4.0]
    assert tallies[Tally.SCORE, (*FAITHFUL, "0.5")] == 1
    assert tallies[Tally.SCORE, (*FAITHFUL, "sum")] == 0.5
    assert tallies[Tally.JUDGED, ("search", "embedded")] == 1
    assert tallies[Tally.STAGE, ("search", "embedded", "generation")] == 1
    assert tallies[Tally.UNKNOWN, ("need_recall", "search", "embedded", "not_read")] == 1
    assert (Tally.N, ("need_recall", "search", "embedded")) not in tallies


def test_fault_and_unknown_stage() -> None:
    """A fault is counted where there is one; a stage that is unknown is not counted as none."""
    faulty = verdict_tallies(a_verdict(evidence=an_evidence((0, 1))))
    unread = verdict_tallies(a_verdict(evidence=an_evidence(relevant=(None, None), address=None)))
    assert faulty[Tally.FAULT, ("search", "embedded", "redundant")] == 1
    assert [labels for tally, labels in unread if tally in (Tally.STAGE, Tally.FAULT)] == []


@pytest.mark.parametrize(
    ("histogram", "value", "expected"),
    [
        *((Tally.SCORE, *row) for row in ((0.0, "0.1"), (0.1, "0.1"), (0.10001, "0.2"), (1.0, "1.0"))),
        *((Tally.CONTEXTS, 0, "0.0"), (Tally.CONTEXTS, 101, "+Inf"), (Tally.TOP_SCORE, -5.0, "0.0")),
    ],
)
def test_buckets_hold_their_upper_bound(histogram: Tally, value: float, expected: str) -> None:
    """As in Prometheus, a bucket is `le`: less than or equal to its label."""
    assert bucket_label(histogram, value) == expected


def counters(seen: int, drawn: int, assigned: int, judged: int, unjudged: int) -> Tallies:
    """Tallies of one source, two routes and one judge."""
    return Counter(
        {
            (Tally.SEEN, ("app",)): seen,
            (Tally.DRAWN, ("search",)): drawn,
            (Tally.ASSIGNED, ("embedded",)): assigned,
            (Tally.JUDGED, ("search", "embedded")): judged,
            (Tally.UNJUDGED, ("other", "embedded", "timeout")): unjudged,
        }
    )


@given(counts, counts, counts, counts, st.integers(0, 5))
def test_counters_balance_or_it_is_named(judged: int, unjudged: int, pending: int, passed_over: int, off: int) -> None:
    """Judged, unjudged and pending draws add up to the assigned ones; too many or too few are a violation."""
    drawn = judged + unjudged + pending + off
    violated = violations(counters(drawn + passed_over, drawn, drawn, judged, unjudged), {"embedded": pending})
    assert list(violated) == [Invariant.ASSIGNED_ARE_SETTLED_OR_PENDING] * bool(off)
    assert not off or f"{drawn} assigned" in violated[Invariant.ASSIGNED_ARE_SETTLED_OR_PENDING]


def test_work_that_nobody_drew_or_assigned_is_named() -> None:
    """More drawn than seen, or a judge with work and no assignment, is as wrong as work that is gone."""
    assert violations(counters(2, 3, 3, 3, 0), {}) == {Invariant.DRAWN_WERE_SEEN: "3 drawn of 2 seen"}
    assert list(violations(Counter(), {"ghost": 1})) == [Invariant.ASSIGNED_ARE_SETTLED_OR_PENDING]


def test_the_first_record_of_a_spell_is_kept_until_the_spell_ends() -> None:
    """By source and reason; an hour without any ends it, and the next one is first again."""
    rejections = Rejections()
    for line, now in enumerate((0.0, 10.0, SPELL_SECONDS), start=1):
        rejections.add("app", "missing_field", "answer", f"a.jsonl:{line}", now)
    rejections.add("app", "torn_json", "", "a\n.jsonl:9", 20.0)
    assert list(rejections.first(SPELL_SECONDS + 30.0)) == [("app", "missing_field", "answer", "a.jsonl:1")]
    assert ("app", "torn_json", "", "a?.jsonl:9") in rejections.first(30.0)
    rejections.add("app", "missing_field", "question", "a.jsonl:7", 2 * SPELL_SECONDS + 10.0)
    assert list(rejections.first(2 * SPELL_SECONDS + 20.0)) == [("app", "missing_field", "question", "a.jsonl:7")]


def test_texts_of_any_length_fit_a_label() -> None:
    """The end is kept, where the line number is."""
    rejections = Rejections()
    rejections.add("app", "torn_json", "x" * 500, f"{'d/' * 300}a.jsonl:12", 0.0)
    ((_, _, field, place),) = rejections.first(1.0)
    assert max(map(len, (field, place))) < 130
    assert place.endswith("a.jsonl:12")


@given(st.dictionaries(st.sampled_from(["release", "user", "user.tier", "x"]), _json))
def test_only_configured_values_come_out(metadata: dict[str, Any]) -> None:
    """Whatever a log holds, each key has a configured value, `other` or None."""
    found = SEGMENTS.of(metadata)
    assert [segment.key for segment in found] == ["release", "user.tier"]
    assert {segment for segment in found if segment.value is not None} <= set(SEGMENTS.pairs)


@pytest.mark.parametrize(
    ("metadata", "value"),
    [
        ({"user": {"tier": "free"}}, "free"),
        ({"user.tier": 1}, "1"),
        ({"user": {"tier": True}}, "true"),
        ({"user": {"tier": "FREE"}}, "other"),
        ({"user": {"tier": ""}}, None),
        ({"user": {"tier": ["free"]}}, None),
        ({"user": "free"}, None),
        ({}, None),
    ],
)
def test_values(metadata: dict[str, Any], value: str | None) -> None:
    """Numbers and booleans are compared as JSON writes them; what is missing or no single value is left out."""
    assert SEGMENTS.of(metadata)[1] == Segment("user.tier", value)


def test_a_verdict_adds_weighted_sums_to_each_segment() -> None:
    """A score x at p adds w = 1/p to the sums of its segments; a key that is missing is counted, and adds nothing."""
    draw = replace(a_draw(probability=0.25), segments=(("release", "v1"), ("tier", None)))
    tallies = verdict_tallies(a_verdict(draw, an_evidence((1, 0), (0, 0))))
    of_segment = {key: value for key, value in tallies.items() if key[0].startswith("segment")}
    place = ("release", "v1", "search", "embedded")
    sums = (Tally.SEGMENT_W, Tally.SEGMENT_WX, Tally.SEGMENT_W2, Tally.SEGMENT_W2X, Tally.SEGMENT_W2X2)
    assert [of_segment[tally, ("faithfulness", *place)] for tally in sums] == [4.0, 2.0, 16.0, 8.0, 4.0]
    assert of_segment[Tally.SEGMENT_WX, ("top_ranked_ignored", *place)] == 0.0
    assert of_segment[Tally.SEGMENT_JUDGED, place] == 1
    assert of_segment[Tally.SEGMENT_LEFT_OUT, ("tier", "search", "embedded")] == 1
    assert {labels[-4] for tally, labels in of_segment if len(labels) > 3} == {"release"}
