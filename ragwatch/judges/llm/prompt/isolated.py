"""Isolated reading: each context in a call of its own, so that no context can speak for or against another.

First question and answer alone (what the question needs, how the answer addresses it, how it compares with the
reference), then every context. The page of a context depends on nothing but question, answer, sub-questions and its
own text: with the same seed it is the same, byte for byte, whatever the other contexts are. The price: a claim that
only several contexts together support is supported by none of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from ragwatch.core.evidence import Evidence, Need
from ragwatch.judges.llm.prompt.marks import RandomMarks
from ragwatch.judges.llm.prompt.matrix import CheckedClaim, Findings, checked_all, evidence_of, merged
from ragwatch.judges.llm.prompt.parts import Part
from ragwatch.judges.llm.prompt.prompt import Prompt, make_prompt
from ragwatch.judges.llm.prompt.reply import Reply, ReplyRow
from ragwatch.judges.llm.prompt.schema import PromptTurn
from ragwatch.judges.llm.prompt.units import Cut, SampleUnits, asked

_OF_ANSWER = frozenset({Part.NEEDS, Part.ADDRESS, Part.REFERENCE})
_OF_CONTEXT = frozenset({Part.CLAIMS, Part.CONTEXTS, Part.NEEDS, Part.REFERENCE})


class IsolatedReading:
    """An inquiry of one call about the answer and one about each context.

    Where sub-questions are wanted, the calls about contexts wait for the first; otherwise all are made at once.

    Args:
        units: The sample, cut.
        wanted: The parts wanted.
        seed: Secret from which the marks are drawn.
    """

    def __init__(self, units: SampleUnits, wanted: frozenset[Part], seed: str) -> None:
        self._units = units
        self._wanted = wanted
        self._seed = seed
        self._parts = asked(units, wanted)
        self._first: Reply | None = None
        self._replies: list[Reply] = []
        self.instructions = units.instructions
        self._asks: Sequence[Prompt] = self._opening()

    def _opening(self) -> list[Prompt]:
        parts = self._parts & _OF_ANSWER
        self._opens = bool(parts)
        if not parts:
            return self._contexts()
        if Part.REFERENCE in parts:
            parts |= {Part.CLAIMS} & self._parts
        first = make_prompt(self._units, PromptTurn.FIRST, parts, RandomMarks(f"{self._seed} answer"))
        return [first] if Part.NEEDS in parts else [first, *self._contexts()]

    def _contexts(self, needs: Sequence[str] = ()) -> list[Prompt]:
        parts = self._parts & _OF_CONTEXT
        if not needs:
            parts -= {Part.NEEDS}
        texts = {rank: self._units.sample.contexts[rank].text for rank in self._units.shown} if parts else {}
        return [
            make_prompt(
                self._units,
                PromptTurn.CONTEXT,
                parts,
                RandomMarks(f"{self._seed} context {text}"),
                ranks=(rank,),
                needs=needs,
            )
            for rank, text in texts.items()
        ]

    @property
    def unquoted(self) -> int:
        """Cells thrown out because their quote does not stand in their context."""
        return self._known().refused

    def asks(self) -> Sequence[Prompt]:
        """The asks of this round; empty when all is known."""
        return self._asks

    def take(self, replies: Sequence[object]) -> None:
        """The checked replies of this round."""
        if len(replies) != len(self._asks):
            raise ValueError(f"{len(replies)} replies to {len(self._asks)} asks")
        found = list(cast("Sequence[Reply]", replies))
        if self._opens:
            self._opens = False
            self._first = found.pop(0)
            if self._first.needs is not None:
                self._asks = self._contexts(self._first.needs)
                return
        self._replies = found
        self._asks = ()

    def evidence(self) -> Evidence:
        """What was read.

        Raises:
            RuntimeError: An ask is still open.
        """
        if self._asks:
            raise RuntimeError("the evidence is not complete: an ask is open")
        return evidence_of(self._units, self._wanted, self._known())

    def _known(self) -> Findings:
        first, replies = self._first or Reply(), self._replies
        useful = [reply.useful for reply in replies if reply.useful is not None]
        units = self._units
        return Findings(
            claims=_standings(units, units.sample.answer, units.claims, [each.claims for each in (first, *replies)]),
            useful=dict(zip(units.shown, (each[0] for each in useful), strict=False)),
            needs=self._needs(first.needs),
            address=first.address,
            reference=_standings(
                units,
                units.sample.reference or "",
                units.reference or (),
                [each.reference for each in (first, *replies)],
            ),
        )

    def _needs(self, needs: Sequence[str] | None) -> tuple[Need, ...] | None:
        if needs is None:
            return None
        answers = [reply.answered for reply in self._replies if reply.answered is not None]
        return tuple(Need(need, any(each[index] for each in answers)) for index, need in enumerate(needs))


def _standings(
    units: SampleUnits, text: str, cuts: Sequence[Cut], found: Sequence[Sequence[ReplyRow] | None]
) -> list[CheckedClaim] | None:
    """Each claim of a text, as all calls together see it."""
    calls = [checked_all(rows, text, cuts, units) for rows in found if rows is not None]
    return [merged(standings) for standings in zip(*calls, strict=True)] if calls else None
