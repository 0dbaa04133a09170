"""An inquiry: what a model is asked about one sample, from the first ask to the Evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from ragwatch.core.evidence import Evidence
from ragwatch.core.sample import Sample
from ragwatch.judges.llm.prompt.isolated import IsolatedReading
from ragwatch.judges.llm.prompt.joint import JointReading
from ragwatch.judges.llm.prompt.parts import Part
from ragwatch.judges.llm.prompt.prompt import Prompt
from ragwatch.judges.llm.prompt.reply import ReplyError
from ragwatch.judges.llm.prompt.rubric import PROMPT_VERSION
from ragwatch.judges.llm.prompt.units import units_of

__all__ = ["PROMPT_VERSION", "Prompt", "Reading", "ReplyError", "begin"]


class Reading(Protocol):
    """One sample under examination. `while asks(): take([check(reply) of each])`, then `evidence()`.

    Attributes:
        unquoted: Cells said to be supported that were thrown out, because their quote is not verbatim in that context.
        instructions: Where instruction-like text stands: some of `question`, `context`, `answer`.
    """

    @property
    def unquoted(self) -> int:
        """See above."""
        ...

    @property
    def instructions(self) -> Sequence[str]:
        """See above."""
        ...

    def asks(self) -> Sequence[Prompt]:
        """What is to be asked now; the asks of one round may run at once. Empty when all is known."""
        ...

    def take(self, replies: Sequence[object]) -> None:
        """What each `check` returned, in the order of `asks()`."""
        ...

    def evidence(self) -> Evidence:
        """What was read, once `asks()` is empty.

        Raises:
            RuntimeError: An ask is still open.
        """
        ...


def begin(sample: Sample, *, parts: frozenset[Part], reading: Literal["joint", "isolated"], seed: str) -> Reading:
    """Begin to ask about a sample.

    Args:
        sample: The sample.
        parts: What is wanted (see `parts_of`); `reference` brings `claims`, and is left out of a sample without one.
        reading: All in one call, or each context in a call of its own.
        seed: From which the ids on the page are drawn; a secret of this call. The same seed gives the same asks.
    """
    if Part.REFERENCE in parts:
        parts = parts | {Part.CLAIMS} if sample.reference is not None else parts - {Part.REFERENCE}
    kind = JointReading if reading == "joint" else IsolatedReading
    return kind(units_of(sample), parts, seed)
