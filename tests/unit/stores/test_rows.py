"""Rows: what is packed comes back, whatever a log put into it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.kit import a_sample, a_verdict, an_evidence

from ragwatch.core.evidence import Evidence
from ragwatch.core.sample import Context, RelevantContext, Role, Turn
from ragwatch.core.tally import Tallies, Tally
from ragwatch.formats import build
from ragwatch.stores.rows import pack, sample_of, tallies_of, tally_rows, unpack, verdict_row

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


def test_contexts_come_back() -> None:
    """With all that is seldom known of them; one that an earlier version stored has less."""
    sample = a_sample()._replace(contexts=(Context("Tea.", "d1", 0.5, "search", 1.7e9), Context("Milk.")))
    record = sample.to_record()
    assert sample_of(unpack(pack(record))) == sample
    assert "updated_at" not in record["contexts"][1]
    assert build("canonical").read(record, "log:1") == sample


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


def test_counters_come_back_by_the_names_of_their_labels() -> None:
    """A row that a version with another order of labels wrote adds to the same counter as one of this version."""
    counted: Tallies = Counter({(Tally.REJECTED, ("app", "json")): 3, (Tally.SEEN, ("app",)): 7})
    other_order = ("rejected", '["json","app"]', '["reason","source"]', 2.0)
    assert tallies_of(tally_rows(counted)) == counted
    assert tallies_of([*tally_rows(counted), other_order])[Tally.REJECTED, ("app", "json")] == 5
    assert tallies_of([("seen", '["app"]', None, 1.0)]) == {(Tally.SEEN, ("app",)): 1}


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(("seen", '["app", "eu"]', '["source", "region"]'), id="a label more"),
        pytest.param(("rejected", '["app"]', '["source"]'), id="a label less"),
        pytest.param(("rejected", '["app", "json"]', '["source", "cause"]'), id="another label"),
        pytest.param(("seen", '["app", "eu"]', None), id="no names, and another number"),
        pytest.param(("seen", '["app"]', '["source", "source"]'), id="more names than values"),
        pytest.param(("seen", "[1]", '["source"]'), id="a number"),
        pytest.param(("seen", "[[]]", '["source"]'), id="a list"),
        pytest.param(("seen", "5", '["source"]'), id="no list"),
        pytest.param(("seen", "[", '["source"]'), id="no JSON"),
        pytest.param(("seen", '["app"]', "{}["), id="names that are no JSON"),
        pytest.param(("laughs", '["app"]', '["source"]'), id="another counter"),
    ],
)
def test_a_counter_that_is_not_known_is_left_out_and_counted(row: tuple[str, str, str | None]) -> None:
    """It costs no other counter, and shows in a series of its own."""
    stored = [(*row, 4.0), ("seen", '["app"]', '["source"]', 1.0)]
    assert tallies_of(stored) == {(Tally.SEEN, ("app",)): 1, (Tally.UNKNOWN_COUNTERS, (row[0],)): 1}
