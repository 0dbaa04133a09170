"""Stage: every row of the table, and what stands above it wins."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.kit import a_claim, a_draw, a_reading, an_evidence

from ragwatch.model.evidence import Evidence, ShapeError
from ragwatch.model.quantities import Quantity
from ragwatch.model.stages import FAULTS, Stage
from ragwatch.statistics.stage import IGNORED, MIN_SAMPLES, changed_stage, stage, stage_shares
from ragwatch.statistics.verdict import judged

MANY = [(1, 0)] * 9  # enough good claims that one bad one leaves faithfulness at 0.9
COUNTS = st.dictionaries(st.sampled_from([*map(str, Stage), IGNORED]), st.integers(0, 100))


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [
        (an_evidence((), relevant=()), Stage.RETRIEVAL),
        (an_evidence((1, 0), relevant=(False, False)), Stage.RETRIEVAL),
        (an_evidence((1, 0), needs=(True, False, False)), Stage.RETRIEVAL),
        (an_evidence((0, 0), relevant=(False, False)), Stage.RETRIEVAL),
        (an_evidence(relevant=(False, False), address="abstained"), Stage.RETRIEVAL),
        (an_evidence(relevant=(False, True), address="abstained"), Stage.GENERATION),
        (an_evidence((1, 0), (0, 0)), Stage.GENERATION),
        (an_evidence(*MANY, a_claim((0, 0), "contradicted")), Stage.GENERATION),
        (an_evidence((0, 1), address="partially"), Stage.ALIGNMENT),
        (an_evidence((0, 1), address="not_at_all"), Stage.ALIGNMENT),
        (an_evidence((1, 0), address="not_at_all"), Stage.GENERATION),
        (an_evidence((0, 1), address="fully"), Stage.NONE),
        (an_evidence((1, 0), address="partially"), Stage.NONE),
        (an_evidence((1, 0), needs=(True, False)), Stage.NONE),
        (an_evidence(*MANY, (0, 0)), Stage.NONE),
        (an_evidence((1, 0), relevant=(None, True)), None),
        (an_evidence(), None),
        (an_evidence(relevant=(None, None), address="abstained"), None),
        (an_evidence((0, 1), address=None), Stage.NONE),
    ],
)
def test_table(evidence: Evidence, expected: Stage | None) -> None:
    """The first row that holds names the stage; too little read is None, never `none`."""
    assert stage(evidence) == expected


@given(COUNTS, COUNTS, st.sampled_from(Quantity))
def test_the_largest_rise_or_nothing(now: dict[str, int], before: dict[str, int], quantity: Quantity) -> None:
    """A stage at fault whose share rose, or nothing."""
    change = changed_stage(now, before, quantity)
    if min(sum(now.values()), sum(before.values())) < MIN_SAMPLES:
        assert change is None
        assert {} in (stage_shares(now), stage_shares(before))
        return
    shares = {stage: (stage_shares(now)[stage], stage_shares(before)[stage]) for stage in FAULTS}
    if quantity is Quantity.TOP_RANKED_IGNORED:  # good answers beside an unused top context count as alignment
        shares[Stage.ALIGNMENT] = (
            sum(now.get(name, 0) for name in ("alignment", IGNORED)) / sum(now.values()),
            sum(before.get(name, 0) for name in ("alignment", IGNORED)) / sum(before.values()),
        )
    rises = {stage: share - earlier for stage, (share, earlier) in shares.items()}
    if change is None:
        assert max(rises.values()) < 1.0
    else:
        assert 0.0 < change.share - change.before == rises[change.stage] <= max(rises.values())


def test_a_rise_by_chance_names_no_stage() -> None:
    """Shares of 20 answers differ from those of 2,000 without any change: below 1 % of the time a stage is named."""
    rng = random.Random(7)
    before = {"none": 1740, "retrieval": 160, "generation": 100}
    named = 0
    for _ in range(1000):
        now = Counter(rng.choices([*before], weights=[*before.values()], k=20))
        named += changed_stage(now, before, Quantity.FAITHFULNESS) is not None
    assert named < 10


@pytest.mark.parametrize("contexts", [(), ("one",), ("one", "two", "three")])
def test_evidence_of_other_contexts_is_refused(contexts: tuple[str, ...]) -> None:
    """Evidence has one column for each context of the sample, and claims that end in the answer."""
    with pytest.raises(ShapeError, match=f"2 contexts were read of {len(contexts)}"):
        judged(a_draw(contexts=contexts), a_reading(), an_evidence((1, 0)))
    last = len(a_draw().sample.answer)
    judged(a_draw(), a_reading(), an_evidence(a_claim(start=0, end=last)))
    with pytest.raises(ShapeError, match="ends after the answer"):
        judged(a_draw(), a_reading(), an_evidence(a_claim(start=0, end=last + 1)))
