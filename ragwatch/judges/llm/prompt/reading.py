"""The reading of one sample by a model, from the first prompt to the Evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from ragwatch.core.criteria import Criterion
from ragwatch.core.evidence import Evidence
from ragwatch.core.sample import Sample
from ragwatch.judges.llm.prompt.isolated import IsolatedReading
from ragwatch.judges.llm.prompt.joint import JointReading
from ragwatch.judges.llm.prompt.prompt import Prompt
from ragwatch.judges.llm.prompt.reply import ReplyError
from ragwatch.judges.llm.prompt.rubric import PROMPT_VERSION, criteria_version
from ragwatch.judges.llm.prompt.units import units_of
from ragwatch.model.quantity_row import Part

__all__ = ["PROMPT_VERSION", "Prompt", "Reading", "ReplyError", "criteria_version", "start_reading"]


class Reading(Protocol):
    """The reading of one sample. While `prompts()` returns any, `take()` their checked replies; then call `evidence()`.

    Attributes:
        unquoted: Cells rejected because their quote is not verbatim in their context.
        instructions: Where prompt injections were found: some of `question`, `context`, `answer`, `history`.
    """

    @property
    def unquoted(self) -> int:
        """See above."""
        ...

    @property
    def instructions(self) -> Sequence[str]:
        """See above."""
        ...

    def prompts(self) -> Sequence[Prompt]:
        """Prompts of this round, which may run concurrently; empty when the reading is complete."""
        ...

    def take(self, replies: Sequence[object]) -> None:
        """Take what each `check` returned, in the order of `prompts()`."""
        ...

    def evidence(self) -> Evidence:
        """Evidence, once `prompts()` is empty.

        Raises:
            RuntimeError: A reply is missing.
        """
        ...


def start_reading(
    sample: Sample,
    *,
    parts: frozenset[Part],
    reading: Literal["joint", "isolated"],
    seed: str,
    criteria: tuple[Criterion, ...] = (),
) -> Reading:
    """Start the reading of a sample.

    Args:
        sample: The sample.
        parts: Parts to read (see `parts_of`); `reference` includes `claims`, and is ignored for a sample without one.
        reading: All in one call, or each context in a call of its own.
        seed: Secret seed of the ids on the page. The same seed gives the same prompts.
        criteria: Criteria to answer; none unless `parts` has `criteria`.
    """
    if Part.REFERENCE in parts:
        parts = parts | {Part.CLAIMS} if sample.reference is not None else parts - {Part.REFERENCE}
    reading_class = JointReading if reading == "joint" else IsolatedReading
    return reading_class(units_of(sample), parts, seed, criteria if Part.CRITERIA in parts else ())
