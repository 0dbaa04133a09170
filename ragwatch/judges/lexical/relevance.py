"""Relevance: is a context useful for arriving at the answer that was produced?

It is read from the answer, not from the question: which context holds the answer's words. A logistic model over four
numbers, each once as it is and once as its lead over the mean of the sample's contexts:

| name         | meaning                                                                                   |
|--------------|-------------------------------------------------------------------------------------------|
| word_recall  | IDF-weighted recall of the answer's terms in the context                                  |
| new_recall   | the same over the terms that the question does not hold                                   |
| support_mean | mean probability, over the claims, that this context alone supports the claim             |
| share        | recall where each term's weight is shared out among the contexts that hold it             |

The last one tells a source from its distractors: a word that one context alone holds says where the answer came from.
Answers of fewer than `SHORT` terms are read together with the question.

Contexts that all say the same leave none in the lead. So a context that alone supports a claim is relevant all the
same (`lifted`); for a short answer, which any mention seems to support, only where no context stands out.

Three rules stand on top, so that the stage at fault can be named in live traffic, where answers may be wrong:

1. Nothing taken from the contexts (the answer abstains, or no claim is supported): relevance is the coverage of the
   question, so that an answer which ignores good documents is told from one that never got any.
2. Gate: where no context covers even `GATE` of the question (of at least `GATE_WORDS` terms), the documents are about
   something else, and none is relevant however faithfully it was copied. The best context counts because in multi-hop
   questions a needed context may hold none of the question's words. The same holds where the question names an
   identifier (`textwrap.dedent`, `max_len`) and no context holds any such name, whole or by its last part.
3. Left aside: the top context, unused, is relevant when it covers at least `ENOUGH` of the question and no less than
   every context that was used.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from ragwatch.judges.lexical.features import UNLISTED
from ragwatch.judges.lexical.limits import Check, unlimited
from ragwatch.judges.lexical.passages import PreparedPassage
from ragwatch.judges.lexical.words import terms

_PLAIN = ("word_recall", "new_recall", "support_mean", "share")
NAMES = (*_PLAIN, *(f"{name}_lead" for name in _PLAIN))

SHORT = 5
ENOUGH = 0.5
GATE = 0.25
GATE_WORDS = 2


def weigh(words: Iterable[str], rarity: Mapping[str, float]) -> dict[str, float]:
    """Distinct terms, in order, with their rarity."""
    return {term: rarity.get(term, UNLISTED) for term in dict.fromkeys(words)}


def coverage(weights: Mapping[str, float], found: AbstractSet[str]) -> float:
    """Weighted recall of terms; 0.0 where there are none.

    >>> coverage({"tea": 0.75, "green": 0.25}, {"tea"})
    0.75
    """
    total = math.fsum(weights.values())
    return math.fsum([weight for term, weight in weights.items() if term in found]) / total if total else 0.0


def rows(
    answer: Mapping[str, float],
    question: AbstractSet[str],
    passages: Sequence[PreparedPassage],
    supports: Sequence[Sequence[float]],
    check: Check = unlimited,
) -> list[tuple[float, ...]]:
    """The features of each context, in the order of `NAMES`.

    Args:
        answer: Terms of the answer with their rarity (with the question's, when the answer is short).
        question: Terms of the question.
        passages: The contexts, read.
        supports: For each claim, the probability that each context alone supports it.
        check: Called after each term and each context.
    """
    new = {term: weight for term, weight in answer.items() if term not in question} or answer
    holders = {term: _holders(term, passages, check) for term in answer}
    shared = {term: weight / max(1, holders[term]) for term, weight in answer.items()}
    plain: list[tuple[float, ...]] = []
    for rank, passage in enumerate(passages):
        check()
        support = math.fsum(row[rank] for row in supports) / max(1, len(supports))
        recalls = [coverage(each, passage.terms) for each in (answer, new, shared)]
        plain.append((recalls[0], recalls[1], support, recalls[2]))
    means = [math.fsum(column) / len(plain) for column in zip(*plain, strict=True)]
    return [(*row, *(value - mean for value, mean in zip(row, means, strict=True))) for row in plain]


def _holders(term: str, passages: Sequence[PreparedPassage], check: Check) -> int:
    check()
    return sum([term in passage.terms for passage in passages])


def names_lost(names: AbstractSet[str], passages: Sequence[PreparedPassage]) -> bool:
    """Whether a question names identifiers and no context holds one of them, whole or by its last part."""
    wanted = set(names).union(*(terms(re.split(r"[._]", name)[-1]) for name in names))
    return bool(names) and all(wanted.isdisjoint(passage.terms) for passage in passages)


def lifted(read: Sequence[float], used: Sequence[bool], *, short: bool) -> list[float]:
    """Relevance with used contexts lifted into the upper half, their order kept.

    >>> lifted([0.2, 0.4], [True, False], short=False), lifted([0.2, 0.6], [True, False], short=True)
    ([0.6, 0.4], [0.2, 0.6])
    """
    if short and max(read, default=0.0) >= ENOUGH:
        return list(read)
    return [0.5 + value / 2 if use else value for value, use in zip(read, used, strict=True)]


def ruled(
    read: Sequence[float] | None,
    covers: Sequence[float] | None,
    used: Sequence[bool],
    question_terms: int,
    *,
    names_lost: bool = False,
) -> list[float | None]:
    """Relevance of each context after the three rules; None where there is neither answer nor question to read from.

    Args:
        read: Relevance read from the answer; None when nothing in the answer comes from the contexts.
        covers: Coverage of the question by each context; None when the question is unknown or has no terms.
        used: Whether each context alone supports some claim.
        question_terms: Number of distinct terms of the question.
        names_lost: See `names_lost`.

    >>> ruled([0.9, 0.1], [0.1, 0.2], [True, False], 3)          # copied from the wrong documents
    [0.225, 0.025]
    >>> ruled(None, [0.8, 0.2], [False, False], 3)               # abstained although the first would do
    [0.8, 0.2]
    >>> ruled([0.3, 0.9], [1.0, 0.6], [False, True], 3)          # the better one left aside
    [1.0, 0.9]
    """
    if read is None:
        return list(covers) if covers is not None else [None] * len(used)
    final: list[float | None] = list(read)
    if covers is None or not final:
        return final
    if names_lost or (question_terms >= GATE_WORDS and max(covers) < GATE):
        return [value * GATE for value in read]  # below every threshold, yet still in order
    best_used = max((cover for cover, use in zip(covers, used, strict=True) if use), default=0.0)
    if not used[0] and covers[0] >= max(ENOUGH, best_used):
        final[0] = max(read[0], covers[0])
    return final
