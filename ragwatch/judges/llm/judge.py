"""The LLM judge: reads samples with `reading` and makes the calls with `caller`."""

import asyncio
import random
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Sequence
from dataclasses import replace

from ragwatch.errors import ConfigError, JudgeError
from ragwatch.judges.claims import limits
from ragwatch.judges.llm.caller import Caller, ReadingCost, prompt_bytes
from ragwatch.judges.llm.failures import CallError
from ragwatch.judges.llm.injection import (
    differing_criteria,
    instruction_of,
    to_confirm,
    unconfirmed,
    without_instructions,
    without_support,
)
from ragwatch.judges.llm.options import CallOptions, Prices, prices_of, worst_case
from ragwatch.judges.llm.prompt import Prompt
from ragwatch.judges.llm.provider import BatchProvider, Provider, TokenCounter
from ragwatch.judges.llm.reading import Reading
from ragwatch.judges.llm.rubric import PROMPT_VERSION, criteria_version, parts_of
from ragwatch.judges.llm.scheduler import CallScheduler, Clock
from ragwatch.judges.llm.units import answer_of
from ragwatch.model.budget import Cost
from ragwatch.model.evidence import ClaimVerdict, Evidence
from ragwatch.model.quantities import unread
from ragwatch.model.quantity_row import Part
from ragwatch.model.sample import Sample
from ragwatch.ports import JudgeContext
from ragwatch.statistics.self_tests import SELF_TEST_KEY
from ragwatch.statistics.verdict import UnjudgedReason, Usage

MAX_FAILURES_PER_SAMPLE = 3
_MAX_TRACKED_SAMPLES = 10_000
_BYTES_PER_TOKEN = 4  # of English text, where the provider does not count
_PARTS = frozenset({Part.CLAIMS, Part.CONTEXTS, Part.NEEDS, Part.ADDRESS})
# Failures of the provider that the sample may cause: a page that no model reads in time, or answers validly.
_POSSIBLY_SAMPLE = frozenset(
    {UnjudgedReason.TIMEOUT, UnjudgedReason.PROTOCOL, UnjudgedReason.TRUNCATED, UnjudgedReason.UNREADABLE}
)


class LLMJudge:
    """Reads samples with a large language model.

    Attributes:
        version: Kind, model and prompt; `-isolated` where each context is read in a call of its own, with the routes
            if that is so on some only; a digest of the criteria if there are some.
        prices: Prices of tokens; None when they are unknown: then dollars are not counted and cannot be capped.

    Raises:
        ConfigError: The price of the model is unknown, or the options do not work with message batches.
    """

    def __init__(
        self,
        name: str,
        kind: str,
        provider: Provider,
        options: CallOptions,
        context: JudgeContext,
        *,
        clock: Clock | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self.name, self.kind, self.model, self.concurrency = name, kind, provider.model, options.concurrency
        self._criteria = context.criteria_to_read
        asked = f"-criteria-{criteria_version(self._criteria)}" if self._criteria else ""
        routes = f"-isolated:{'+'.join(sorted(options.isolated_routes))}" if options.isolated_routes else ""
        isolated = "-isolated" if options.reading == "isolated" else routes
        self.version = f"{kind}-{self.model}-{PROMPT_VERSION}{isolated}{asked}"
        self.provider = provider
        self.prices = prices_of(
            self.model, options.prices, allow_unknown=options.allow_unknown_price, where=f"judges.{name}"
        )
        if options.urgency == "relaxed" and (options.reading == "isolated" or options.isolated_routes):
            raise ConfigError(
                f"judges.{name}.urgency: relaxed reads each sample in one call; "
                "use reading: joint, and no isolated_routes"
            )
        if options.urgency == "relaxed" and not isinstance(provider, BatchProvider):
            raise ConfigError(f"judges.{name}.urgency: {kind} has no message batches; use urgency: normal")
        self._options = options
        self._context = context
        self._clock = clock or Clock()
        self._scheduler = CallScheduler(
            name,
            concurrency=options.concurrency,
            telemetry=context.telemetry,
            clock=self._clock,
            rng=rng or random.Random(),  # noqa: S311 - jitter, not a secret
        )
        self._caller = Caller(
            name,
            provider,
            options,
            prices=self.prices,
            scheduler=self._scheduler,
            budget=context.budget,
            telemetry=context.telemetry,
            clock=self._clock,
        )
        self._failures: OrderedDict[str, int] = OrderedDict()  # by sample id

    def ready_in(self) -> float:
        """Seconds until calls are possible again, after a pause or while the circuit breaker is open."""
        return self._scheduler.ready_in()

    async def read(self, sample: Sample) -> tuple[Evidence, Usage]:
        """Read a sample with the model.

        Raises:
            JudgeError: It could not be read; permanent when the sample is the cause, or seems to be after three times.
        """
        cost = ReadingCost()
        reading = await self.prepare(sample, secrets.token_hex(16))
        until = self._clock.now() + self._options.deadline_seconds
        try:
            await self._complete(reading, cost, until)
            evidence = self.evidence_of(reading, sample)
            if self.reads_again(sample, evidence):
                await self._confirm(sample, evidence, cost, until)
        except JudgeError as error:
            raise self._counted(sample, error) from None
        self._failures.pop(sample.id, None)
        if SELF_TEST_KEY not in sample.metadata:
            self.report(reading)
        return self.with_replies(evidence, cost.replies), cost.usage

    def evidence_of(self, reading: Reading, sample: Sample) -> Evidence:
        """Evidence of a reading that is complete. Where the answer addresses the judge, nothing is supported."""
        evidence = replace(self.with_unread(reading.evidence()), instructions=tuple(reading.instructions))
        if SELF_TEST_KEY in sample.metadata or not evidence.instructions:
            return evidence
        return without_support(evidence, instruction_of(sample.answer))

    def with_replies(self, evidence: Evidence, replies: Sequence[str]) -> Evidence:
        """Evidence with what the model replied, redacted."""
        return replace(evidence, replies=tuple(map(self._context.redact, replies)))

    def with_unread(self, evidence: Evidence) -> Evidence:
        """Evidence with an entry for each configured criterion."""
        read = {one.name for one in evidence.criteria}
        others = unread(one.name for one in self._context.criteria if one.name not in read)
        return replace(evidence, criteria=(*evidence.criteria, *others))

    async def _complete(self, reading: Reading, cost: ReadingCost, until: float) -> None:
        while prompts := reading.prompts():
            reading.take(await self._replies(prompts, cost, until))

    def reads_again(self, sample: Sample, evidence: Evidence) -> bool:
        """Whether a second reading is needed. Self-tests are read once: they test the model."""
        if not (self._options.second_reading and evidence.instructions) or SELF_TEST_KEY in sample.metadata:
            return False
        return bool(_parts_to_confirm(evidence))

    async def _confirm(self, sample: Sample, evidence: Evidence, cost: ReadingCost, until: float) -> None:
        """Read a sample with a suspected prompt injection again, without it, each context alone.

        Raises:
            JudgeError: A claim is not supported this time, or a criterion is answered differently.
        """
        count, differing = 0, list[str]()
        for part in _parts_to_confirm(evidence):
            reading = await asyncio.to_thread(self._second_reading, sample, part)
            await self._complete(reading, cost, until)
            if part is Part.CRITERIA:
                differing = differing_criteria(evidence, reading.evidence())
            else:
                count = unconfirmed(evidence, reading.evidence())
        self._context.telemetry.read_again(self.name, same=not count and not differing)
        if count or differing:
            changed = [f"{count} claims are not supported"] if count else []
            changed += [f"the answer to {' and '.join(differing)} is another"] if differing else []
            raise JudgeError(
                UnjudgedReason.PROMPT_INJECTION,
                f"instructions to the judge in its {', '.join(evidence.instructions)}; without them "
                f"{', and '.join(changed)}",
            )

    def _second_reading(self, sample: Sample, part: Part) -> Reading:
        """A reading of claims with each context alone, or of criteria, without what may be an instruction."""
        return Reading(
            without_instructions(sample),
            parts=frozenset({part}),
            reading="joint" if part is Part.CRITERIA else "isolated",
            seed=secrets.token_hex(16),
            criteria=self._criteria,
        )

    async def prepare(self, sample: Sample, seed: str) -> Reading:
        """Start the reading of a sample, in a thread that does not block the loop; a JudgeError if it is too large."""
        return await asyncio.to_thread(self._start, sample, seed)

    def _start(self, sample: Sample, seed: str) -> Reading:
        """Start the reading of a sample, unless it would cost too much."""
        options = self._options
        limits.check_size(len(sample.contexts), options.max_contexts, "contexts")
        limits.check_size(sample.chars + len(sample.reference or ""), options.max_chars, "characters")
        limits.check_size(len(answer_of(sample).claims), options.max_claims, "claims")
        return self.start_reading(sample, seed)

    def start_reading(self, sample: Sample, seed: str) -> Reading:
        """Start the reading of a sample. The same seed gives the same prompts."""
        isolated = sample.route in self._options.isolated_routes
        reading = "isolated" if isolated else self._options.reading
        parts = parts_of(self._context.quantities, reference=bool(sample.reference))
        return Reading(sample, parts=parts, reading=reading, seed=seed, criteria=self._criteria)

    def first_prompts(self, sample: Sample, seed: str) -> list[tuple[str, str]]:
        """Rubric and page of each call that depends on no reply; a JudgeError if the sample is too large."""
        return [(prompt.system, prompt.user) for prompt in self._start(sample, seed).prompts()]

    def report(self, reading: Reading) -> None:
        """Count a reading that is complete, with its invalid quotes and prompt injections."""
        self._context.telemetry.quotes_checked(self.name, reading.unquoted)
        for place in reading.instructions:
            self._context.telemetry.instructions_seen(self.name, place)

    async def probe(self) -> str:
        """Check the provider; one line for a person, or a JudgeError that says why it cannot be used."""
        return await _answered(self.provider.probe())

    def highest_cost(self, sample: Sample) -> Cost:
        """Return an upper bound on the cost of the first calls for a sample, without retries and second readings."""
        thinking = self._options.thinking_budget
        return sum(
            (
                worst_case(self.prices, prompt_bytes(prompt), prompt.max_tokens + thinking)
                for prompt in self.start_reading(sample, "cost").prompts()
            ),
            Cost(),
        )

    async def criteria_cost(self, sample: Sample) -> str:
        """Return what the criteria cost, as text for people; empty if it reads none.

        It compares a prompt that asks all about a sample with one that asks for criteria as well. Tokens are estimated
        from bytes unless the provider counts them. The cost is an upper bound, without a cache.

        Raises:
            JudgeError: The provider cannot count tokens at present.
        """
        if not self._criteria:
            return ""
        return await _answered(self._cost_of_criteria(sample))

    async def _cost_of_criteria(self, sample: Sample) -> str:
        without, asked = (
            Reading(sample, parts=_PARTS | parts, reading="joint", seed="cost", criteria=self._criteria).prompts()[0]
            for parts in (set(), {Part.CRITERIA})
        )
        if isinstance(self.provider, TokenCounter):
            sent = await self.provider.count(asked) - await self.provider.count(without)
            source = "counted by the provider"
        else:
            of_criteria, of_others = (len(one.system.encode()) + len(str(one.schema)) for one in (asked, without))
            sent = (of_criteria - of_others) // _BYTES_PER_TOKEN
            source = f"estimated as bytes / {_BYTES_PER_TOKEN}"
        count, replied = len(self._criteria), asked.max_tokens - without.max_tokens
        text = (
            f"each of {count} criteria adds {sent / count:.0f} tokens to what is sent ({source}; cached between calls "
            f"where the provider does so) and at most {replied / count:.0f} to the reply"
        )
        if self.prices is None:
            return text
        dollars = self.prices.dollars(Usage(sent, replied)) / count * 1000
        return f"{text}: at most {dollars:.3f} USD per 1,000 answers"

    async def close(self) -> None:
        """Close the client of the provider."""
        await self.provider.close()

    async def _replies(self, prompts: Sequence[Prompt], cost: ReadingCost, until: float) -> list[object]:
        """Replies to concurrent calls. All are awaited, because a call that has started is charged anyway."""
        calls = [self._caller.call(prompt, cost, until) for prompt in prompts]
        if len(calls) == 1:
            return [await calls[0]]
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        errors = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        if errors:  # the most severe first: a bug, a fault of the sample, an outage
            raise min(errors, key=lambda error: 0 if not isinstance(error, JudgeError) else 1 if error.permanent else 2)
        return list(outcomes)

    def _counted(self, sample: Sample, error: JudgeError) -> JudgeError:
        """The same error; permanent when the sample has failed three times while others were read."""
        if error.permanent or not self._scheduler.healthy or UnjudgedReason(error.reason) not in _POSSIBLY_SAMPLE:
            return error
        failures = self._failures.pop(sample.id, 0) + 1
        if failures >= MAX_FAILURES_PER_SAMPLE:
            return JudgeError(error.reason, f"{error}; {failures} times while others were read")
        self._failures[sample.id] = failures
        while len(self._failures) > _MAX_TRACKED_SAMPLES:
            self._failures.popitem(last=False)
        return error


async def _answered(asked: Awaitable[str]) -> str:
    try:
        return await asked
    except CallError as error:
        raise error.judge_error(permanent=True) from None


def _parts_to_confirm(evidence: Evidence) -> tuple[Part, ...]:
    """The parts of a reading that an instruction in the sample may have changed."""
    supported = any(claim.verdict is ClaimVerdict.SUPPORTED for claim in evidence.claims)
    parts = {Part.CLAIMS: supported, Part.CRITERIA: bool(to_confirm(evidence))}
    return tuple(part for part, is_needed in parts.items() if is_needed)


def price_of_reading(prices: Prices, sample: Sample) -> float:
    """Return US dollars for the calls that read all about a sample: English, no cache, the longest usual reply."""
    prompts = Reading(sample, parts=_PARTS, reading="joint", seed="cost").prompts()
    usages = (Usage(prompt_bytes(prompt) // _BYTES_PER_TOKEN, prompt.max_tokens) for prompt in prompts)
    return sum(map(prices.dollars, usages))
