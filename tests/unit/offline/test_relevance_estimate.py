"""Pools of contexts to judge, recall estimated from them, and the agreement of annotators."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.draws import draws

from ragwatch.offline.relevance_estimate import (
    TOP,
    UNRETRIEVED,
    Candidate,
    Grade,
    PoolSizes,
    QueryPool,
    _pairs,
    alpha,
    consensus,
    draw_pool,
    ordinal_alpha,
    report,
)

NOT, RELEVANT, HIGHLY = Grade
SIZES = st.builds(PoolSizes, st.integers(1, 12), st.integers(0, 5), st.integers(0, 5))
KRIPPENDORFF = ("123321412...", "1233224125.3", ".3332342251.", "12332441251.")


def test_alpha_of_krippendorffs_example() -> None:
    """With missing values, 2011: .815; without a second annotator or grade, agreement is unknown."""
    units = [[int(row[place]) for row in KRIPPENDORFF if row[place] != "."] for place in range(12)]
    counts = [[unit.count(value) for value in range(1, 6)] for unit in units if len(unit) > 1]
    matrix = [[sum(column) for column in zip(*rows, strict=True)] for rows in zip(*map(_pairs, counts), strict=True)]
    assert ordinal_alpha(matrix) == pytest.approx(0.815, abs=0.0006)
    assert alpha([[NOT], [RELEVANT]]) is None
    assert alpha([[NOT, NOT], [NOT, NOT]]) is None
    perfect = alpha([[NOT, NOT], [HIGHLY, HIGHLY], [NOT, NOT]])
    assert (perfect.value, perfect.n) == (1.0, 3)
    alone = alpha([[NOT, HIGHLY]])
    assert alone.low == alone.value == alone.high


@settings(max_examples=draws(15))
@given(st.integers(0, 60), st.integers(0, 30), SIZES, st.text())
def test_a_pool_keeps_its_inclusion_probabilities(returned: int, others: int, sizes: PoolSizes, seed: str) -> None:
    """The top is drawn whole; weights in each stratum add up to its size; the same seed draws alike."""
    ranked = [(f"d{rank}", "text") for rank in range(returned)]
    corpus = [*ranked, *((f"o{number}", "") for number in range(others))]
    pool = draw_pool("query", ranked, corpus, sizes, seed)
    assert pool == draw_pool("query", ranked, corpus, sizes, seed)
    assert {one.id for one in pool.candidates if one.stratum == TOP} == {name for name, _ in ranked[: sizes.k]}
    assert sum(pool.sizes.values()) == returned + others
    for stratum, size in pool.sizes.items():
        weights = [1.0 / one.probability for one in pool.candidates if one.stratum == stratum]
        assert not weights or sum(weights) == pytest.approx(size)
        assert all((one.rank is None) == (one.stratum == UNRETRIEVED) for one in pool.candidates)


def simulated(
    random: Random, seed: str, annotators: int
) -> tuple[list[QueryPool], dict[tuple[str, str], dict[str, Grade]], float]:
    """Pools of 25 queries over 60 contexts by a mediocre retriever, imperfect judgements, and the true recall@5."""
    pools, grades, inside, relevant_contexts = [], {}, 0, 0
    for number in range(25):
        query = f"q{number}"
        truth = {
            f"d{rank}": HIGHLY if random.random() < 0.3 else RELEVANT
            for rank in range(60)
            if random.random() < 0.6 / (1 + rank / 4)
        }
        contexts = [(f"d{rank}", "") for rank in range(60)]
        pool = draw_pool(query, contexts[:40], contexts, PoolSizes(5, 4, 4), seed)
        pools.append(pool)
        inside += sum(f"d{rank}" in truth for rank in range(5))
        relevant_contexts += len(truth)
        for one in pool.candidates:
            right = truth.get(one.id, NOT)
            # People confuse the two grades often; relevant and not relevant hardly ever.
            confused = {HIGHLY: RELEVANT, RELEVANT: HIGHLY, NOT: NOT}[right]
            grades[query, one.id] = {
                f"a{person}": confused if random.random() < 0.2 else right for person in range(annotators)
            }
    return pools, grades, inside / relevant_contexts


@pytest.mark.parametrize("annotators", [1, 2])
def test_recall_is_estimated_from_what_is_judged(annotators: int) -> None:
    """An interval of 99.9 % contains the recall of all pairs; agreement takes two people."""
    pools, grades, recall = simulated(Random(1), "1", annotators)
    found = report(pools, grades, confidence=0.999)
    assert found.recall.low <= recall <= found.recall.high
    assert found.outside.value == pytest.approx(1.0 - found.recall.value)
    assert (found.queries, found.alpha is None) == (25, annotators == 1)


@pytest.mark.costly
def test_the_interval_covers_at_its_level() -> None:
    """Of 60 worlds, the interval of 95 % covers the recall of all pairs in at least 54, and is not as wide as all.

    Most pairs nobody judged; one to three people judge the others.
    """
    covered, widths = 0, []
    for seed in range(60):
        pools, grades, recall = simulated(Random(seed), str(seed), 1 + seed % 3)
        found = report(pools, grades).recall
        covered += found.low <= recall <= found.high
        widths.append(found.high - found.low)
    assert covered >= 54
    assert sum(widths) / len(widths) < 0.3


def test_only_complete_queries_count() -> None:
    """A query with an unjudged candidate is left out; what is judged whole has no interval."""
    first = draw_pool("a", [("d1", ""), ("d2", "")], [], PoolSizes(1, 1, 1), "s")
    second = draw_pool("b", [("d1", ""), ("d2", "")], [], PoolSizes(1, 1, 1), "s")
    grades = {("a", "d1"): {"ann": RELEVANT}, ("a", "d2"): {"ann": HIGHLY}, ("b", "d1"): {"ann": RELEVANT}}
    found = report([first, second], grades)
    assert found.queries == 1
    assert (found.recall.low, found.recall.value, found.recall.high) == (0.5, 0.5, 0.5)


def test_unknown_where_nothing_is_relevant() -> None:
    """Recall of nothing is unknown; with relevant contexts below k only, it is 0."""
    pool = draw_pool("a", [("d1", ""), ("d2", ""), ("d3", "")], [], PoolSizes(1, 0, 0), "s")
    empty = report([pool], {("a", "d1"): {"ann": NOT}})
    assert (empty.recall, empty.outside, empty.alpha) == (None, None, None)
    assert [stratum.total is None for stratum in empty.strata] == [False, True, True]
    below = draw_pool("a", [("d1", ""), ("d2", "")], [], PoolSizes(1, 1, 0), "s")
    found = report([below], {("a", "d1"): {"ann": NOT}, ("a", "d2"): {"ann": RELEVANT}}).recall
    assert (found.low, found.value, found.high) == (0.0, 0.0, 0.0)


def test_consensus_is_the_median() -> None:
    """The lower one of two grades; none without a judgement. Gains are those of qrels."""
    assert consensus([]) is None
    assert consensus([HIGHLY]) is HIGHLY
    assert [grade.gain for grade in Grade] == [0, 1, 2]
    with pytest.raises(ValueError, match="probability"):
        Candidate("q", "d", "", None, TOP, 0.0)
