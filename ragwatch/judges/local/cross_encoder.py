"""The cross-encoder pass: which pairs of claim and context the model reads after words have, and the combined ruling.

All contexts together are always read: a swapped name or a negation hides where words agree. A context alone is read
only for claims that are supported, and only where words leave it open. The lexical ruling stands for a claim of which
no context holds a word, and for what the model cannot read or has no time for (counted, see `LexicalOnlyReason`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf
from typing import TYPE_CHECKING

from ragwatch.core.evidence import ClaimVerdict
from ragwatch.judges.lexical.evidence import window
from ragwatch.judges.lexical.limits import Check, Deadline
from ragwatch.judges.lexical.passages import PreparedPassage
from ragwatch.judges.lexical.reader import ClaimRow, ClaimRuling, Thresholds, lexical_ruling
from ragwatch.judges.local.artefact import ModelArtefact
from ragwatch.judges.local.fusion import ModelSignals, lexical_logit
from ragwatch.judges.local.language import is_read

if TYPE_CHECKING:  # it imports what only who wants the model needs
    from ragwatch.judges.local.session import PairModel

MOST_UNKNOWN = 0.15
"""A text of which the vocabulary does not know more than this share of the pieces is not read by the model."""

Texts = tuple[str, str]
"""A claim and its evidence."""


class LexicalOnlyReason(StrEnum):
    """Why words decided where the model should have. The values are label values of a series."""

    LANGUAGE = "language"
    TOO_MANY = "too_many"


@dataclass(frozen=True, slots=True)
class CrossEncoderRules:
    """Where readings become verdicts.

    Attributes:
        words: Where the words' probabilities do, where words decide.
        supported_from: Probability at which a claim counts as supported.
        contradicted_from: Probability at which a claim that is not supported counts as contradicted.
        max_pairs: Pairs of a sample that the model reads; it bounds the time.
    """

    words: Thresholds
    supported_from: float
    contradicted_from: float
    max_pairs: int


class CrossEncoderPass:
    """Rules on claims by what the model says beside what words say. It is a `reader.Second`.

    Args:
        artefact: What the model's numbers mean.
        model: The model.
        rules: Where readings become verdicts.
        left: Told how many readings of a sample words had to decide, and why.
    """

    def __init__(
        self,
        artefact: ModelArtefact,
        model: PairModel,
        rules: CrossEncoderRules,
        left: Callable[[Mapping[LexicalOnlyReason, int]], None],
    ) -> None:
        self._artefact = artefact
        self._model = model
        self._rules = rules
        self._left = left

    def __call__(
        self,
        rows: Sequence[ClaimRow],
        passages: Sequence[PreparedPassage],
        texts: Sequence[str],
        *,
        deadline: Deadline | None = None,
    ) -> list[ClaimRuling]:
        """A ruling for each row; all but the model's time, which `max_pairs` bounds, counts."""
        deadline = deadline or Deadline(inf)
        check: Check = deadline
        pages = _WindowPages(self._model, self._rules.max_pairs, deadline)
        asked = [self._texts(row, passages, texts, check) for row in rows]
        pages.read(asked)
        together = [self._together(row, pages.said(each)) for row, each in zip(rows, asked, strict=True)]
        unclear = [self._unclear(row, one, passages, texts, check) for row, one in zip(rows, together, strict=True)]
        pages.read(each for cells in unclear for each in cells.values())
        found = [
            self._by_words(row, each) if one is None else self._apart(row, one, cells, pages)
            for row, one, cells, each in zip(rows, together, unclear, asked, strict=True)
        ]
        self._left(+pages.left)
        return found

    def _texts(self, row: ClaimRow, passages: Sequence[PreparedPassage], texts: Sequence[str], check: Check) -> Texts:
        check()
        shown = window(row.words, passages, texts, budget=self._artefact.budget)
        return " ".join(row.said.words.split()), shown.text

    def _together(self, row: ClaimRow, signals: ModelSignals | None) -> ClaimRuling | None:
        """What all contexts together say, no cell set yet; None where words must decide."""
        if signals is None:
            return None
        lexical = lexical_logit(row.support)
        support = self._artefact.support.probability(lexical, signals)
        verdict = ClaimVerdict.SUPPORTED
        if support < self._rules.supported_from:
            against = self._artefact.contradiction.probability(lexical, signals)
            contradicted = against >= self._rules.contradicted_from
            verdict = ClaimVerdict.CONTRADICTED if contradicted else ClaimVerdict.NOT_IN_CONTEXT
        return ClaimRuling(verdict, support, (False,) * len(row.alone), row.alone, against=True)

    def _by_words(self, row: ClaimRow, asked: Texts) -> ClaimRuling:
        """What words say. They are blind to contradiction; but no context denies what none holds a word of."""
        return replace(lexical_ruling(row, self._rules.words), against=not asked[1])

    def _unclear(
        self,
        row: ClaimRow,
        together: ClaimRuling | None,
        passages: Sequence[PreparedPassage],
        texts: Sequence[str],
        check: Check,
    ) -> dict[int, Texts]:
        """What is read of the contexts that words leave open, of a claim that is supported."""
        if together is None or together.verdict is not ClaimVerdict.SUPPORTED:
            return {}
        return {
            rank: self._texts(row, passages[rank : rank + 1], texts[rank : rank + 1], check)
            for rank, alone in enumerate(row.alone)
            if self._artefact.skip_below <= alone <= self._artefact.skip_above
        }

    def _apart(
        self, row: ClaimRow, together: ClaimRuling, cells: Mapping[int, Texts], pages: _WindowPages
    ) -> ClaimRuling:
        """The ruling with its cells."""
        if together.verdict is not ClaimVerdict.SUPPORTED:
            return together
        alone = list(row.alone)
        supports = [probability > self._artefact.skip_above for probability in row.alone]
        for rank, each in cells.items():
            signals = pages.said(each)
            if signals is None:
                supports[rank] = row.alone[rank] >= self._rules.words.support
            else:
                fused = self._artefact.support.probability(lexical_logit(row.alone[rank]), signals)
                supports[rank] = fused >= self._rules.supported_from
                # Which context was used, words tell a little better than the model; the mean of both is on one scale
                # with what words say of the contexts that the model did not read.
                alone[rank] = (fused + row.alone[rank]) / 2
        return replace(together, cells=tuple(supports), alone=tuple(alone))


class _WindowPages:
    """What the model has said of one sample: each pair is read once, and no more pairs than there is time for.

    Attributes:
        left: Readings that words have to decide, by reason.
    """

    def __init__(self, model: PairModel, most: int, deadline: Deadline) -> None:
        self.left: Counter[LexicalOnlyReason] = Counter()
        self._model = model
        self._deadline = deadline
        self._room = most
        self._said: dict[Texts, ModelSignals | None] = {}

    def said(self, texts: Texts) -> ModelSignals | None:
        """What the model said of a claim and its evidence; None where it was not asked."""
        return self._said.get(texts)

    def read(self, asked: Iterable[Texts]) -> None:
        """Have the model read what it has not read yet, can read, and has time for."""
        new = [texts for texts in dict.fromkeys(asked) if texts[1] and texts not in self._said]
        self._said.update(dict.fromkeys(new))
        few = [texts for texts in new if self._is_read(texts)]
        self.left[LexicalOnlyReason.LANGUAGE] += len(new) - len(few)
        self.left[LexicalOnlyReason.TOO_MANY] += max(0, len(few) - self._room)
        with self._deadline.paused():
            self._ask(few)

    def _ask(self, few: Sequence[Texts]) -> None:
        pairs = dict(zip(few, self._model.pairs(few[: self._room]), strict=False))
        known = {texts: pair for texts, pair in pairs.items() if pair.unknown <= MOST_UNKNOWN}
        self.left[LexicalOnlyReason.LANGUAGE] += len(pairs) - len(known)
        self._room -= len(known)
        self._said.update(zip(known, self._model.read(list(known.values())), strict=True))

    def _is_read(self, texts: Texts) -> bool:
        self._deadline()
        return is_read(" ".join(texts))
