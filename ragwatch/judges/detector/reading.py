"""Rules on claims with a detector and the comparison of words.

Contexts are cut into windows that the model can read. A window holds whole contexts as long as they fit; a longer
context is cut between sentences, a longer sentence between tokens. The text of a window is verbatim.

A claim classifier reads each sentence of the answer against the windows of the contexts, then the facts of those
sentences that it does not call supported. A token classifier reads the whole answer against each window. Of several
windows the one that supports most counts. The lexical ruling stands for what the model does not read (counted, see
`LexicalOnlyReason`).

Support is the logistic function of `LEXICAL * x + MODEL * y`, of the logits of words and of the model. The weights are
fixed, not fitted: the mean of two opinions. In published scores by row, the rank mean of words and LettuceDetect-base
is better than either (AUROC .886, against .840 and .843, on 829 real answers). No detector was measured here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from ragwatch.judges.claims.limits import Check
from ragwatch.judges.detector.artefact import Classes, Family, Reads
from ragwatch.judges.lexical.facts import below, capped
from ragwatch.judges.lexical.passages import PreparedPassage
from ragwatch.judges.lexical.rows import ClaimRow, ClaimRuling, ModelRules, combined, least_together, ruling_by_words
from ragwatch.judges.lexical.tables import logistic, logit
from ragwatch.model.evidence import ClaimVerdict
from ragwatch.model.sample import Sample

if TYPE_CHECKING:  # it imports the packages of an extra
    from ragwatch.judges.detector.session import DetectorModel, TokenSignal
from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from ragwatch.judges.lexical.features import ClaimWords, coverage

_JOINT_TOKENS = 8  # of the words around a context in a template
_MAX_SENTENCE_CHARS = 4000  # tokenised at once


@dataclass(frozen=True, slots=True)
class Window:
    """A part of the contexts: what it holds of each of them, and the terms of these sentences."""

    ranks: tuple[int, ...]
    texts: tuple[str, ...]
    terms: AbstractSet[str]


@dataclass(frozen=True, slots=True)
class _Part:
    """Consecutive text of one context, with its number of tokens."""

    rank: int
    start: int
    end: int
    tokens: int
    terms: AbstractSet[str]


def windows_of(
    texts: Sequence[str],
    passages: Sequence[PreparedPassage],
    ends: Callable[[str], Sequence[int]],
    *,
    tokens: int,
    check: Check,
) -> list[Window]:
    """Cut contexts into windows, in their order.

    `ends` returns the offsets after each token of a text; `tokens` is their maximum number in a window.
    """
    windows: list[list[_Part]] = []
    free = 0
    for rank, (text, passage) in enumerate(zip(texts, passages, strict=True)):
        parts = list(_parts(rank, text, passage, ends, tokens=tokens - _JOINT_TOKENS, check=check))
        whole = sum(part.tokens for part in parts)
        if parts and (not windows or free < whole + _JOINT_TOKENS <= tokens):
            windows.append([])
            free = tokens
        for index, part in enumerate(parts):
            need = part.tokens + (0 if index else _JOINT_TOKENS)
            if need > free and windows[-1]:
                windows.append([])
                free, need = tokens, part.tokens + _JOINT_TOKENS
            windows[-1].append(part)
            free -= need
    return [_window(parts, texts) for parts in windows]


def most_similar(windows: Sequence[Window], words: ClaimWords, count: int) -> list[Window]:
    """The windows with the most words of a claim, weighted by their rarity; the earliest among equals."""
    if len(windows) <= count:
        return list(windows)
    return sorted(windows, key=lambda window: -coverage(words.rarity, window.terms))[:count]


def _parts(
    rank: int, text: str, passage: PreparedPassage, ends: Callable[[str], Sequence[int]], *, tokens: int, check: Check
) -> Iterator[_Part]:
    """The sentences of a context, each as far as the next one begins, and the pieces of those that are too long."""
    for index, (start, _) in enumerate(passage.offsets):
        stop = passage.offsets[index + 1][0] if index + 1 < len(passage.offsets) else len(text)
        for first in range(start, stop, _MAX_SENTENCE_CHARS):
            check()
            last = min(stop, first + _MAX_SENTENCE_CHARS)
            offsets = ends(text[first:last])
            for at in range(0, len(offsets), tokens):
                begin = first + (offsets[at - 1] if at else 0)
                end = last if at + tokens >= len(offsets) else first + offsets[at + tokens - 1]
                yield _Part(rank, begin, end, len(offsets[at : at + tokens]), passage.sentences[index])


def _window(parts: Sequence[_Part], texts: Sequence[str]) -> Window:
    ranks = tuple(dict.fromkeys(part.rank for part in parts))
    spans = {rank: [part for part in parts if part.rank == rank] for rank in ranks}
    return Window(
        ranks,
        tuple(texts[rank][of[0].start : of[-1].end].strip() for rank, of in spans.items()),
        frozenset().union(*(part.terms for part in parts)),
    )


LEXICAL, MODEL = 0.5, 0.5
"""Weights of the two logits."""

MOST = 6.0
"""Logits of the model count at most so much: trained classifiers are surer than they are right."""


class LexicalOnlyReason(StrEnum):
    """Why the lexical ruling stands instead of the model's. The values are label values of a series."""

    TOO_LONG = "too_long"
    TOO_MANY = "too_many"


class Reading(NamedTuple):
    """What the model says of one claim."""

    support: float  # logit that a window supports it, of the one that supports it most
    against: float | None  # the same for contradiction; None if not read
    ranks: tuple[int, ...]  # contexts of the window that supports it most


@dataclass(frozen=True, slots=True)
class DetectorPass:
    """Rules on the claims of samples.

    `on_lexical_only` is called with the number of claims of a sample that the model did not read, by reason.
    """

    model: DetectorModel
    family: Family
    classes: Classes
    rules: ModelRules
    on_lexical_only: Callable[[Mapping[LexicalOnlyReason, int]], None]

    @property
    def _contradicts(self) -> bool:
        return self.classes.contradicted is not None

    def __call__(
        self,
        rows: Sequence[ClaimRow],
        passages: Sequence[PreparedPassage],
        texts: Sequence[str],
        *,
        sample: Sample,
        check: Check,
    ) -> list[ClaimRuling]:
        """Rule on each row; `check` is called before each input of the model."""
        windows = windows_of(texts, passages, self.model.ends, tokens=self.family.window, check=check)
        reader = _Reader(self.model, windows, self.rules.max_pairs, sample, check)
        if not windows or not rows:
            return [self._lexical(row) for row in rows]
        if self.family.reads is Reads.ANSWER:
            rulings = [self._ruling(row, reader.in_answer(row)) for row in rows]
        else:
            reader.share(len({id(row.whole) for row in rows}) + sum(row.sentence is not None for row in rows))
            rulings = [
                ruling
                for _, group in groupby(rows, key=lambda row: id(row.whole))
                for ruling in self._facts(list(group), reader)
            ]
        self.on_lexical_only(+reader.lexical_only)
        return rulings

    def _facts(self, rows: Sequence[ClaimRow], reader: _Reader) -> list[ClaimRuling]:
        """Rule on the facts of a sentence, or on the sentence if it is not split.

        A supported sentence supports its facts; another is the reading of its weakest fact, as in
        `atomic_facts.combine`.
        """
        reading = reader.claim(rows[0].whole)
        if reading is None:
            return [self._lexical(row) for row in rows]
        whole = self._ruling(rows[0].whole, reading)
        if rows[0].sentence is None or whole.verdict is ClaimVerdict.SUPPORTED:
            return [whole] * len(rows)
        return combined(whole, [self._ruling(row, reader.claim(row)) for row in rows])

    def _ruling(self, row: ClaimRow, reading: Reading | None) -> ClaimRuling:
        if reading is None:
            return self._lexical(row)
        threshold = self.rules.supported_from
        support = fused(logit(row.support), reading.support)
        support = below(capped(support, row.missing), row.missing, threshold)
        if support >= threshold:
            alone: Sequence[int] = [rank for rank, value in enumerate(row.alone) if value >= threshold]
            if not alone and len(reading.ranks) == 1:
                alone = reading.ranks
            cells = row.support_cells(alone, least_together(row))
            return ClaimRuling(ClaimVerdict.SUPPORTED, support, cells, against=self._contradicts)
        contradicted = reading.against is not None and logistic(reading.against) >= self.rules.contradicted_from
        verdict = ClaimVerdict.CONTRADICTED if contradicted else ClaimVerdict.NOT_IN_CONTEXT
        return ClaimRuling(verdict, support, row.informed_cells(), against=self._contradicts)

    def _lexical(self, row: ClaimRow) -> ClaimRuling:
        ruling = ruling_by_words(row, self.rules)
        return replace(ruling, against=self._contradicts and ruling.against)


def fused(lexical: float, model: float) -> float:
    """The probability of support from the logits of words and of the model.

    >>> fused(0.0, 0.0), round(fused(2.0, -4.0), 3), fused(0.0, 9.0) == fused(0.0, 6.0)
    (0.5, 0.269, True)
    """
    return logistic(LEXICAL * lexical + MODEL * max(-MOST, min(MOST, model)))


class _Reader:
    """Reads one sample with the model, at most `max_pairs` inputs."""

    def __init__(
        self, model: DetectorModel, windows: Sequence[Window], max_pairs: int, sample: Sample, check: Check
    ) -> None:
        self.lexical_only: Counter[LexicalOnlyReason] = Counter()
        self._model, self._windows, self._left = model, windows, max_pairs
        self._sample, self._check = sample, check
        self._per_claim = max_pairs
        self._readings: dict[str, Reading | None] = {}

    def share(self, claims: int) -> None:
        """Divide the inputs among the claims: each is read in the windows that have most of its words."""
        self._per_claim = max(1, self._left // max(1, claims))

    def claim(self, row: ClaimRow) -> Reading | None:
        """Read one claim; None if the model did not."""
        text = " ".join(row.claim.words.split())
        if text in self._readings:
            return self._readings[text]
        signals = []
        for window in most_similar(self._windows, row.words, self._per_claim):
            if not self._left:
                break
            self._check()
            signal = self._model.claim("\n".join(window.texts), text)
            if signal is None:
                self.lexical_only[LexicalOnlyReason.TOO_LONG] += 1
                break
            self._left -= 1
            signals.append((signal, window.ranks))
        else:
            best, ranks = max(signals, key=lambda one: one[0].support)
            against = [signal.against for signal, _ in signals if signal.against is not None]
            self._readings[text] = Reading(best.support, max(against, default=None), ranks)
            return self._readings[text]
        if not self._left:
            self.lexical_only[LexicalOnlyReason.TOO_MANY] += 1
        return self._readings.setdefault(text, None)

    def in_answer(self, row: ClaimRow) -> Reading | None:
        """What a token classifier says of a claim: as much as of its worst token; None if the model did not read."""
        if isinstance(self._answer, LexicalOnlyReason):
            self.lexical_only[self._answer] += 1
            return None
        start, end = row.claim.start, row.claim.end
        readings = []
        for tokens, ranks in self._answer:
            own = [token.support for token in tokens if token.start < end and token.end > start]
            readings.append((own, ranks))
        if not readings[0][0]:
            return None
        # A claim that joins two windows has tokens that only one of them supports.
        best = [max(supports) for supports in zip(*(own for own, _ in readings), strict=True)]
        return Reading(min(best), None, max(readings, key=lambda one: min(one[0]))[1])

    @cached_property
    def _answer(self) -> list[tuple[list[TokenSignal], tuple[int, ...]]] | LexicalOnlyReason:
        """The tokens of the answer in each window; or why they are not read."""
        sample, read = self._sample, []
        if len(self._windows) > self._left:
            return LexicalOnlyReason.TOO_MANY
        for window in self._windows:
            self._check()
            tokens = self._model.answer(sample.question, window.texts, sample.answer)
            if tokens is None:
                return LexicalOnlyReason.TOO_LONG
            read.append((tokens, window.ranks))
        return read
