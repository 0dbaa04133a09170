"""Reads a sample with one call per context, so that no context can influence the reading of another.

The first call reads the question and the answer (sub-questions, address, comparison with the reference); then there is
one call for every context. The page of a context depends only on the question, the answer, the sub-questions and the
text of the context: with the same seed it is byte-equal, whatever the other contexts are. The drawback: a claim that
only several contexts together support counts as supported by none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from ragwatch.core.criteria import Criterion
from ragwatch.core.evidence import Evidence, Need
from ragwatch.judges.llm.prompt.marks import RandomMarks
from ragwatch.judges.llm.prompt.matrix import CheckedClaim, Findings, check_rows, evidence_of, merge_facts
from ragwatch.judges.llm.prompt.prompt import Prompt, make_prompt
from ragwatch.judges.llm.prompt.reply import ClaimRows, Reply
from ragwatch.judges.llm.prompt.schema import PromptTurn
from ragwatch.judges.llm.prompt.units import Cut, SampleUnits, parts_to_ask
from ragwatch.model.quantity_row import Part

_OF_ANSWER = frozenset({Part.NEEDS, Part.ADDRESS, Part.REFERENCE})
_OF_CONTEXT = frozenset({Part.CLAIMS, Part.CONTEXTS, Part.NEEDS, Part.REFERENCE})


class IsolatedReading:
    """A reading with one call about the answer and one about each context.

    If sub-questions are requested, the calls about contexts wait for the first one; otherwise all run at once.

    Args:
        units: The sample in claims and sentences.
        requested: Parts to read.
        seed: Secret seed of the random marks.
        criteria: Criteria to answer, if that part is requested: in a call of their own, with all contexts.
    """

    def __init__(
        self, units: SampleUnits, requested: frozenset[Part], seed: str, criteria: tuple[Criterion, ...] = ()
    ) -> None:
        self._units = units
        self._criteria = criteria
        self._answers: Reply | None = None
        self._requested = requested
        self._seed = seed
        self._parts = parts_to_ask(units, requested)
        self._first: Reply | None = None
        self._replies: list[Reply] = []
        self.instructions = units.instructions
        self._of_criteria = self._criteria_prompts()
        self._prompts: Sequence[Prompt] = [*self._of_criteria, *self._first_prompts()]

    def _criteria_prompts(self) -> list[Prompt]:
        parts = self._parts & {Part.CRITERIA}
        if not parts:
            return []
        marks = RandomMarks(f"{self._seed} criteria")
        shown = self._units.shown
        return [make_prompt(self._units, PromptTurn.JOINT, parts, marks, ranks=shown, criteria=self._criteria)]

    def _first_prompts(self) -> list[Prompt]:
        parts = self._parts & _OF_ANSWER
        self._awaits_first = bool(parts)
        if not parts:
            return self._context_prompts()
        if Part.REFERENCE in parts:
            parts |= {Part.CLAIMS} & self._parts
        first = make_prompt(self._units, PromptTurn.FIRST, parts, RandomMarks(f"{self._seed} answer"))
        return [first] if Part.NEEDS in parts else [first, *self._context_prompts()]

    def _context_prompts(self, needs: Sequence[str] = ()) -> list[Prompt]:
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
        """Cells rejected because their quote is not verbatim in their context."""
        return self._findings().rejected_quotes

    def prompts(self) -> Sequence[Prompt]:
        """Prompts of this round; empty when the reading is complete."""
        return self._prompts

    def take(self, replies: Sequence[object]) -> None:
        """Take the checked replies of this round."""
        if len(replies) != len(self._prompts):
            raise ValueError(f"{len(replies)} replies to {len(self._prompts)} prompts")
        checked = list(cast("Sequence[Reply]", replies))
        if self._of_criteria:
            self._of_criteria = []
            self._answers = checked.pop(0)
        if self._awaits_first:
            self._awaits_first = False
            self._first = checked.pop(0)
            if self._first.needs is not None:
                self._prompts = self._context_prompts(self._first.needs)
                return
        self._replies = checked
        self._prompts = ()

    def evidence(self) -> Evidence:
        """Evidence from all replies.

        Raises:
            RuntimeError: A reply is missing.
        """
        if self._prompts:
            raise RuntimeError("the evidence is not complete: a reply is missing")
        names = [criterion.name for criterion in self._criteria]
        return evidence_of(self._units, self._requested, self._findings(), names)

    def _findings(self) -> Findings:
        first, replies = self._first or Reply(), self._replies
        useful = [reply.useful for reply in replies if reply.useful is not None]
        units = self._units
        return Findings(
            claims=_merged_claims(
                units, units.sample.answer, units.claims, [reply.claims for reply in (first, *replies)]
            ),
            useful=dict(zip(units.shown, (counts[0] for counts in useful), strict=False)),
            needs=self._needs(first.needs),
            address=first.address,
            reference=_merged_claims(
                units,
                units.sample.reference or "",
                units.reference or (),
                [reply.reference for reply in (first, *replies)],
            ),
            isolated=True,
            criteria=(self._answers.criteria if self._answers else None) or (),
        )

    def _needs(self, needs: Sequence[str] | None) -> tuple[Need, ...] | None:
        if needs is None:
            return None
        answers = [reply.answered for reply in self._replies if reply.answered is not None]
        return tuple(Need(need, any(answered[index] for answered in answers)) for index, need in enumerate(needs))


def _merged_claims(
    units: SampleUnits, text: str, cuts: Sequence[Cut], replies: Sequence[Sequence[ClaimRows] | None]
) -> list[CheckedClaim] | None:
    """Check the rows of each call, and merge them by claim."""
    calls = [check_rows(rows, text, cuts, units) for rows in replies if rows is not None]
    return [fact for claim in zip(*calls, strict=True) for fact in merge_facts(claim)] if calls else None
