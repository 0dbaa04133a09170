"""Kind `openai` against real servers: which dialect they speak, what their replies mean, and what a probe finds."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
from loopback.process import LoopbackProcess
from support.callers import JudgeAt, canned, refused
from support.kit import a_sample

from ragwatch.judges.llm.failures import CallError
from ragwatch.judges.llm.judge import LLMJudge
from ragwatch.judges.llm.reply import extract_json
from ragwatch.judges.openai import OpenAI, ReplyConstraint, parse_chat
from ragwatch.model.quantities import Quantity
from ragwatch.statistics.verdict import Usage

CHAT = "/v1/chat/completions"
ALL = ("json_schema", "json_object", "text")
ADDRESS_ONLY = frozenset({Quantity.ANSWER_RELEVANCY})


@pytest.fixture
def openai_at(judge_at: JudgeAt) -> JudgeAt:
    """The judge at an address, of a model whose price is known."""
    return partial(judge_at, kind="openai")


def dialect(judge: LLMJudge) -> ReplyConstraint:
    """How far the judge thinks that its server binds a reply."""
    assert isinstance(judge.provider, OpenAI)
    return judge.provider._dialects[0].constraint


def completion(text: str | None, finish: str = "stop", usage: Any = None, **message: Any) -> dict[str, Any]:
    """The body of a chat completion."""
    choices = [{"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": finish}]
    return {"choices": choices, "usage": usage or {"prompt_tokens": 100, "completion_tokens": 10}}


@pytest.mark.costly
@pytest.mark.parametrize(
    ("formats", "bound", "wasted"),
    [(ALL, ReplyConstraint.SCHEMA, 0), (ALL[1:], ReplyConstraint.OBJECT, 2), (ALL[2:], ReplyConstraint.NOTHING, 4)],
)
async def test_a_server_is_asked_in_the_best_dialect_that_it_understands(
    openai_at: JudgeAt, loopback: LoopbackProcess, formats: Sequence[str], bound: ReplyConstraint, wasted: int
) -> None:
    """What it refuses with 400 is tried plainer and remembered: the second sample is one request. Both are read."""
    loopback.control(formats=list(formats), heeds_schema=bound is ReplyConstraint.SCHEMA)

    async def ask(name: str) -> int:
        before = len(loopback.requests(CHAT))
        evidence, _ = await judge.read(a_sample(name))
        assert evidence.claims[0].contexts == (0,)
        return len(loopback.requests(CHAT)) - before

    judge = openai_at(loopback.address, quantities=ADDRESS_ONLY | {Quantity.CONTEXT_USE})
    assert [await ask("a"), await ask("b")] == [wasted + 1, 1]
    assert dialect(judge) is bound
    last = loopback.requests(CHAT)[-1]["body"]
    assert ("JSON schema" in last["messages"][0]["content"]) is (bound is not ReplyConstraint.SCHEMA)
    assert "temperature" not in last
    assert "top_p" not in last


async def test_a_server_that_wants_another_name_for_the_most_tokens_gets_it(openai_at: JudgeAt) -> None:
    """Newer OpenAI models refuse max_tokens: the other name is tried before the schema is given up."""
    refusal = {"error": {"message": "Unsupported parameter: 'max_tokens'", "type": "invalid_request_error"}}
    with canned((400, {}, refusal), (200, {}, completion('{"address":"fully"}'))) as (address, sent):
        judge = openai_at(address, quantities=ADDRESS_ONLY)
        await judge.read(a_sample("a"))
        await judge.read(a_sample("b"))
    assert ["max_tokens" in body for body in sent] == [True, False, False]
    assert [body["response_format"]["type"] for body in sent] == ["json_schema"] * 3


async def test_a_sample_that_no_dialect_saves_teaches_nothing(openai_at: JudgeAt, loopback: LoopbackProcess) -> None:
    """When the plainest dialect is refused too, it lies in the sample: the next one starts with the schema again."""
    loopback.control({"kind": "bad_request", "match": "Poison"})
    judge = openai_at(loopback.address)
    assert await refused(judge.read(a_sample(answer="Poison."))) == ("rejected", True)
    await judge.read(a_sample())
    assert dialect(judge) is ReplyConstraint.SCHEMA
    before = len(loopback.requests(CHAT))
    await refused(judge.read(a_sample(answer="Poison.")))
    assert len(loopback.requests(CHAT)) == before + 1  # what was understood once is not doubted again


async def test_a_server_without_keys_gets_none(openai_at: JudgeAt) -> None:
    """A model of one's own needs no key, and costs what the configuration says: nothing.

    OpenAI's headers of limits are read as Anthropic's are, and exported.
    """
    told = {"limit": "1000", "remaining": "250", "reset": "45s"}
    headers = {f"x-ratelimit-{name}-tokens": value for name, value in told.items()}
    free = {"input": 0, "output": 0}
    with canned((200, headers, completion('{"address":"fully"}'))) as (address, sent):
        judge = openai_at(address, quantities=ADDRESS_ONLY, temperature=0, api_key=None, prices=free)
        _, usage = await judge.read(a_sample())
        assert isinstance(judge.provider, OpenAI)
        assert "authorization" not in judge.provider._client.headers
    assert (usage.tokens, usage.cost_usd) == (110, 0.0)
    assert sent[0]["temperature"] == 0  # where it is configured; zero is one
    levels = {labels: left for (_, labels), left in judge._context.telemetry.levels().items()}
    assert levels == {("mine", "tokens"): 0.25}


def test_replies_in_the_words_of_others() -> None:
    """Ends of a reply and cached tokens mean what Anthropic's do."""
    cached = {"prompt_tokens": 100, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 60}}
    said = parse_chat(completion("{}", usage=cached))
    assert (said.stop, said.usage) == ("end_turn", Usage(40, 10, cache_read_tokens=60))
    for body, stop in (
        (completion("{", "length"), "max_tokens"),
        (completion(None, "content_filter"), "refusal"),
        (completion(None, "stop", refusal="No."), "refusal"),
        (completion("{}", "tool_calls"), "tool_calls"),
    ):
        assert parse_chat(body).stop == stop
    for usage in ({"prompt_tokens": "many"}, None):
        assert parse_chat(completion("{}") | {"usage": usage}).usage is None
    with pytest.raises(CallError) as caught:
        parse_chat({"choices": ["no"]})
    assert (caught.value.reason, caught.value.usage) == ("protocol", None)


def test_json_is_found_in_what_models_write_around_it() -> None:
    """Fences, thoughts and politeness are left out."""
    around = ("{}", " \n{}\n", "```json\n{}\n```", '<think>{{"a": 1}}</think>\n{}', "The reply is {} as asked.")
    for text in (*around, "Sure!\n```\n{}\n```\nAnything else?"):
        assert extract_json(text.format('{"a": "b"}')) == '{"a": "b"}', text


async def test_probe_tells_model_and_dialect(openai_at: JudgeAt, loopback: LoopbackProcess) -> None:
    """One small call says whether a schema binds; a model that is not there is told beside those that are."""
    assert await openai_at(loopback.address).probe() == (
        f"loopback answers at {loopback.address}/v1; it binds replies to a JSON schema"
    )
    loopback.control(formats=["text"])
    assert (await openai_at(loopback.address).probe()).endswith("it cannot bind replies to JSON: expect invalid ones")
    why = "has no model 'qwen'; it has claude-haiku-5-5, loopback"
    assert (await refused(openai_at(loopback.address, model="qwen").probe(), why))[0] == "misconfigured"


async def test_probe_tells_what_is_wrong_with_an_address(openai_at: JudgeAt) -> None:
    """The first thing that goes wrong has its own words; a bad key has the server's.

    A gateway that lists no models, or a page instead, is asked all the same.
    """
    nobody = openai_at("http://127.0.0.1:9")
    await refused(nobody.probe(), r"no answer from http://127\.0\.0\.1:9/v1 .*is base_url right")
    with canned((401, {}, {"error": {"message": "no such key"}})) as (address, _):
        await refused(openai_at(address).probe(), r"HTTP 401, no such key; .*correct .*\.api_key")
    for status, listed in ((404, {}), (200, b"<html>"), (200, {"data": [1, {"id": 2}]})):
        with canned((status, {}, listed), (200, {}, completion('{"ready":"yes"}'))) as (address, _):
            assert (await openai_at(address).probe()).startswith("loopback answers")
