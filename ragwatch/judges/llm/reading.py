"""Reads one sample with a model, from the first prompt to the Evidence: in one call, or with one call per context.

With a call per context no context can influence the reading of another. The first call reads the question and the
answer (sub-questions, address, comparison with the reference); then there is one call for every context. The page of a
context depends only on the question, the answer, the sub-questions and the text of the context: with the same seed it
is byte-equal, whatever the other contexts are. The drawback: a claim that only several contexts together support counts
as supported by none.
"""

from collections.abc import Sequence
from typing import Literal, cast

from ragwatch.judges.llm.matrix import Findings, checked_claims, evidence_of
from ragwatch.judges.llm.page import RandomMarks
from ragwatch.judges.llm.prompt import Prompt, make_prompt
from ragwatch.judges.llm.reply import Reply
from ragwatch.judges.llm.rubric import PromptTurn
from ragwatch.judges.llm.units import parts_to_ask, units_of
from ragwatch.model.evidence import Evidence, Need
from ragwatch.model.quantities import Criterion
from ragwatch.model.quantity_row import Part
from ragwatch.model.sample import Sample

_OF_ANSWER = frozenset({Part.NEEDS, Part.ADDRESS, Part.REFERENCE})
_OF_CONTEXT = frozenset({Part.CLAIMS, Part.CONTEXTS, Part.NEEDS, Part.REFERENCE})


class Reading:
    """The reading of one sample. While `prompts()` returns any, `take()` their checked replies; then call `evidence()`.

    Args:
        sample: What is read.
        parts: Parts to read (see `parts_of`); `reference` includes `claims`, and is ignored for a sample without one.
        reading: All in one call, or each context in a call of its own. If sub-questions are requested, the calls about
            contexts wait for the first one; otherwise all run at once.
        seed: Secret seed of the ids on the page. The same seed gives the same prompts.
        criteria: Criteria to answer, all contexts in one call; none unless `parts` has `criteria`.

    Attributes:
        instructions: Where prompt injections were found: some of `question`, `context`, `answer`, `history`.
    """

    def __init__(
        self,
        sample: Sample,
        *,
        parts: frozenset[Part],
        reading: Literal["joint", "isolated"],
        seed: str,
        criteria: tuple[Criterion, ...] = (),
    ) -> None:
        if Part.REFERENCE in parts:
            parts = parts | {Part.CLAIMS} if sample.reference is not None else parts - {Part.REFERENCE}
        self._units = units_of(sample)
        self._requested, self._seed, self._isolated = parts, seed, reading == "isolated"
        self._criteria = criteria if Part.CRITERIA in parts else ()
        self.instructions = self._units.instructions
        self._asked = parts_to_ask(self._units, parts)
        self._findings = Findings()
        self._joint, self._first = Reply(), Reply()  # about all contexts, and about the answer
        self._prompts: list[tuple[PromptTurn, Prompt]] = []
        joint = self._asked & {Part.CRITERIA} if self._isolated else self._asked
        if joint:
            self._ask(PromptTurn.JOINT, joint, " criteria", self._units.shown)
        if self._isolated:
            self._ask_first()

    def _ask(
        self, turn: PromptTurn, parts: frozenset[Part], name: str, ranks: Sequence[int] = (), needs: Sequence[str] = ()
    ) -> None:
        marks = RandomMarks(f"{self._seed}{name if self._isolated else ''}")
        criteria = self._criteria if turn is PromptTurn.JOINT else ()
        prompt = make_prompt(self._units, turn, parts, marks, ranks=ranks, needs=needs, criteria=criteria)
        self._prompts.append((turn, prompt))

    def _ask_first(self) -> None:
        parts = self._asked & _OF_ANSWER
        if parts:
            compared = {Part.CLAIMS} & self._asked if Part.REFERENCE in parts else frozenset[Part]()
            self._ask(PromptTurn.FIRST, parts | compared, " answer")
        if Part.NEEDS not in parts:
            self._ask_contexts()

    def _ask_contexts(self, needs: Sequence[str] = ()) -> None:
        parts = self._asked & _OF_CONTEXT
        if not needs:
            parts -= {Part.NEEDS}
        for rank in self._units.shown if parts else ():
            text = self._units.sample.contexts[rank].text
            self._ask(PromptTurn.CONTEXT, parts, f" context {text}", (rank,), needs)

    @property
    def unquoted(self) -> int:
        """Cells rejected because their quote is not verbatim in their context."""
        return self._findings.rejected_quotes

    def prompts(self) -> Sequence[Prompt]:
        """Prompts of this round, which may run concurrently; empty when the reading is complete."""
        return [prompt for _, prompt in self._prompts]

    def take(self, replies: Sequence[object]) -> None:
        """Take what each `check` returned, in the order of `prompts()`."""
        if len(replies) != len(self._prompts):
            raise ValueError(f"{len(replies)} replies to {len(self._prompts)} prompts")
        turns, self._prompts = [turn for turn, _ in self._prompts], []
        of_contexts: list[Reply] = []
        for turn, reply in zip(turns, cast("Sequence[Reply]", replies), strict=True):
            if turn is PromptTurn.JOINT:
                self._joint = reply
            elif turn is PromptTurn.FIRST:
                self._first = reply
            else:
                of_contexts.append(reply)
        if PromptTurn.FIRST in turns and self._first.needs is not None:
            self._ask_contexts(self._first.needs)
        if not self._prompts:
            self._findings = self._checked(of_contexts)

    def evidence(self) -> Evidence:
        """Evidence from all replies, once `prompts()` is empty; a RuntimeError before."""
        if self._prompts:
            raise RuntimeError("the evidence is not complete: a reply is missing")
        names = [criterion.name for criterion in self._criteria]
        return evidence_of(self._units, self._requested, self._findings, names)

    def _checked(self, of_contexts: Sequence[Reply]) -> Findings:
        """Check the quotes of all replies, and merge those about one context each."""
        units, whole = self._units, self._first if self._isolated else self._joint
        replies = (whole, *of_contexts)
        useful = [count for reply in replies for count in reply.useful or ()]
        reference = units.sample.reference or ""
        return Findings(
            claims=checked_claims(units, units.sample.answer, units.claims, [reply.claims for reply in replies]),
            useful=dict(zip(units.shown, useful, strict=False)),
            needs=_needs(replies),
            address=whole.address,
            reference=checked_claims(units, reference, units.reference or (), [reply.reference for reply in replies]),
            isolated=self._isolated,
            criteria=self._joint.criteria or (),
        )


def _needs(replies: Sequence[Reply]) -> tuple[Need, ...] | None:
    """The sub-questions; one is answered if any reply says so."""
    if replies[0].needs is None:
        return None
    answers = [reply.answered for reply in replies if reply.answered is not None]
    return tuple(
        Need(need, any(answered[index] for answered in answers)) for index, need in enumerate(replies[0].needs)
    )
