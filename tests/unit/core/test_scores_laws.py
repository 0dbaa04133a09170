"""Properties of scores that hold for any valid evidence."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import assume, given
from hypothesis import strategies as st

from ragwatch.core.evidence import Address, Cell, Claim, ClaimVerdict, ContextReading, Evidence, Need
from ragwatch.core.scores import faithfulness, score_all, top_ranked_fault, why_unknown
from ragwatch.core.stage import stage
from ragwatch.model.quantities import Quantity

ORDERLESS = (
    Quantity.FAITHFULNESS,
    Quantity.CONTRADICTION,
    Quantity.CONTEXT_SENTENCE_PRECISION,
    Quantity.ANSWER_RELEVANCY,
    Quantity.NEED_RECALL,
)


@st.composite
def claims(draw: st.DrawFn, columns: int) -> Claim:
    """A claim; one that is supported has a support set."""
    word = draw(st.sampled_from(ClaimVerdict))
    mark = Cell.INFORMED
    if word is ClaimVerdict.SUPPORTED:
        mark = draw(st.sampled_from([Cell.ALONE, Cell.JOINTLY] if columns > 1 else [Cell.ALONE]))
    least = 0 if mark is Cell.INFORMED else min(columns, 1 + (mark is Cell.JOINTLY))
    ranks = draw(st.sets(st.integers(0, columns - 1), min_size=least)) if columns else set()
    cells = tuple(mark if rank in ranks else None for rank in range(columns))
    return Claim("c", None, None, word, cells, draw(st.none() | st.floats(0, 1)))


@st.composite
def columns(draw: st.DrawFn) -> ContextReading:
    """A context, counted or not."""
    total = draw(st.none() | st.integers(0, 9))
    counted = (None, None) if total is None else (total, draw(st.integers(0, total)))
    return ContextReading(draw(st.none() | st.booleans()), draw(st.none() | st.floats(0, 1)), *counted)


@st.composite
def evidences(draw: st.DrawFn) -> Evidence:
    """Any evidence that is whole."""
    contexts = tuple(draw(st.lists(columns(), max_size=5)))
    needs = draw(st.none() | st.lists(st.builds(Need, st.just("n?"), st.booleans()), max_size=4))
    return Evidence(
        tuple(draw(st.lists(claims(len(contexts)), max_size=6))),
        contexts,
        draw(st.none() | st.sampled_from(Address)),
        None if needs is None else tuple(needs),
        draw(st.booleans()),
    )


@given(evidences())
def test_scores_are_ratios_or_unknown_with_a_reason(evidence: Evidence) -> None:
    """Every score is in [0, 1] or None, and None exactly when a reason is given."""
    for quantity, score in score_all(evidence).items():
        assert score is None or 0.0 <= score <= 1.0
        assert (score is None) == (why_unknown(evidence, quantity) is not None)


@given(evidences(), st.data())
def test_more_support_never_lowers_faithfulness(evidence: Evidence, data: st.DataObject) -> None:
    """Setting one more cell to `supports` never lowers faithfulness."""
    assume(evidence.claims and evidence.contexts)
    row = data.draw(st.integers(0, len(evidence.claims) - 1))
    rank = data.draw(st.integers(0, len(evidence.contexts) - 1))
    claim = evidence.claims[row]
    better = replace(
        claim,
        verdict=ClaimVerdict.SUPPORTED,
        cells=tuple(
            Cell.ALONE if index == rank or cell is Cell.ALONE else None for index, cell in enumerate(claim.cells)
        ),
    )
    changed = replace(evidence, claims=(*evidence.claims[:row], better, *evidence.claims[row + 1 :]))
    assert (faithfulness(changed) or 0.0) >= (faithfulness(evidence) or 0.0)


@given(evidences(), st.randoms(use_true_random=False))
def test_order_of_claims_means_nothing(evidence: Evidence, rng: object) -> None:
    """Claims in another order leave all scores, stage and fault as they are."""
    rows = list(evidence.claims)
    rng.shuffle(rows)  # type: ignore[attr-defined]
    other = replace(evidence, claims=tuple(rows))
    result = [(score_all(each), stage(each), top_ranked_fault(each)) for each in (evidence, other)]
    assert result[0] == result[1]


@given(evidences(), st.data())
def test_order_of_contexts_moves_only_rank_scores(evidence: Evidence, data: st.DataObject) -> None:
    """Reordering contexts changes only the scores that depend on ranks."""
    order = data.draw(st.permutations(range(len(evidence.contexts))))
    rows = tuple(replace(claim, cells=tuple(claim.cells[rank] for rank in order)) for claim in evidence.claims)
    other = replace(evidence, claims=rows, contexts=tuple(evidence.contexts[rank] for rank in order))
    before, after = score_all(evidence), score_all(other)
    assert {each: after[each] for each in ORDERLESS} == {each: before[each] for each in ORDERLESS}
