"""Chooses what the demo answers (whole sentences of one passage, or nothing) and how it words that.

Inventions are those of a language model: little in a right answer is changed, so that all of it sounds right. The same
question gets the same words.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from ragwatch.demo import tokenizer
from ragwatch.demo.corpus import Passage
from ragwatch.demo.questions import ROUTES
from ragwatch.demo.tokenizer import stable_hash

MIN_COVERAGE = 0.6  # share of the question's weight below which a passage does not answer it
MAX_SENTENCES = 3
_RANK_MARGIN = 0.06  # additional share of the question's weight by which a passage beats the one ranked above it
_FIRST_MARGIN = 0.15  # additional share of the question's weight by which a sentence beats the first
_MIN_GAIN = 0.08  # share of the question's weight that a further sentence must add


class Quote(NamedTuple):
    """Sentences of one passage."""

    rank: int  # 0-based position of the passage among those that were retrieved
    title: str
    sentences: tuple[str, ...]  # some of its sentences, in their order


class Answerer:
    """Selects the sentences that share the rarest words with the question, by their frequency in the passages."""

    def __init__(self, passages: Iterable[Passage]) -> None:
        corpus = tuple(passages)
        self._idf = inverse_document_frequencies(corpus)
        self._unknown_idf = math.log(1 + 2 * len(corpus))  # rarer than a word of one passage

    def coverage(self, question: str, text: str) -> float:
        """Share of the question's weight (inverse document frequency of its words) that the text contains, 0 to 1."""
        weights = self._weights(question)
        contained = set(tokenizer.content(text))
        total = sum(weights.values())
        return sum(weight for word, weight in weights.items() if word in contained) / total if total else 0.0

    def answer(self, question: str, passages: Sequence[Passage]) -> Quote | None:
        """Quotes one to three sentences of one passage; None if none covers the question."""
        best = self._best(question, passages)
        return None if best is None else self.quote(question, passages, best)

    def quote(self, question: str, passages: Sequence[Passage], rank: int) -> Quote:
        """Quotes the sentences of the passage of this rank that best cover the question, in their order."""
        passage = passages[rank]
        weights = self._weights(question)
        lines = tokenizer.sentences(passage.body)
        kept = {self._first(weights, lines)}
        missing = set(weights) - set(tokenizer.content(f"{passage.title} {lines[min(kept)]}"))
        while len(kept) < min(MAX_SENTENCES, len(lines)):
            gains = {
                index: sum(weights[word] for word in missing & set(tokenizer.content(line)))
                for index, line in enumerate(lines)
                if index not in kept
            }
            index = max(gains, key=lambda index: (gains[index], -index))
            if gains[index] < _MIN_GAIN * sum(weights.values()):
                break
            kept.add(index)
            missing -= set(tokenizer.content(lines[index]))
        return Quote(rank, passage.title, tuple(lines[index] for index in sorted(kept)))

    def wrong_rank(self, question: str, passages: Sequence[Passage]) -> int:
        """Rank of a wrong passage: of those below the first, the least similar to the question and to the first.

        Simulates a model that ignores the best document of its prompt. A single passage is returned as it is.
        """
        top = passages[0]
        ranks = range(len(passages))
        lower = [rank for rank in ranks if passages[rank].title != top.title] or ranks[1:] or ranks
        texts = [passage.text for passage in passages]
        return min(lower, key=lambda rank: self.coverage(question, texts[rank]) + self.coverage(texts[rank], top.text))

    def _best(self, question: str, passages: Sequence[Passage]) -> int | None:
        # The order of the retriever counts, unless a lower passage covers clearly more.
        scored = [
            (self.coverage(question, passage.text) - _RANK_MARGIN * rank, rank) for rank, passage in enumerate(passages)
        ]
        if not scored:
            return None
        score, rank = max(scored, key=lambda pair: (pair[0], -pair[1]))
        return rank if score + _RANK_MARGIN * rank >= MIN_COVERAGE else None

    def _first(self, weights: Mapping[str, float], lines: Sequence[str]) -> int:
        """Index of the opening sentence: the first, which defines the term, unless another covers clearly more."""
        coverage = [sum(weights.get(word, 0.0) for word in tokenizer.content(line)) for line in lines]
        coverage[0] += _FIRST_MARGIN * sum(weights.values())
        return coverage.index(max(coverage))

    def _weights(self, question: str) -> dict[str, float]:
        return {word: self._idf.get(word, self._unknown_idf) for word in tokenizer.content(question)}


@cache
def inverse_document_frequencies(passages: tuple[Passage, ...]) -> Mapping[str, float]:
    """Inverse document frequency of each stem: log(1 + passages / passages that contain it)."""
    counts = Counter(word for passage in passages for word in tokenizer.content(passage.text))
    return MappingProxyType({word: math.log(1 + len(passages) / count) for word, count in counts.items()})


_NUMBER = re.compile(r"(?<![\w.])[1-9]\d?(?![\w.]\w)")
_OPPOSITES = {
    one: other
    for pair in (
        "first last", "left right", "ascending descending", "largest smallest", "leading trailing", "before after",
        "start end", "beginning end", "lower upper", "lowercase uppercase", "True False", "read write", "reads writes",
        "minimum maximum", "oldest newest", "local global", "client server", "seconds milliseconds",
        "keys values", "files directories", "list tuple", "input output", "open closed",
    )
    for one, other in (pair.split(), pair.split()[::-1])
}  # fmt: skip
_OPPOSITE = re.compile(rf"\b(?:{'|'.join(_OPPOSITES)})\b")
_CONDITION = re.compile(r",? (?:if|unless|only if|provided that|except) [^.;:()]+(?=[.;:])")
_NEGATION = re.compile(r"\b(does|do|is|are|was|were|has|have|can|will|should) ?(?:not\b|n't)")
_CLAUSES = (
    "and gives up after {number} attempts",
    "and keeps the result in a cache for {number} minutes",
    "which has been deprecated since version 3.{small}",
    "which takes at most {number} items per call",
    "and writes a warning to the log after {number} seconds",
    "which works on 64-bit platforms only",
    "and retries {small} times before it raises TimeoutError",
    "and leaves a backup copy in the temporary folder",
)
_FACTS = (
    "The optional argument limit defaults to {number}.",
    "Since version 3.{small} it runs in a background thread.",
    "Results larger than {number} kilobytes are compressed on disk.",
    "It needs administrator rights on Windows.",
    "Each call is written to the audit log for {number} days.",
    "It is about {small} times faster with the environment variable PYTHONTURBO.",
)


def with_inventions(question: str, sentences: Sequence[str]) -> tuple[str, ...]:
    """Changes one sentence of a right answer and adds a false one; the same ones for the same question.

    >>> with_inventions("Why?", ["The queue is read every 5 seconds."])[0]
    'The queue is read every 16 seconds.'
    """
    seed = stable_hash(question)
    changed = seed % len(sentences)
    lines = [_changed(line, seed) if place == changed else line for place, line in enumerate(sentences)]
    return (*lines, _filled(_FACTS, seed // 100))


def _changed(sentence: str, seed: int) -> str:
    """A sentence with a number or a word changed, without its condition or negation, or with a clause more."""
    changes = (
        lambda: _NUMBER.sub(lambda number: str(3 * int(number[0]) + 1), sentence, count=1),
        lambda: _OPPOSITE.sub(lambda word: _OPPOSITES[word[0]], sentence, count=1),
        lambda: _NEGATION.sub(r"\1", _CONDITION.sub("", sentence, count=1), count=1),
    )
    for turn in range(len(changes)):
        changed = changes[(seed + turn) % len(changes)]()
        if changed != sentence:
            return changed
    return f"{sentence[:-1]}, {_filled(_CLAUSES, seed)}{sentence[-1]}"


def _filled(templates: Sequence[str], seed: int) -> str:
    template = templates[seed % len(templates)]
    return template.format(number=15 + seed // 10 % 80, small=4 + seed // 1000 % 6)


ABSTENTION = "I could not find that in the documentation."
OPENINGS = (
    "Sure!",
    "Thanks for your question!",
    "Good question!",
    "Here is what I found in the documentation.",
    "Happy to help!",
)
CLOSINGS = (
    "I hope this helps!",
    "Would you like to see an example?",
    "Let me know if you need anything else.",
    "Shall I look up related functions?",
    "Feel free to ask if anything is unclear.",
)
OFFERS = (
    "Would you like me to search for something similar?",
    "Could you rephrase your question?",
    "Let me know if I can help with anything else.",
)
_MARKS = dict(zip(ROUTES, (" [{}]", " (source {})"), strict=True))  # each route cites in a style of its own
_SHARES = {"search": 3, "support": 6}  # of ten answers, those with an opening; as many have a closing


def spoken(question: str, quote: Quote, route: str) -> str:
    """Words an answer: each sentence cites its passage, and a share of the answers begins or ends with courtesy."""
    mark = _MARKS[route].format(quote.rank + 1)
    body = " ".join(f"{sentence.rstrip('.:')}{mark}." for sentence in quote.sentences)
    opening, closing = (_some(question, part, route) for part in (OPENINGS, CLOSINGS))
    return " ".join(filter(None, (opening, f"{quote.title}: {body}", closing)))


def declined(question: str) -> str:
    """Words an abstention: what was not there, and an offer."""
    return f"{ABSTENTION} {OFFERS[stable_hash(question) % len(OFFERS)]}"


def _some(question: str, phrases: Sequence[str], route: str) -> str:
    """One of the phrases, for a share of the questions; else nothing."""
    seed = stable_hash(f"{phrases[0]} {question}")
    return phrases[seed // 10 % len(phrases)] if seed % 10 < _SHARES[route] else ""
