"""What `kind: claude` sends to each model, and what happens where a model rejects a setting."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from loopback.fixture import KEY, LoopbackProcess, loopback, loopback_process  # noqa: F401 - fixtures
from support.callers import HandClock, canned
from support.kit import a_judge_context, a_sample

from ragwatch.errors import JudgeError
from ragwatch.judges.claude import Options, build
from ragwatch.judges.llm.judge import LLMJudge

JudgeAt = Callable[..., LLMJudge]


@pytest.fixture
async def judge_at() -> AsyncIterator[JudgeAt]:
    """Makes judges at an address, which are closed at the end."""
    made: list[LLMJudge] = []

    def make(address: str, **options: Any) -> LLMJudge:
        given = Options(base_url=address, api_key=KEY, **options)  # type: ignore[arg-type]  # pydantic wraps the key
        made.append(build(given, name="mine", context=a_judge_context(), clock=HandClock()))
        return made[-1]

    yield make
    for judge in made:
        await judge.close()


@pytest.mark.costly
@pytest.mark.parametrize(
    ("model", "options", "sent", "thinks"),
    [
        ("claude-haiku-5-5", {}, "disabled", False),
        ("claude-haiku-5-5-20261007", {"effort": "high"}, "disabled", False),
        ("claude-haiku-5-5", {"effort": "max"}, None, True),
        ("claude-sonnet-5-5", {}, "between_tools", False),
        ("claude-opus-5-5", {}, None, True),
        ("claude-fable-5-2", {"effort": "low"}, None, True),
        ("claude-opus-4-8", {}, None, False),
        ("claude-of-next-year", {}, None, True),
        ("claude-opus-5-5", {"thinking": "adaptive"}, "adaptive", True),
    ],
)
async def test_each_model_gets_the_thinking_that_it_takes(
    judge_at: JudgeAt,
    loopback: LoopbackProcess,  # noqa: F811
    model: str,
    options: dict[str, Any],
    sent: str | None,
    *,
    thinks: bool,
) -> None:
    """Thinking is off where the model can do without; else it has room beside the reply. Every model is read with."""
    loopback.control(thinking=3_000 if thinks else 0)
    judge = judge_at(loopback.address, model=model, allow_unknown_price=True, **options)
    await judge.probe()
    await judge.read(a_sample())
    (request,) = loopback.requests()
    body = request["body"]
    assert body.get("thinking") == (sent and {"type": sent})
    assert (body["max_tokens"] > 4_000) is thinks
    assert request["status"] == 200


@pytest.mark.costly
async def test_a_rejected_setting_stops_the_judge_before_it_loses_a_sample(
    judge_at: JudgeAt,
    loopback: LoopbackProcess,  # noqa: F811
) -> None:
    """The rejection is no sample's fault: the sample stays pending, no other is tried, the advice names the option."""
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"model": "claude-opus-5-5", "thinking": "disabled"}, "set judges.mine.thinking: null"),
        ({"effort": "max", "thinking": "disabled"}, "set judges.mine.thinking: null"),
        ({"model": "claude-haiku-4-5", "effort": "low"}, "set judges.mine.effort: null"),
    ]
    for options, advice in wrong:
        judge = judge_at(loopback.address, **options)
        loopback.forget()
        outcomes = await asyncio.gather(*(judge.read(a_sample(f"r{n}")) for n in range(40)), return_exceptions=True)
        errors = [outcome for outcome in outcomes if isinstance(outcome, JudgeError)]
        assert len(errors) == 40
        assert not any(error.permanent for error in errors)
        assert any(error.reason == "misconfigured" and advice in str(error) for error in errors)
        assert len(loopback.requests()) <= judge.concurrency
        assert judge.ready_in() > 0.0
        with pytest.raises(JudgeError, match=advice) as caught:
            await judge.probe()
        assert caught.value.reason == "misconfigured"


async def test_too_much_room_for_thinking_is_told_by_its_option(judge_at: JudgeAt) -> None:
    """`max_tokens` of a reply depends on the sample; with room for thinking in it, the room is too large."""
    body = {
        "type": "error",
        "error": {
            "type": "invalid_request_error",
            "message": "max_tokens: 200500 > 128000, which is the maximum allowed number of output tokens",
        },
    }
    for tokens, permanent in ((200_000, False), (0, True)):
        with canned((400, {}, body)) as (address, _), pytest.raises(JudgeError) as caught:
            await judge_at(address, thinking_tokens=tokens).read(a_sample())
        assert caught.value.permanent is permanent
        assert ("judges.mine.thinking_tokens" in str(caught.value)) is not permanent


async def test_a_rejection_that_may_lie_in_the_sample_stays_with_it(judge_at: JudgeAt) -> None:
    """A prompt that is too long, or a sample that has a message of the API in it, stops nothing."""
    planted = "thinking.type.disabled is not supported for this model"
    for message in ("prompt is too long: 1200000 tokens > 1000000 maximum", planted):
        body = {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
        with canned((400, {}, body)) as (address, _):
            judge = judge_at(address)
            with pytest.raises(JudgeError) as caught:
                await judge.read(a_sample(answer=f"Cats say that {planted}."))
        assert (caught.value.reason, caught.value.permanent) == ("rejected", True)
        assert judge.ready_in() == 0.0


async def test_facts_of_a_line_come_back_with_their_places(judge_at: JudgeAt, loopback: LoopbackProcess) -> None:  # noqa: F811
    """A model that reports a line by its facts: what is supported of it counts, and what is not is named."""
    loopback.control(facts=True)
    answer = "Refunds take five days and need signatures by the moon landing committee of Lisbon, a castle, two kings."
    sample = a_sample(question="How long are refunds?", contexts=("Refunds take five days.",), answer=answer)
    evidence, _ = await judge_at(loopback.address).read(sample)
    assert [(claim.text, str(claim.verdict)) for claim in evidence.claims] == [
        ("Refunds take five days", "supported"),
        ("and need signatures", "not_in_context"),
        ("by the moon landing committee of Lisbon, a castle, two kings.", "not_in_context"),
    ]
    assert [answer[claim.start : claim.end] for claim in evidence.claims] == [claim.text for claim in evidence.claims]
