"""Reads a whole sample with one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from ragwatch.core.criteria import Criterion
from ragwatch.core.evidence import Evidence, Need
from ragwatch.judges.llm.prompt.marks import RandomMarks
from ragwatch.judges.llm.prompt.matrix import CheckedClaim, Findings, check_rows, evidence_of
from ragwatch.judges.llm.prompt.prompt import Prompt, make_prompt
from ragwatch.judges.llm.prompt.reply import ClaimRows, Reply
from ragwatch.judges.llm.prompt.schema import PromptTurn
from ragwatch.judges.llm.prompt.units import Cut, SampleUnits, parts_to_ask
from ragwatch.model.quantity_row import Part


class JointReading:
    """A reading with one prompt; none if the requested parts need no call.

    Args:
        units: The sample in claims and sentences.
        requested: Parts to read.
        seed: Secret seed of the random marks.
        criteria: Criteria to answer, if that part is requested.
    """

    def __init__(
        self, units: SampleUnits, requested: frozenset[Part], seed: str, criteria: tuple[Criterion, ...] = ()
    ) -> None:
        self._units = units
        self._criteria = tuple(criterion.name for criterion in criteria)
        self._requested = requested
        self._findings: Findings | None = None
        self.instructions = units.instructions
        parts = parts_to_ask(units, requested)
        self._prompts: tuple[Prompt, ...] = ()
        if parts:
            marks = RandomMarks(seed)
            prompt = make_prompt(units, PromptTurn.JOINT, parts, marks, ranks=units.shown, criteria=criteria)
            self._prompts = (prompt,)

    @property
    def unquoted(self) -> int:
        """Cells rejected because their quote is not verbatim in their context."""
        return self._findings.rejected_quotes if self._findings else 0

    def prompts(self) -> Sequence[Prompt]:
        """The prompt, until its reply was taken."""
        return self._prompts if self._findings is None else ()

    def take(self, replies: Sequence[object]) -> None:
        """Take the checked reply."""
        (reply,) = cast("Sequence[Reply]", replies)
        self._findings = findings_of(reply, self._units)

    def evidence(self) -> Evidence:
        """Evidence from the reply.

        Raises:
            RuntimeError: The reply is missing.
        """
        if self.prompts():
            raise RuntimeError("the evidence is not complete: a reply is missing")
        return evidence_of(self._units, self._requested, self._findings or Findings(), self._criteria)


def findings_of(reply: Reply, units: SampleUnits) -> Findings:
    """Check the quotes of a reply about all contexts."""
    return Findings(
        claims=_checked(reply.claims, units.sample.answer, units.claims, units),
        useful=None if reply.useful is None else dict(zip(units.shown, reply.useful, strict=True)),
        needs=None if reply.needs is None else tuple(map(Need, reply.needs, reply.answered or ())),
        address=reply.address,
        reference=_checked(reply.reference, units.sample.reference or "", units.reference or (), units),
        criteria=reply.criteria or (),
    )


def _checked(
    rows: Sequence[ClaimRows] | None, text: str, cuts: Sequence[Cut], units: SampleUnits
) -> list[CheckedClaim] | None:
    return None if rows is None else [fact for facts in check_rows(rows, text, cuts, units) for fact in facts]
