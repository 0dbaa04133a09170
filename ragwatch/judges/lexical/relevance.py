"""Estimates the relevance of each context: how useful it was for the answer that was given.

It compares the contexts with the answer, not with the question. A logistic model takes four features, each as it is and
as its lead over the mean of the sample's contexts:

| name         | meaning                                                                                   |
|--------------|-------------------------------------------------------------------------------------------|
| word_recall  | IDF-weighted recall of the answer's terms in the context                                  |
| new_recall   | the same over the terms that are not in the question                                      |
| support_mean | mean probability, over the claims, that this context alone supports the claim             |
| share        | recall where each term's weight is divided by the number of contexts with the term        |

The last one separates a source from its distractors: a word that only one context contains identifies the source.
The question is added to answers of fewer than `SHORT` terms.

Among contexts with equal texts none has a lead. So a context that alone supports a claim is relevant in any case
(`lift_used`); for a short answer, which almost any context seems to support, only if no context is relevant already.

Three rules are applied to the result, so that the stage at fault can be found in live traffic, where answers may be
wrong:

1. If nothing was taken from the contexts (the answer abstains, or no claim is supported), relevance is the coverage of
   the question, to tell an answer that ignores good documents from one without any.
2. Gate: if no context covers even `GATE` of the question (of at least `GATE_WORDS` terms), the documents are off topic,
   and none is relevant, even if it was copied. The best context counts, because in multi-hop questions a necessary
   context may have no word of the question. The same holds if the question names an identifier (`textwrap.dedent`,
   `max_len`) and no context has any such name, whole or by its last part.
3. An unused top context is relevant if it covers at least `ENOUGH` of the question and no less than every used
   context.
"""

import math
import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cache

from ragwatch.judges.claims.limits import Check, checked, unlimited
from ragwatch.judges.claims.words import fold, term, terms
from ragwatch.judges.lexical.features import coverage
from ragwatch.judges.lexical.passages import PreparedPassage
from ragwatch.judges.text_classifier import table_text

_PLAIN = ("word_recall", "new_recall", "support_mean", "share")
NAMES = (*_PLAIN, *(f"{name}_lead" for name in _PLAIN))

SHORT = 5
ENOUGH = 0.5
GATE = 0.25
GATE_WORDS = 2


def rows(
    answer: Mapping[str, float],
    question: AbstractSet[str],
    passages: Sequence[PreparedPassage],
    supports: Sequence[Sequence[float]],
    check: Check = unlimited,
) -> list[tuple[float, ...]]:
    """Compute the features of each context, in the order of `NAMES`.

    Terms of the answer have their rarity; `supports` are, for each claim, the probabilities that each context alone
    supports it.
    """
    new = {name: weight for name, weight in answer.items() if name not in question} or answer
    shared = {
        name: weight / max(1, sum([name in passage.terms for passage in passages]))
        for name, weight in checked(answer.items(), check)
    }
    plain: list[tuple[float, ...]] = []
    for rank, passage in checked(enumerate(passages), check):
        support = math.fsum(row[rank] for row in supports) / max(1, len(supports))
        recalls = [coverage(weights, passage.terms) for weights in (answer, new, shared)]
        plain.append((recalls[0], recalls[1], support, recalls[2]))
    means = [math.fsum(column) / len(plain) for column in zip(*plain, strict=True)]
    return [(*row, *(value - mean for value, mean in zip(row, means, strict=True))) for row in plain]


def identifiers_missing(names: AbstractSet[str], passages: Sequence[PreparedPassage]) -> bool:
    """Whether a question has identifiers and no context contains one of them, whole or by its last part."""
    expected = set(names).union(*(terms(re.split(r"[._]", name)[-1]) for name in names))
    return bool(names) and all(expected.isdisjoint(passage.terms) for passage in passages)


def lift_used(read: Sequence[float], used: Sequence[bool], *, short: bool) -> list[float]:
    """Move the relevance of used contexts to the upper half, in the same order.

    >>> lift_used([0.2, 0.4], [True, False], short=False), lift_used([0.2, 0.6], [True, False], short=True)
    ([0.6, 0.4], [0.2, 0.6])
    """
    if short and max(read, default=0.0) >= ENOUGH:
        return list(read)
    return [0.5 + value / 2 if is_used else value for value, is_used in zip(read, used, strict=True)]


def apply_rules(
    read: Sequence[float] | None,
    covers: Sequence[float] | None,
    used: Sequence[bool],
    question_terms: int,
    *,
    identifiers_missing: bool = False,
) -> list[float | None]:
    """Apply the three rules to the relevance of contexts; None without a supported claim and without a question.

    Args:
        read: Relevance by the answer; None when nothing in the answer comes from the contexts.
        covers: Coverage of the question by each context; None when the question is unknown or has no terms.
        used: Whether each context alone supports some claim.
        question_terms: Number of distinct terms of the question.
        identifiers_missing: See the function `identifiers_missing`.

    >>> apply_rules([0.9, 0.1], [0.1, 0.2], [True, False], 3)          # copied from the wrong documents
    [0.225, 0.025]
    >>> apply_rules(None, [0.8, 0.2], [False, False], 3)               # abstained although the first would do
    [0.8, 0.2]
    >>> apply_rules([0.3, 0.9], [1.0, 0.6], [False, True], 3)          # the better one is unused
    [1.0, 0.9]
    """
    if read is None:
        return list(covers) if covers is not None else [None] * len(used)
    final: list[float | None] = list(read)
    if covers is None or not final:
        return final
    if identifiers_missing or (question_terms >= GATE_WORDS and max(covers) < GATE):
        return [value * GATE for value in read]  # below every threshold, in the same order
    best_used = max((cover for cover, is_used in zip(covers, used, strict=True) if is_used), default=0.0)
    if not used[0] and covers[0] >= max(ENOUGH, best_used):
        final[0] = max(read[0], covers[0])
    return final


BY_CONTEXT, BY_ANSWER = 0.4, 0.6
"""What a synonym covers of a term: less in contexts, because those of another topic may hold a few by chance."""
FRAME = 0.3
"""Weight of a word that says what kind of text is wanted, beside its rarity."""

_FRAMES = frozenset(
    terms(
        "policy policies rule process procedure detail information info explain tell describe description overview"
        " summary summarize question answer example way possible know please help thing mean give list name type kind"
    )
)


@cache
def _synonyms() -> Mapping[str, frozenset[str]]:
    related: dict[str, set[str]] = {}
    for line in table_text("synonyms.txt").splitlines():
        words = {term(fold(word)) for word in line.split()} - {""} if not line.startswith("#") else set()
        for word in words:
            related.setdefault(word, set()).update(words)
    return {word: frozenset(words - {word}) for word, words in related.items()}


def question_share(question: Mapping[str, float], words: AbstractSet[str], by_synonym: float) -> float:
    """Share of the weighted terms of a question that a text covers, in its words or others; 0.0 without a question.

    An answer need not repeat its question: "Parcels may be sent back up to forty days after delivery" says what the
    return policy is. So a term is covered by itself, or less (`by_synonym`) by a word that the shipped table has beside
    it. Words that only say what kind of text is wanted ("policy", "details") weigh little.

    >>> question_share({"return": 0.75, "tea": 0.25}, {"tea", "sent"}, BY_ANSWER)
    0.7
    >>> question_share({"policy": 1.0, "tea": 0.1}, {"tea"}, BY_ANSWER)
    0.25
    """
    weights = {name: weight * (FRAME if name in _FRAMES else 1.0) for name, weight in question.items()}
    total = math.fsum(weights.values())
    related = _synonyms()
    covers = (
        weight * (1.0 if name in words else by_synonym)
        for name, weight in weights.items()
        if name in words or not words.isdisjoint(related.get(name, ()))
    )
    return math.fsum(covers) / total if total else 0.0
