"""What the criteria of the operator cost: the tokens that they add to a call."""

from __future__ import annotations

from dataclasses import dataclass

from ragwatch.core.criteria import Criterion
from ragwatch.core.sample import Sample
from ragwatch.core.verdict import Usage
from ragwatch.judges.llm.calls.prices import Prices
from ragwatch.judges.llm.calls.provider import Provider, TokenCounter
from ragwatch.judges.llm.prompt.prompt import Prompt
from ragwatch.judges.llm.prompt.reading import Reading
from ragwatch.model.quantity_row import Part

BYTES_PER_TOKEN = 4  # of English text, where the provider does not count


@dataclass(frozen=True, slots=True)
class CriteriaCost:
    """Tokens that criteria add to one call.

    Attributes:
        criteria: Number of criteria.
        sent: Tokens of the rubric and of the schema of the reply, which providers can cache.
        replied: Upper bound on the tokens of the reply.
        dollars: Upper bound on their price in US dollars, without a cache; None if prices are unknown.
        counted: Whether the provider has counted `sent`; else it is estimated from the number of bytes.
    """

    criteria: int
    sent: int
    replied: int
    dollars: float | None
    counted: bool

    def __str__(self) -> str:
        source = "counted by the provider" if self.counted else f"estimated as bytes / {BYTES_PER_TOKEN}"
        sent, replied = self.sent / self.criteria, self.replied / self.criteria
        text = (
            f"each of {self.criteria} criteria adds {sent:.0f} tokens to what is sent ({source}; cached between calls "
            f"where the provider does so) and at most {replied:.0f} to the reply"
        )
        if self.dollars is None:
            return text
        return f"{text}: at most {self.dollars / self.criteria * 1000:.3f} USD per 1,000 answers"


async def cost_of_criteria(
    provider: Provider, prices: Prices | None, criteria: tuple[Criterion, ...], sample: Sample
) -> CriteriaCost:
    """Compare a prompt that asks all about a sample with one that asks for criteria as well.

    Args:
        provider: Counts the tokens, if it can.
        prices: Prices of tokens.
        criteria: The criteria, at least one.
        sample: Any sample, which needs a call.

    Raises:
        CallError: The provider cannot count at present.
    """
    without, asked = _prompt(sample, ()), _prompt(sample, criteria)
    if isinstance(provider, TokenCounter):
        sent, counted = await provider.count(asked) - await provider.count(without), True
    else:
        sent, counted = (_bytes(asked) - _bytes(without)) // BYTES_PER_TOKEN, False
    replied = asked.max_tokens - without.max_tokens
    dollars = None if prices is None else prices.dollars(Usage(sent, replied))
    return CriteriaCost(len(criteria), sent, replied, dollars, counted)


def _prompt(sample: Sample, criteria: tuple[Criterion, ...]) -> Prompt:
    parts = frozenset({Part.CLAIMS, Part.CONTEXTS, Part.NEEDS, Part.ADDRESS, *((Part.CRITERIA,) if criteria else ())})
    (prompt,) = Reading(sample, parts=parts, reading="joint", seed="cost", criteria=criteria).prompts()
    return prompt


def _bytes(prompt: Prompt) -> int:
    return len(prompt.system.encode()) + len(str(prompt.schema))
