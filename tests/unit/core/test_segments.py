"""Segments: what an answer belongs to, and what its verdict adds to the sums of its segments."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.kit import a_draw, a_verdict, an_evidence, an_unjudged

from ragwatch.core.segments import Segment, Segments
from ragwatch.core.tally import Tally, verdict_tallies

SEGMENTS = Segments({"release": ("v1", "v2"), "user.tier": ("free", "1", "true")})
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


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


def test_an_unjudged_draw_is_counted_in_its_segment() -> None:
    """Coverage is known by segment, too."""
    draw = replace(a_draw(), segments=(("release", "other"),))
    assert verdict_tallies(an_unjudged(draw))[Tally.SEGMENT_UNJUDGED, ("release", "other", "search", "embedded")] == 1
