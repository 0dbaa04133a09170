"""What it costs to read an answer, and what the criteria of the operator add to that."""

from __future__ import annotations

from ragwatch.core.criteria import Criterion
from ragwatch.core.sample import Sample
from ragwatch.core.verdict import Usage
from ragwatch.judges.llm.calls.caller import prompt_bytes
from ragwatch.judges.llm.calls.prices import Prices
from ragwatch.judges.llm.calls.provider import Provider, TokenCounter
from ragwatch.judges.llm.prompt.prompt import Prompt
from ragwatch.judges.llm.prompt.reading import Reading
from ragwatch.model.quantity_row import Part

BYTES_PER_TOKEN = 4  # of English text, where the provider does not count
_PARTS = frozenset({Part.CLAIMS, Part.CONTEXTS, Part.NEEDS, Part.ADDRESS})


async def cost_of_criteria(
    provider: Provider, prices: Prices | None, criteria: tuple[Criterion, ...], sample: Sample
) -> str:
    """Compare a prompt that asks all about a sample with one that asks for criteria as well. Returns text for people.

    Args:
        provider: Counts the tokens, if it can; else they are estimated from the number of bytes.
        prices: Prices of tokens; None when they are unknown. The cost is an upper bound, without a cache.
        criteria: The criteria, at least one.
        sample: Any sample, which needs a call.

    Raises:
        CallError: The provider cannot count at present.
    """
    without, asked = _prompt(sample, _PARTS), _prompt(sample, _PARTS | {Part.CRITERIA}, criteria)
    if isinstance(provider, TokenCounter):
        sent, source = await provider.count(asked) - await provider.count(without), "counted by the provider"
    else:
        sent = (_bytes(asked) - _bytes(without)) // BYTES_PER_TOKEN
        source = f"estimated as bytes / {BYTES_PER_TOKEN}"
    count, replied = len(criteria), asked.max_tokens - without.max_tokens
    text = (
        f"each of {count} criteria adds {sent / count:.0f} tokens to what is sent ({source}; cached between calls "
        f"where the provider does so) and at most {replied / count:.0f} to the reply"
    )
    if prices is None:
        return text
    return f"{text}: at most {prices.dollars(Usage(sent, replied)) / count * 1000:.3f} USD per 1,000 answers"


def price_of_reading(prices: Prices, sample: Sample) -> float:
    """Return US dollars for the calls that read all about a sample: English, no cache, the longest usual reply."""
    prompts = Reading(sample, parts=_PARTS, reading="joint", seed="cost").prompts()
    usages = (Usage(prompt_bytes(prompt) // BYTES_PER_TOKEN, prompt.max_tokens) for prompt in prompts)
    return sum(map(prices.dollars, usages))


def _prompt(sample: Sample, parts: frozenset[Part], criteria: tuple[Criterion, ...] = ()) -> Prompt:
    (prompt,) = Reading(sample, parts=parts, reading="joint", seed="cost", criteria=criteria).prompts()
    return prompt


def _bytes(prompt: Prompt) -> int:
    return len(prompt.system.encode()) + len(str(prompt.schema))
