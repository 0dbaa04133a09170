"""Relevance judgements: which contexts are relevant to a question, and where the retriever ranked them.

A relevant context is matched by its id if it has one, otherwise by the similarity of its text. Canaries expect contexts
in the same way.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Literal, Protocol, Self

from ragwatch.model.sample import Sample
from ragwatch.statistics import ranking as measures
from ragwatch.statistics.compare import key_of
from ragwatch.statistics.question_scores import QuestionScores, question_of
from ragwatch.statistics.ranking import TAU, Ranking, Similarity

KS = (1, 3, 5, 10)
"""Default cut-offs of recall, precision, F1 and NDCG."""

_NAME = re.compile(r"(recall|precision|f1|ndcg|context_precision|mrr)(?:@([1-9][0-9]{0,3}))?")


class Passage(Protocol):
    """A passage that a retriever returned."""

    @property
    def id(self) -> str | None:
        """Id in the retriever."""

    @property
    def text(self) -> str | None:
        """Text."""


class RelevantPassage(Passage, Protocol):
    """A passage that is relevant."""

    @property
    def grade(self) -> int:
        """Relevance, 1 or more."""


MatchField = Literal["id", "text"]
"""Field of a passage that the relevant contexts are matched by."""


def missing_field(passages: Sequence[Passage], relevant: Sequence[RelevantPassage]) -> MatchField | None:
    """Returns the field by which relevant contexts are matched and which a passage lacks; None if none lacks it."""
    if any(one.id for one in relevant) and any(passage.id is None for passage in passages):
        return "id"
    if any(not one.id for one in relevant) and any(passage.text is None for passage in passages):
        return "text"
    return None


def rank_passages(
    passages: Sequence[Passage],
    relevant: Sequence[RelevantPassage],
    similar: Similarity | None = None,
    tau: float = TAU,
) -> Ranking:
    """Matches the passages of a retriever, best first, with the relevant contexts; a repeated passage counts once.

    Relevant contexts without an id need `similar` (else ValueError): texts count as the same from `tau` on.
    """
    ids: set[str] = set()
    hits = []
    for passage in passages:
        duplicate = passage.id in ids
        hits.append(
            tuple(
                index
                for index, one in enumerate(relevant)
                if not (duplicate and one.id) and _matches(passage, one, similar, tau)
            )
        )
        if passage.id is not None:
            ids.add(passage.id)
    return Ranking(tuple(int(one.grade) for one in relevant), tuple(hits))


def _matches(passage: Passage, one: RelevantPassage, similar: Similarity | None, tau: float) -> bool:
    if one.id:
        return passage.id == one.id
    if similar is None:
        raise ValueError("a context that is known by its text needs a way to compare texts")
    return similar(passage.text or "", one.text or "") >= tau


class CaseKind(StrEnum):
    """Kind of a test case.

    RETRIEVAL has relevance judgements and no answer, GENERATION an answer to fixed contexts, END_TO_END both.
    """

    RETRIEVAL = "retrieval"
    GENERATION = "generation"
    END_TO_END = "end_to_end"


class NoRanking(StrEnum):
    """Why the ranking metrics of a test case are unknown."""

    NOTHING_RELEVANT = "nothing_relevant"
    NO_IDS = "no_ids"
    NO_TEXTS = "no_texts"
    TEXTS_NOT_COMPARED = "texts_not_compared"


@dataclass(frozen=True, slots=True)
class RankedCase:
    """A question with relevance judgements, and where its relevant contexts were ranked."""

    key: str  # key that pairs it with the same question of another variant
    category: str  # category in its metadata, or its route; empty for none
    route: str
    ranking: Ranking | None
    unknown: NoRanking | None  # why it is unknown; None if it is not
    kind: CaseKind
    metadata: Mapping[str, object]
    question: QuestionScores  # its row in a comparison by question, without scores


def kind_of(sample: Sample) -> CaseKind:
    """Returns the kind of a test case."""
    if sample.relevant is None:
        return CaseKind.GENERATION
    return CaseKind.END_TO_END if sample.answer.strip() else CaseKind.RETRIEVAL


def rank_sample(sample: Sample, *, route: str = "", similar: Similarity | None = None, tau: float = TAU) -> RankedCase:
    """Returns where the relevant contexts of a sample were ranked; those without an id need `similar`."""
    ranking, unknown = None, None
    if not sample.relevant:
        unknown = NoRanking.NOTHING_RELEVANT
    elif missing_field(sample.contexts, sample.relevant):  # a context of a sample has a text, which may be empty
        unknown = NoRanking.NO_IDS
    elif not all(one.id for one in sample.relevant) and not all(context.text for context in sample.contexts):
        unknown = NoRanking.NO_TEXTS
    elif similar is None and not all(one.id for one in sample.relevant):
        unknown = NoRanking.TEXTS_NOT_COMPARED
    else:
        ranking = rank_passages(sample.contexts, sample.relevant, similar, tau)
    category = sample.metadata.get("category")
    return RankedCase(
        key=key_of(sample.question, sample.id, sample.user_turns),
        category=category if isinstance(category, str) else route,
        route=route,
        ranking=ranking,
        unknown=unknown,
        kind=kind_of(sample),
        metadata=sample.metadata,
        question=question_of(sample),
    )


class RankingMetric(str):
    """A ranking metric by its name, such as `recall@5`, `ndcg@5` or `context_precision@5`; `mrr` needs no cut-off."""

    __slots__ = ("k", "measure")

    measure: str
    k: int | None

    def __new__(cls, name: str) -> Self:
        """Parses the name; raises ValueError if there is no such metric."""
        match = _NAME.fullmatch(name)
        if match is None or (match[2] is None and match[1] != "mrr"):
            raise ValueError(f"{name!r} is not a ranking metric; use one such as recall@5, precision@5, ndcg@5 or mrr")
        metric = super().__new__(cls, name)
        metric.measure, metric.k = match[1], None if match[2] is None else int(match[2])
        return metric

    def of(self, ranking: Ranking) -> float | None:
        """Returns the metric of a ranking; None if nothing is relevant."""
        if self.k is None:
            return measures.reciprocal_rank(ranking)
        return _MEASURES[self.measure](ranking, self.k)


_MEASURES: Mapping[str, Callable[[Ranking, int], float | None]] = MappingProxyType(
    {
        "recall": measures.recall_at,
        "precision": measures.precision_at,
        "f1": measures.f1_at,
        "ndcg": measures.ndcg_at,
        "context_precision": measures.context_precision,
        "mrr": measures.reciprocal_rank,
    }
)


def ranking_metrics(ks: Sequence[int] = KS) -> tuple[RankingMetric, ...]:
    """Returns all ranking metrics at these cut-offs, recall first.

    >>> ranking_metrics([3])
    ('recall@3', 'precision@3', 'f1@3', 'ndcg@3', 'context_precision@3', 'mrr')
    """
    names = (f"{measure}@{k}" for measure in _MEASURES if measure != "mrr" for k in sorted(set(ks)))
    return tuple(RankingMetric(name) for name in (*names, "mrr"))
