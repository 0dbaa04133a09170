"""Relevance judgements: matching, ranking metrics by name, kinds of test cases."""

from __future__ import annotations

from math import log2
from typing import Any

import pytest
from support.kit import a_sample

from ragwatch.model.sample import Context, RelevantContext, Sample
from ragwatch.statistics.relevance import CaseKind, NoRanking, RankingMetric, kind_of, rank_sample

SEED_2 = ("c3", "c1", "c9", "c2")


def a_case(retrieved: Any = SEED_2, relevant: Any = ("c1", "c2"), **parts: Any) -> Sample:
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
