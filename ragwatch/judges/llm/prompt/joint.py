"""Joint reading: one call about the whole sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from ragwatch.core.evidence import Evidence, Need
from ragwatch.judges.llm.prompt.marks import RandomMarks
from ragwatch.judges.llm.prompt.matrix import CheckedClaim, Findings, checked_all, evidence_of
from ragwatch.judges.llm.prompt.parts import Part
from ragwatch.judges.llm.prompt.prompt import Prompt, make_prompt
from ragwatch.judges.llm.prompt.reply import Reply, ReplyRow
from ragwatch.judges.llm.prompt.schema import PromptTurn
from ragwatch.judges.llm.prompt.units import Cut, SampleUnits, asked


class JointReading:
    """An inquiry of at most one ask; none where all that is wanted is known.

    Args:
        units: The sample, cut.
        wanted: The parts wanted.
        seed: Secret from which the marks are drawn.
    """

    def __init__(self, units: SampleUnits, wanted: frozenset[Part], seed: str) -> None:
        self._units = units
        self._wanted = wanted
        self._known: Findings | None = None
        self.instructions = units.instructions
        parts = asked(units, wanted)
        self._asks: tuple[Prompt, ...] = ()
        if parts:
            self._asks = (make_prompt(units, PromptTurn.JOINT, parts, RandomMarks(seed), ranks=units.shown),)

    @property
    def unquoted(self) -> int:
        """Cells thrown out because their quote does not stand in their context."""
        return self._known.refused if self._known else 0

    def asks(self) -> Sequence[Prompt]:
        """The one ask, until its reply was taken."""
        return self._asks if self._known is None else ()

    def take(self, replies: Sequence[object]) -> None:
        """The checked reply."""
        (reply,) = cast("Sequence[Reply]", replies)
        self._known = findings_of(reply, self._units)

    def evidence(self) -> Evidence:
        """What was read.

        Raises:
            RuntimeError: An ask is still open.
        """
        if self.asks():
            raise RuntimeError("the evidence is not complete: an ask is open")
        return evidence_of(self._units, self._wanted, self._known or Findings())


def findings_of(reply: Reply, units: SampleUnits) -> Findings:
    """What one reply about all contexts says, with its quotes checked."""
    return Findings(
        claims=_standings(reply.claims, units.sample.answer, units.claims, units),
        useful=None if reply.useful is None else dict(zip(units.shown, reply.useful, strict=True)),
        needs=None if reply.needs is None else tuple(map(Need, reply.needs, reply.answered or ())),
        address=reply.address,
        reference=_standings(reply.reference, units.sample.reference or "", units.reference or (), units),
    )


def _standings(
    rows: Sequence[ReplyRow] | None, text: str, cuts: Sequence[Cut], units: SampleUnits
) -> list[CheckedClaim] | None:
    return None if rows is None else checked_all(rows, text, cuts, units)
