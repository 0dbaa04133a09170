"""Rows: what is packed comes back, whatever a log put into it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.kit import a_draw, a_sample, a_verdict, an_evidence, an_unjudged

from ragwatch.core.evidence import Evidence
from ragwatch.core.sample import RelevantContext, Role, Turn
from ragwatch.formats import build
from ragwatch.stores.rows import pack, sample_of, score_row, unpack, verdict_row

texts = st.text(st.characters(exclude_categories=()))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts, st.lists, max_leaves=5
)


@given(st.dictionaries(texts, values, max_size=5))
def test_what_is_packed_comes_back(value: dict[str, Any]) -> None:
    """Every JSON value survives, lone surrogates and control characters too."""
    assert unpack(pack(value)) == value


turns = st.builds(Turn, st.sampled_from(Role), texts)


@given(texts, st.none() | texts, st.dictionaries(texts, values, max_size=3), st.lists(turns, max_size=3).map(tuple))
def test_samples_come_back(
    answer: str, question: str | None, metadata: dict[str, Any], history: tuple[Turn, ...]
) -> None:
    """A sample is what its canonical record says."""
    sample = a_sample(answer=answer, question=question, metadata=metadata, history=history)
    assert sample_of(unpack(pack(sample.to_record()))) == sample


def test_relevance_judgements_come_back() -> None:
    """Ids and texts with their grades; none at all is another thing than unknown."""
    for relevant in ((RelevantContext("c1", None, 2), RelevantContext(None, "One.", 1)), (), None):
        sample = a_sample(relevant=relevant)
        assert sample_of(unpack(pack(sample.to_record()))) == sample
        assert build("canonical").read(sample.to_record(), "log:1") == sample


def test_samples_of_earlier_versions_come_back() -> None:
    """Version 0.1.0 stored no history: its samples are first questions."""
    record = a_sample().to_record()
    del record["history"]
    assert sample_of(unpack(pack(record))) == a_sample()


@pytest.mark.parametrize(
    ("evidence", "failing"),
    [(an_evidence((1, 0)), 0), (an_evidence((0, 0)), 1), (an_evidence(relevant=(None, None), address=None), 0)],
)
def test_failing_means_a_faulty_stage(evidence: Evidence, failing: int) -> None:
    """A judged row outlives others when its stage names a fault; an unknown stage does not."""
    assert verdict_row(a_verdict(evidence=evidence))["failing"] == failing


def test_unjudged_row() -> None:
    """An unjudged draw fails, has a reason and no scores."""
    row = verdict_row(an_unjudged(a_draw(metadata={"trace_id": "t"}), "refused"))
    columns = {name: row[name] for name in ("failing", "reason", "scores", "stage", "fault", "outcome", "trace_id")}
    assert columns == {
        "failing": 1,
        "reason": "refused",
        "scores": None,
        "stage": None,
        "fault": None,
        "outcome": "unjudged",
        "trace_id": "t",
    }
    assert score_row((1, "k", 2.0, "r", "j", "v", 1.0, None, "refused", None, None)).scores is None
