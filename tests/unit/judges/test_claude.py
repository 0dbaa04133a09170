"""Kind `claude`: what is sent to each model, what is cached, batches, rejected settings, a key that shows nowhere."""

import asyncio
import json
import traceback
from collections.abc import Awaitable
from typing import Any

import pytest
from loopback.process import LoopbackProcess
from pydantic import ValidationError
from structlog.testing import LogCapture
from support.callers import JudgeAt, canned, refused
from support.kit import a_sample

from ragwatch.errors import ConfigError, JudgeError
from ragwatch.judges.claude import Claude, Options
from ragwatch.judges.llm.failures import CallError
from ragwatch.judges.llm.judge import LLMJudge
from ragwatch.judges.llm.prompt import Prompt
from ragwatch.judges.llm.provider import BatchProvider, Completion
from ragwatch.telemetry import EventCount, Telemetry


@pytest.fixture
async def judge(judge_at: JudgeAt, loopback: LoopbackProcess) -> LLMJudge:
    """A judge at the loopback server, with its defaults; made where the loop runs."""
    return judge_at(loopback.address)


async def test_one_call_a_sample_in_words_of_the_api(judge: LLMJudge, loopback: LoopbackProcess) -> None:
    """A request for each with a schema, no tools and no sampling parameter, sent once.

    The first call writes the rubric to the cache, every later one reads the same tokens, and the usage says so.
    """
    _, first = await judge.read(a_sample("a"))
    _, second = await judge.read(a_sample("b", answer="Dogs bark."))
    requests = loopback.requests()
    assert len(requests) == 2
    for entry in requests:
        body = entry["body"]
        assert set(body) == {"model", "max_tokens", "system", "messages", "output_config", "thinking"}
        assert (set(body["output_config"]), body["output_config"]["format"]["type"]) == ({"format"}, "json_schema")
        assert (entry["authorized"], entry["headers"]["x-stainless-retry-count"]) == (True, "0")
    assert requests[0]["body"]["output_config"] == requests[1]["body"]["output_config"]
    assert first.cache_write_tokens > 512
    assert (second.cache_write_tokens, second.cache_read_tokens) == (0, first.cache_write_tokens)
    assert second.cost_usd < first.cost_usd
    telemetry = judge._context.telemetry
    assert telemetry.counts()[EventCount.JUDGE_TOKENS, ("mine", judge.model, "cache_read")] == second.cache_read_tokens
    levels = {labels[-1]: value for (_, labels), value in telemetry.levels().items()}
    assert 0.0 < levels["requests"] <= 1.0  # what the provider's headers say is left


async def test_effort_and_thinking_are_sent_as_configured(judge_at: JudgeAt, loopback: LoopbackProcess) -> None:
    """Effort goes into output_config; thinking has room beside the reply; None sends nothing."""
    loopback.control(thinking=500)
    for options in ({"effort": "low", "thinking": "adaptive", "thinking_tokens": 2_000}, {"thinking": None}):
        judge = judge_at(loopback.address, **options)
        await judge.read(a_sample())
    first, second, *_ = (entry["body"] for entry in loopback.requests())
    assert first["output_config"]["effort"] == "low"
    assert first["thinking"] == {"type": "adaptive"}
    assert first["max_tokens"] + 2_000 == second["max_tokens"]  # 4,000 where nobody has said how much
    assert "thinking" not in second


async def test_options_that_make_no_sense_are_refused(judge_at: JudgeAt) -> None:
    """Temperature is no option any more; adaptive thinking needs room; an address has a scheme, and no password.

    A missing key is told by its place, with what to write there.
    """
    no_room = {"thinking": "adaptive", "thinking_tokens": 0}
    password = {"base_url": "https://user:secret@gateway.example/v1"}  # `check` and errors show addresses
    for wrong in ({"temperature": 0.0}, no_room, {"base_url": "localhost"}, {"concurrency": 0}, password):
        with pytest.raises(ValidationError) as caught:
            Options.model_validate(wrong)
        assert ("api_key" in str(caught.value), "secret" in str(caught.value)) == (wrong is password, False)
    for key in (None, ""):
        with pytest.raises(ConfigError, match=r"judges\.mine\.api_key: is missing; give .*ANTHROPIC_API_KEY"):
            judge_at("http://127.0.0.1:9", api_key=key)


@pytest.mark.costly
async def test_the_key_shows_nowhere(judge_at: JudgeAt, telemetry: Telemetry, log: LogCapture) -> None:
    """Not in a representation, an error, a traceback or a log, even if the server's error repeats it."""
    secret = "sk-ant-very-secret-0123456789"  # noqa: S105 - made up
    echo = {"type": "error", "error": {"type": "authentication_error", "message": f"Bearer {secret} is not valid"}}
    shown = []
    for status, reply in ((401, echo), (400, echo), (200, b"<html>"), (500, echo)):
        with canned((status, {}, reply)) as (address, _):
            judge = judge_at(address, api_key=secret, telemetry=telemetry)
            for asked in (judge.read(a_sample()), judge.probe()):
                with pytest.raises(JudgeError) as caught:
                    await asked
                shown += ["".join(traceback.format_exception(caught.value)), repr(caught.value)]
            shown += [repr(judge), repr(judge.provider), repr(judge._options), str(judge._options.model_dump())]
    shown += [str(log.entries), str(telemetry.counts())]
    assert "*** is not valid" in "".join(shown)
    assert secret not in "".join(shown)


async def test_probe_asks_for_nothing_that_costs(judge: LLMJudge, judge_at: JudgeAt, loopback: LoopbackProcess) -> None:
    """The probe counts tokens; it finds a bad key, a setting the model has not, and a server of another kind."""
    assert await judge.probe() == f"claude-haiku-5-5 answers at {loopback.address}"
    assert loopback.requests() == []
    prices = {"input": 1, "output": 5}
    no_effort = judge_at(loopback.address, model="claude-haiku-4-5", effort="low", prices=prices)
    await refused(no_effort.probe(), "does not support the effort parameter")
    wrong = judge_at(loopback.address, api_key="another")
    assert (await refused(wrong.probe(), "401"))[0] == "misconfigured"
    with canned((200, {}, {"hello": "world"})) as (address, _):
        await refused(judge_at(address).probe(), "does not answer like the Messages API")


async def failure_of(asked: Awaitable[object]) -> str:
    """Reason of the failure that a question about batches ends in; none of them is the fault of a sample."""
    with pytest.raises(CallError) as caught:
        await asked
    assert not caught.value.rule.permanent
    return str(caught.value.reason)


def provider_of(judge: LLMJudge) -> Claude:
    """The judge's provider, as batches know it."""
    assert isinstance(judge.provider, Claude)
    provider: BatchProvider = judge.provider  # the port is kept
    assert provider is judge.provider
    return judge.provider


def asks(judge: LLMJudge, count: int) -> list[tuple[str, Prompt]]:
    """Asks about as many samples, with ids."""
    return [(f"k{n}", judge.start_reading(a_sample(f"k{n}"), f"seed{n}").prompts()[0]) for n in range(count)]


async def test_a_batch_brings_every_reply_by_its_id(judge: LLMJudge, loopback: LoopbackProcess) -> None:
    """Submitted, ended, read in another order; each reply passes the check of its own ask."""
    loopback.control(batch={"polls": 2, "shuffled": True})
    provider, entries = provider_of(judge), asks(judge, 5)
    name = await provider.submit(entries)
    assert [await provider.ended(name), await provider.ended(name)] == [False, True]
    found = {custom_id: said async for custom_id, said in provider.results(name)}
    assert list(found) != sorted(found)
    for custom_id, ask in entries:
        said = found[custom_id]
        assert isinstance(said, Completion)
        assert said.usage is not None
        assert ask.check(said.text) is not None
    (sent,) = await provider.recent(0.0)
    assert (sent.id, sent.entries) == (name, 5)
    assert await provider.recent(sent.created + 60.0) == []


async def test_all_batches_since_an_instant_are_listed(judge_at: JudgeAt) -> None:
    """However many pages they take; older ones are not looked for."""

    def page(*ages: int, more: bool) -> tuple[int, dict[str, str], Any]:
        times = {age: f"2026-11-21T12:00:{59 - age}Z" for age in ages}
        rows = [{"id": f"b{n}", "created_at": at, "request_counts": {"succeeded": n}} for n, at in times.items()]
        return 200, {}, {"data": rows, "has_more": more}

    noon = 1_795_262_400.0
    with canned(page(1, 2, more=True), page(3, 4, more=True), page(5, more=False)) as (address, sent):
        found = await provider_of(judge_at(address)).recent(noon + 56)
    assert [(each.id, each.entries, each.created - noon) for each in found] == [(f"b{n}", n, 59 - n) for n in (1, 2, 3)]
    assert len(sent) == 2


async def test_entries_of_a_batch_fail_one_by_one(judge: LLMJudge, loopback: LoopbackProcess) -> None:
    """Expired and errored entries come as failures by their reason, the others as replies."""
    entry = "/v1/messages/batches/entry"
    faults = [("expired", "server"), ("overloaded", "overloaded"), ("bad_request", "rejected")]
    loopback.control(*({"kind": kind, "path": entry, "times": 1} for kind, _ in faults), batch={"shuffled": False})
    provider = provider_of(judge)
    name = await provider.submit(asks(judge, 4))
    assert await provider.ended(name)
    found = [said async for _, said in provider.results(name)]
    assert [each.reason for each in found if isinstance(each, CallError)] == [reason for _, reason in faults]
    assert isinstance(found[3], Completion)


async def test_a_batch_that_does_not_exist_is_told_as_such(judge: LLMJudge, judge_at: JudgeAt) -> None:
    """Both questions about it end in `misconfigured`; a server that fails is no proof of that.

    A reply that is none leaves open whether a batch that was sent is there; a refusal does not.
    """
    provider = provider_of(judge)
    assert await failure_of(provider.ended("msgbatch_gone")) == "misconfigured"
    assert await failure_of(anext(provider.results("msgbatch_gone"))) == "misconfigured"
    with canned((503, {}, {})) as (address, _):
        other = provider_of(judge_at(address))
        for asked in (other.ended("x"), other.recent(0.0), other.submit([])):
            assert await failure_of(asked) == "server"
    for odd in (b"<html>", {"data": [{"id": "x"}]}, {}):
        with canned((200, {}, odd)) as (address, _):
            assert await failure_of(provider_of(judge_at(address)).recent(0.0)) == "protocol"
    for status, reply, paid in ((200, b"<html>", False), (200, {}, False), (400, {}, True)):
        with canned((status, {}, reply)) as (address, _):
            with pytest.raises(CallError) as caught:
                await provider_of(judge_at(address)).submit([])
            assert (caught.value.usage is not None) is paid


async def test_hostile_results_end_in_protocol_errors(judge_at: JudgeAt) -> None:
    """Results that are cut, no objects, without an id, not there yet, or of a web page: they are read again.

    Results before that come; what separates lines is the line feed alone.
    """
    batch = {"id": "b", "type": "message_batch", "processing_status": "ended", "results_url": "URL"}
    reply = {"type": "succeeded", "message": {"type": "message", "content": [], "stop_reason": "refusal"}}
    whole = json.dumps({"custom_id": "a\u2028b\u0085", "result": reply}, ensure_ascii=False).encode()
    odd = json.dumps({"custom_id": "odd", "result": {"type": "succeeded", "message": {"content": 1}}}).encode()
    ends = (b"<html>", b"[]", b"1", b'{"result": {}}', b'{"custom_id": 1, "result": {}}', b'{"custom_id": "a"')
    for end in ends:
        lines = b"\n".join((b"", whole + b"\r", b"", odd, end))
        with canned((200, {}, batch), (200, {"content-type": "application/x-jsonl"}, lines)) as (address, _):
            batch["results_url"] = f"{address}/v1/messages/batches/b/results"
            results = provider_of(judge_at(address)).results("b")
            name, outcome = await anext(results)
            assert (name, isinstance(outcome, Completion)) == ("a\u2028b\u0085", True)
            name, outcome = await anext(results)
            assert (name, outcome.reason if isinstance(outcome, CallError) else None) == ("odd", "protocol")
            assert await failure_of(anext(results)) == "protocol"
    for body in (b"<html>", [], {"id": "b"}, batch | {"processing_status": "in_progress", "results_url": None}):
        with canned((200, {}, body)) as (address, _):
            assert await failure_of(anext(provider_of(judge_at(address)).results("b"))) == "protocol"


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
    judge_at: JudgeAt, loopback: LoopbackProcess, model: str, options: dict[str, Any], sent: str | None, *, thinks: bool
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
async def test_a_rejected_setting_loses_no_sample(judge_at: JudgeAt, loopback: LoopbackProcess) -> None:
    """The rejection is no sample's fault: the sample stays pending, no other is tried, the advice names the option."""
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"model": "claude-opus-5-5", "thinking": "disabled"}, "set judges.mine.thinking: null"),
        ({"effort": "max", "thinking": "disabled"}, "set judges.mine.thinking: null"),
        ({"model": "claude-haiku-4-5", "effort": "low"}, "set judges.mine.effort: null"),
    ]
    for options, advice in wrong:
        judge = judge_at(loopback.address, **options)
        loopback.forget()
        outcomes = await asyncio.gather(*(judge.read(a_sample(f"r{n}")) for n in range(10)), return_exceptions=True)
        errors = [outcome for outcome in outcomes if isinstance(outcome, JudgeError)]
        assert len(errors) == 10
        assert not any(error.permanent for error in errors)
        assert any(error.reason == "misconfigured" and advice in str(error) for error in errors)
        assert len(loopback.requests()) <= judge.concurrency
        assert judge.ready_in() > 0.0
        assert (await refused(judge.probe(), advice))[0] == "misconfigured"


def rejection(message: str) -> tuple[int, dict[str, str], Any]:
    """A reply of the API that refuses the request."""
    return 400, {}, {"type": "error", "error": {"type": "invalid_request_error", "message": message}}


async def test_a_rejection_that_may_lie_in_the_sample_stays_with_it(judge_at: JudgeAt) -> None:
    """A prompt that is too long, or a sample that has a message of the API in it, stops nothing.

    `max_tokens` of a reply depends on the sample; with room for thinking in it, the room is too large.
    """
    planted = "thinking.type.disabled is not supported for this model"
    for message in ("prompt is too long: 1200000 tokens > 1000000 maximum", planted):
        with canned(rejection(message)) as (address, _):
            judge = judge_at(address)
            assert await refused(judge.read(a_sample(answer=f"Cats say that {planted}."))) == ("rejected", True)
        assert judge.ready_in() == 0.0
    most = "max_tokens: 200500 > 128000, which is the maximum allowed number of output tokens"
    for tokens, permanent in ((200_000, False), (0, True)):
        with canned(rejection(most)) as (address, _), pytest.raises(JudgeError) as caught:
            await judge_at(address, thinking_tokens=tokens).read(a_sample())
        assert caught.value.permanent is permanent
        assert ("judges.mine.thinking_tokens" in str(caught.value)) is not permanent
