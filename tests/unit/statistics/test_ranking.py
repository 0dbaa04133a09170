"""Ranking: by hand, by law, against ir-measures; relevance judgements that are matched and ranked by metric."""

import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import log2
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.kit import a_sample

from ragwatch.model.sample import Context, RelevantContext, Sample
from ragwatch.statistics import ranking
from ragwatch.statistics.ranking import Ranking
from ragwatch.statistics.relevance import CaseKind, NoRanking, RankingMetric, kind_of, rank_sample

RANKINGS = st.builds(
    lambda grades, hits: Ranking(tuple(grades), tuple(tuple(i for i in hit if i < len(grades)) for hit in hits)),
    st.lists(st.integers(1, 3), max_size=4),
    st.lists(st.sets(st.integers(0, 3), max_size=2), max_size=8),
)
RETRIEVED = ("c3", "c1", "c9", "c2")


def by_ids(returned: Sequence[str], grades: Mapping[str, int]) -> Ranking:
    """The ranking of returned ids, where `grades` holds the expected ones; no id comes twice."""
    index = {name: place for place, name in enumerate(grades)}
    return Ranking(tuple(grades.values()), tuple((index[name],) if name in index else () for name in returned))


SEED_2 = by_ids(["c3", "c1", "c9", "c2"], {"c1": 1, "c2": 1})
NAMES = ("recall_at", "precision_at", "f1_at", "hit_at", "ndcg_at", "reciprocal_rank", "average_precision")
AT: dict[str, Callable[[Ranking, int], float | None]] = {name: getattr(ranking, name) for name in NAMES}
WHOLE = (ranking.first_relevance, ranking.context_precision)


def pattern(*relevant: int) -> Ranking:
    """A ranking of as many expected contexts as there are ones, each found where a one stands."""
    names = [f"d{rank}" for rank in range(len(relevant))]
    return by_ids(names, {name: 1 for name, one in zip(names, relevant, strict=True) if one})


@pytest.mark.parametrize(("relevant", "expected"), [((1, 1, 0, 1, 0), 11 / 12), ((0, 0, 1, 1, 1), 43 / 90)])
def test_examples_of_the_first_text(relevant: tuple[int, ...], expected: float) -> None:
    """Rank-weighted precision, exact; the text rounds its terms first. Alike while nothing expected is missing.

    The one asks how good the returned order is, average precision also what is not in it.
    """
    assert ranking.context_precision(pattern(*relevant)) == pytest.approx(expected, abs=1e-12)
    assert ranking.average_precision(pattern(*relevant)) == pytest.approx(expected, abs=1e-12)
    half = by_ids(["a"], {"a": 1, "b": 1})
    assert (ranking.context_precision(half), ranking.average_precision(half)) == (1.0, 0.5)


@pytest.mark.parametrize(
    ("precision", "recall", "expected"),
    [(0.5, 1.0, 2 / 3), (0.0, 0.0, 0.0), (0.0, 1.0, 0.0), (None, 1.0, None), (1.0, None, None)],
)
def test_f1(precision: float | None, recall: float | None, expected: float | None) -> None:
    """Harmonic; zero where both are, unknown where one is."""
    assert ranking.f1(precision, recall) == (None if expected is None else pytest.approx(expected))


def test_a_cutoff_hides_what_is_behind_it() -> None:
    """The first hit at rank 3 is none at 2."""
    third = by_ids("xya", {"a": 1})
    at_3 = {"reciprocal_rank": 1 / 3, "average_precision": 1 / 3, "hit_at": 1.0, "recall_at": 1.0, "ndcg_at": 0.5}
    assert {name: AT[name](third, 2) for name in at_3} == dict.fromkeys(at_3, 0.0)
    assert {name: AT[name](third, 3) for name in at_3} == pytest.approx(at_3)
    assert ranking.precision_at(third, 5) == 0.2  # of k, also when fewer passages come back


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        *((lambda measure=measure: measure(SEED_2, 0), "k must be 1 or more, not 0") for measure in AT.values()),
        *((lambda grades=grades: Ranking(grades, ()), "grades must be 1 or more") for grades in ((0,), (1, -1))),
    ],
)
def test_mistakes_are_refused(mistake: Callable[[], object], message: str) -> None:
    """A k of 0 is no division by zero, and what is not relevant is not expected."""
    with pytest.raises(ValueError, match=message):
        mistake()


@pytest.mark.parametrize("hits", [((1,),), ((-1,),)])
def test_x26_hits_are_expected_contexts(hits: tuple[tuple[int, ...], ...]) -> None:
    """An index that names no expected context is a mistake."""
    with pytest.raises(ValueError, match="names none of the 1"):
        Ranking((1,), hits)


def test_passages_and_contexts_match_across() -> None:
    """One passage covers two expected contexts, two passages one: recall counts contexts, precision passages."""
    both = Ranking((1, 2), ((0, 1), (1,)))
    assert (both.ranks, both.gains) == ((1, 1), (2, 0))
    assert (ranking.recall_at(both, 1), ranking.precision_at(both, 2)) == (1.0, 1.0)


@given(RANKINGS, st.integers(1, 9))
def test_everything_is_a_ratio_or_unknown(ranked: Ranking, k: int) -> None:
    """Whatever meets whatever: in [0, 1], and None where nothing was expected, or nothing to divide by."""
    values = [measure(ranked, k) for measure in AT.values()] + [measure(ranked) for measure in WHOLE]
    if not ranked.grades:
        assert values == [None] * len(values)
    else:
        unknown = values.pop() is None
        assert unknown == (not ranked.hits)
        assert all(value is not None and 0.0 <= value <= 1.0 + 1e-12 for value in values)
        assert ranked.hits or set(values) == {0.0}
    for grows in (ranking.recall_at, ranking.hit_at):  # a larger k never finds less
        assert (grows(ranked, k) or 0.0) <= (grows(ranked, k + 1) or 0.0)


def test_agrees_with_ir_measures() -> None:
    """Equal to trec_eval (through ir-measures) to 1e-9 on 300 random rankings with grades 1 and 2."""
    ir = pytest.importorskip("ir_measures", reason="ir-measures (test-only) is not installed")
    rng = random.Random(5)
    documents = [f"d{number:02d}" for number in range(40)]
    qrels: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    ranked: dict[str, Ranking] = {}
    for number in range(300):
        query = f"q{number}"
        qrels[query] = {name: rng.choice((1, 1, 2)) for name in rng.sample(documents, rng.randint(1, 8))}
        returned = rng.sample(documents, rng.randint(1, 25))
        run[query] = {name: float(len(returned) - rank) for rank, name in enumerate(returned)}
        ranked[query] = by_ids(returned, qrels[query])
    ours: dict[str, Callable[[Ranking], float | None]] = {
        name: partial(AT[measure], k=k) if k else AT[measure]
        for name, measure, k in (
            ("R@5", "recall_at", 5),
            ("P@5", "precision_at", 5),
            ("Success@5", "hit_at", 5),
            ("RR@10", "reciprocal_rank", 10),
            ("nDCG@10", "ndcg_at", 10),
            ("nDCG@3", "ndcg_at", 3),
            ("AP", "average_precision", None),
            ("AP@7", "average_precision", 7),
        )
    }
    theirs = list(ir.iter_calc([ir.parse_measure(name) for name in ours], qrels, run))
    assert len(theirs) == len(ours) * len(ranked)
    for metric in theirs:
        assert ours[str(metric.measure)](ranked[metric.query_id]) == pytest.approx(metric.value, abs=1e-9), metric


def a_case(retrieved: Any = RETRIEVED, relevant: Any = ("c1", "c2"), **parts: Any) -> Sample:
    """A retrieval test case: the seed's by default."""
    contexts = tuple(Context(f"Text of {name}.", name) for name in retrieved)
    judged = tuple(one if isinstance(one, RelevantContext) else RelevantContext(one) for one in relevant)
    return a_sample(contexts=contexts, relevant=judged, **({"answer": ""} | parts))


def value(name: str, sample: Sample) -> float | None:
    """A metric of a sample."""
    case = rank_sample(sample)
    return None if case.ranking is None else RankingMetric(name).of(case.ranking)


@pytest.mark.parametrize(
    ("metric", "expected"),
    [("recall@3", 0.5), ("precision@3", 1 / 3), ("mrr", 0.5), ("f1@3", 0.4), ("recall@10", 1.0), ("mrr@1", 0.0)],
)
def test_the_worked_example_of_the_seed(metric: str, expected: float) -> None:
    """Requirements item 19: c3, c1, c9, c2 with c1 and c2 relevant: recall@3 .50, precision@3 .33, MRR .50."""
    assert value(metric, a_case()) == pytest.approx(expected)
    assert value("precision@3", a_case(("c1", "c1", "c9"))) == pytest.approx(1 / 3)  # returned twice, it counts once


def test_grades_weigh_in_ndcg() -> None:
    """(1/log2(3) + 2/log2(5)) / (2 + 1/log2(3)): the highly relevant context comes last."""
    graded = a_case(relevant=(RelevantContext("c1", None, 1), RelevantContext("c2", None, 2)))
    assert value("ndcg@4", graded) == pytest.approx((1 / log2(3) + 2 / log2(5)) / (2 + 1 / log2(3)))
    assert value("ndcg@4", a_case()) != value("ndcg@4", graded)


def test_texts_are_compared_where_there_is_no_id() -> None:
    """By the similarity given; an empty text cannot be compared, and is unknown, not irrelevant."""
    relevant = (RelevantContext(None, "Text of c1."),)
    case = rank_sample(a_case(relevant=relevant), similar=lambda one, other: float(one == other))
    assert case.ranking.ranks == (2,)
    bare = a_case(relevant=relevant)._replace(contexts=(Context("", "c1"),))
    assert rank_sample(bare).unknown is NoRanking.NO_TEXTS
    assert rank_sample(a_case(relevant=relevant)).unknown is NoRanking.TEXTS_NOT_COMPARED


def test_unknown_rankings_have_a_reason() -> None:
    """Contexts without ids, or nothing that is relevant; nothing retrieved is a recall of 0."""
    assert rank_sample(a_case((None,))).unknown is NoRanking.NO_IDS
    assert rank_sample(a_case(relevant=())).unknown is NoRanking.NOTHING_RELEVANT
    assert rank_sample(a_case(relevant=())).ranking is None
    assert value("recall@3", a_case(())) == 0.0


def test_kinds_of_test_cases() -> None:
    """By answer and relevance judgements; key and category pair and group them."""
    assert kind_of(a_sample()) is CaseKind.GENERATION
    assert rank_sample(a_case(answer="  ")).kind is CaseKind.RETRIEVAL
    case = rank_sample(a_case(answer="So.", question="Why  NOT?", metadata={"category": "procedural"}), route="search")
    assert (case.kind, case.key, case.category, case.route) == (CaseKind.END_TO_END, "why not?", "procedural", "search")
    assert rank_sample(a_case(metadata={"category": 3}), route="search").category == "search"


@pytest.mark.parametrize("name", ["recall", "recall@0", "recall@-1", "hits@3", "mrr@", "recall@3 ", "", "ndcg@99999"])
def test_other_names_are_no_metric(name: str) -> None:
    """A misspelt threshold is an error."""
    with pytest.raises(ValueError, match="is not a ranking metric"):
        RankingMetric(name)
