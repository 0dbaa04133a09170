"""Kind `claude` against the loopback server: what is sent, what is cached, batches, and a key that shows nowhere."""

from __future__ import annotations

import asyncio
import json
import traceback
from collections.abc import AsyncIterator
from typing import Any

import pytest
from loopback.fixture import KEY, LoopbackProcess, loopback, loopback_process  # noqa: F401 - fixtures
from pydantic import ValidationError
from structlog.testing import LogCapture
from support.callers import HandClock, canned
from support.kit import a_judge_context, a_sample

from ragwatch.errors import ConfigError, JudgeError
from ragwatch.judges.claude import Claude, Options, build
from ragwatch.judges.llm.calls.failures import CallError
from ragwatch.judges.llm.calls.provider import BatchProvider, Completion
from ragwatch.judges.llm.judge import LLMJudge
from ragwatch.judges.llm.prompt.prompt import Prompt
from ragwatch.telemetry import Telemetry

MADE: list[LLMJudge] = []


def a_judge(address: str, key: str | None = KEY, telemetry: Telemetry | None = None, **options: Any) -> LLMJudge:
    """The judge, at an address."""
    given = Options(base_url=address, api_key=key, **options)  # type: ignore[arg-type]  # pydantic wraps the key
    MADE.append(build(given, name="mine", context=a_judge_context(telemetry or Telemetry()), clock=HandClock()))
    return MADE[-1]


@pytest.fixture(autouse=True)
async def all_closed() -> AsyncIterator[None]:
    """Every judge that a test has made is closed behind it."""
    yield
    while MADE:
        await MADE.pop().close()


@pytest.fixture
async def judge(loopback: LoopbackProcess) -> LLMJudge:  # noqa: F811
    """A judge at the loopback server, with its defaults; made where the loop runs."""
    return a_judge(loopback.address)


@pytest.mark.costly
async def test_one_call_a_sample_and_nothing_in_it_that_the_api_has_not(
    judge: LLMJudge,
    loopback: LoopbackProcess,  # noqa: F811
) -> None:
    """Twenty samples are twenty requests with a schema, no tools and no sampling parameter, each sent once."""
    for number in range(20):
        await judge.read(a_sample(f"r{number}"))
    requests = loopback.requests()
    assert len(requests) == 20
    for entry in requests:
        body = entry["body"]
        assert set(body) == {"model", "max_tokens", "system", "messages", "output_config", "thinking"}
        assert body["output_config"]["format"]["type"] == "json_schema"
        assert set(body["output_config"]) == {"format"}
        assert (entry["authorized"], entry["headers"]["x-stainless-retry-count"]) == (True, "0")
    schemas = {str(entry["body"]["output_config"]) for entry in requests}
    assert len(schemas) == 1


async def test_the_rubric_is_cached_after_the_first_call(judge: LLMJudge) -> None:
    """The first call writes the cache, every later one reads the same tokens from it, and the usage says so."""
    _, first = await judge.read(a_sample("a"))
    _, second = await judge.read(a_sample("b", answer="Dogs bark."))
    assert first.cache_write_tokens > 512
    assert (second.cache_write_tokens, second.cache_read_tokens) == (0, first.cache_write_tokens)
    assert second.cost_usd < first.cost_usd
    counts = {(str(kind), *labels): value for (kind, labels), value in judge._context.telemetry.counts().items()}
    assert counts["judge_tokens", "mine", judge.model, "cache_read"] == second.cache_read_tokens


async def test_effort_and_thinking_are_sent_as_configured(loopback: LoopbackProcess) -> None:  # noqa: F811
    """Effort goes into output_config; thinking has room beside the reply; None sends nothing."""
    loopback.control(thinking=500)
    for options in ({"effort": "low", "thinking": "adaptive", "thinking_tokens": 2_000}, {"thinking": None}):
        judge = a_judge(loopback.address, **options)
        await judge.read(a_sample())
    first, second, *_ = (entry["body"] for entry in loopback.requests())
    assert first["output_config"]["effort"] == "low"
    assert first["thinking"] == {"type": "adaptive"}
    assert first["max_tokens"] + 2_000 == second["max_tokens"]  # 4,000 where nobody has said how much
    assert "thinking" not in second


async def test_limits_in_headers_are_exported(judge: LLMJudge) -> None:
    """What the provider says is left is a level, by limit."""
    await judge.read(a_sample())
    levels = {labels[-1]: value for (_, labels), value in judge._context.telemetry.levels().items()}
    assert levels
    assert all(0.0 < left <= 1.0 for left in levels.values())
    assert "requests" in levels


def test_options_that_make_no_sense_are_refused() -> None:
    """Temperature is no option any more; adaptive thinking needs room; an address has a scheme."""
    no_room = {"thinking": "adaptive", "thinking_tokens": 0}
    for wrong in ({"temperature": 0.0}, no_room, {"base_url": "localhost"}, {"concurrency": 0}):
        with pytest.raises(ValidationError):
            Options.model_validate(wrong)


def test_a_missing_key_is_told_by_its_place() -> None:
    """The message names the key of the configuration, and what to write there."""
    for key in (None, ""):
        with pytest.raises(ConfigError, match=r"judges\.mine\.api_key: is missing; give .*ANTHROPIC_API_KEY"):
            a_judge("http://127.0.0.1:9", key)


@pytest.mark.costly
async def test_the_key_shows_nowhere(telemetry: Telemetry, log: LogCapture) -> None:
    """Not in a representation, an error, a traceback or a log, even if the server's error repeats it."""
    secret = "sk-ant-very-secret-0123456789"  # noqa: S105 - made up
    echo = {"type": "error", "error": {"type": "authentication_error", "message": f"Bearer {secret} is not valid"}}
    shown = []
    for status, reply in ((401, echo), (400, echo), (200, b"<html>"), (500, echo)):
        with canned((status, {}, reply)) as (address, _):
            judge = a_judge(address, secret, telemetry)
            for asked in (judge.read(a_sample()), judge.probe()):
                with pytest.raises(JudgeError) as caught:
                    await asked
                shown += ["".join(traceback.format_exception(caught.value)), repr(caught.value)]
            shown += [repr(judge), repr(judge.provider), repr(judge._options), str(judge._options.model_dump())]
    shown += [str(log.entries), str(telemetry.counts())]
    assert "*** is not valid" in "".join(shown)
    assert secret not in "".join(shown)


async def test_probe_asks_for_nothing_that_costs(judge: LLMJudge, loopback: LoopbackProcess) -> None:  # noqa: F811
    """The probe counts tokens; it finds a bad key, a setting the model has not, and a server of another kind."""
    assert await judge.probe() == f"claude-haiku-5-5 answers at {loopback.address}"
    assert loopback.requests() == []
    with pytest.raises(JudgeError, match="does not support the effort parameter"):
        await a_judge(
            loopback.address, model="claude-haiku-4-5", effort="low", prices={"input": 1, "output": 5}
        ).probe()
    wrong = a_judge(loopback.address, "another")
    with pytest.raises(JudgeError, match="401") as caught:
        await wrong.probe()
    assert caught.value.reason == "misconfigured"
    with (
        canned((200, {}, {"hello": "world"})) as (address, _),
        pytest.raises(JudgeError, match="does not answer like the Messages API"),
    ):
        await a_judge(address).probe()


def provider_of(judge: LLMJudge) -> Claude:
    """The judge's provider, as batches know it."""
    assert isinstance(judge.provider, Claude)
    provider: BatchProvider = judge.provider  # the port is kept
    assert provider is judge.provider
    return judge.provider


def asks(judge: LLMJudge, count: int) -> list[tuple[str, Prompt]]:
    """Asks about as many samples, with ids."""
    return [(f"k{n}", judge.start_reading(a_sample(f"k{n}"), f"seed{n}").prompts()[0]) for n in range(count)]


async def test_a_batch_brings_every_reply_by_its_id(judge: LLMJudge, loopback: LoopbackProcess) -> None:  # noqa: F811
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


async def test_all_batches_since_an_instant_are_listed() -> None:
    """However many pages they take; older ones are not looked for."""

    def page(*ages: int, more: bool) -> tuple[int, dict[str, str], Any]:
        rows = [
            {"id": f"b{age}", "created_at": f"2026-11-21T12:00:{59 - age}Z", "request_counts": {"succeeded": age}}
            for age in ages
        ]
        return 200, {}, {"data": rows, "has_more": more}

    noon = 1_795_262_400.0
    with canned(page(1, 2, more=True), page(3, 4, more=True), page(5, more=False)) as (address, sent):
        found = await provider_of(a_judge(address)).recent(noon + 56)
    assert [(each.id, each.entries, each.created - noon) for each in found] == [
        ("b1", 1, 58),
        ("b2", 2, 57),
        ("b3", 3, 56),
    ]
    assert len(sent) == 2


async def test_entries_of_a_batch_fail_one_by_one(judge: LLMJudge, loopback: LoopbackProcess) -> None:  # noqa: F811
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


async def test_a_batch_that_does_not_exist_is_told_as_such(judge: LLMJudge) -> None:
    """Both questions about it end in `misconfigured`; a server that fails is no proof of that."""
    provider = provider_of(judge)
    with pytest.raises(CallError) as caught:
        await provider.ended("msgbatch_gone")
    assert caught.value.reason == "misconfigured"
    with pytest.raises(CallError) as caught:
        _ = [each async for each in provider.results("msgbatch_gone")]
    assert caught.value.reason == "misconfigured"
    with canned((503, {}, {})) as (address, _):
        other = provider_of(a_judge(address))
        for asked in (other.ended("x"), other.recent(0.0), other.submit([])):
            with pytest.raises(CallError) as caught:
                await asked
            assert caught.value.reason == "server"
    for odd in (b"<html>", {"data": [{"id": "x"}]}, {}):
        with canned((200, {}, odd)) as (address, _), pytest.raises(CallError) as caught:
            await provider_of(a_judge(address)).recent(0.0)
        assert caught.value.reason == "protocol"


async def test_a_batch_that_may_have_been_accepted_says_so() -> None:
    """A reply that is none leaves open whether the batch is there; a refusal does not."""
    for status, reply, paid in ((200, b"<html>", False), (200, {}, False), (400, {}, True)):
        with canned((status, {}, reply)) as (address, _):
            with pytest.raises(CallError) as caught:
                await provider_of(a_judge(address)).submit([])
            assert (caught.value.usage is not None) is paid


async def test_results_that_are_cut_are_told() -> None:
    """A line that is no result ends the reading of a batch with `protocol`, so that it is read again; others come."""
    batch = {"id": "b", "type": "message_batch", "processing_status": "ended", "results_url": "URL"}
    odd = {"custom_id": "a", "result": {"type": "succeeded", "message": {"content": 1}}}
    lines = json.dumps(odd).encode() + b'\n{"custom_id": "b"'
    with canned((200, {}, batch), (200, {"content-type": "application/x-jsonl"}, lines)) as (address, _):
        batch["results_url"] = f"{address}/v1/messages/batches/b/results"
        results = provider_of(a_judge(address)).results("b")
        name, found = await anext(results)
        assert isinstance(found, CallError)
        assert (name, found.reason) == ("a", "protocol")
        with pytest.raises(CallError) as caught:
            await anext(results)
    assert caught.value.reason == "protocol"


@pytest.mark.costly
async def test_hostile_results_end_in_protocol_errors() -> None:
    """Results that are no objects, without an id, or of a web page; what a line separates is the line feed alone."""
    batch = {"id": "b", "type": "message_batch", "processing_status": "ended", "results_url": "URL"}
    said = {"type": "succeeded", "message": {"type": "message", "content": [], "stop_reason": "refusal"}}
    whole = json.dumps({"custom_id": "a\u2028b\u0085", "result": said}, ensure_ascii=False).encode()
    for bad in (b"<html>", b"[]", b"1", b'{"result": {}}', b'{"custom_id": 1, "result": {}}', b'{"custom_id": "a"}'):
        lines = b"\n" + whole + b"\r\n\n" + bad
        with canned((200, {}, batch), (200, {"content-type": "application/x-jsonl"}, lines)) as (address, _):
            batch["results_url"] = f"{address}/v1/messages/batches/b/results"
            results = provider_of(a_judge(address)).results("b")
            name, outcome = await anext(results)
            assert name == "a\u2028b\u0085"
            assert isinstance(outcome, Completion)
            with pytest.raises(CallError) as caught:
                await anext(results)
        assert caught.value.reason == "protocol"
    for body in (b"<html>", [], {"id": "b"}):
        with canned((200, {}, body)) as (address, _), pytest.raises(CallError) as caught:
            await anext(provider_of(a_judge(address)).results("b"))
        assert caught.value.reason == "protocol"


async def test_results_that_are_not_there_yet_are_told() -> None:
    """A batch that has not ended has no results; that is no fault of any sample."""
    batch = {"id": "b", "type": "message_batch", "processing_status": "in_progress", "results_url": None}
    with canned((200, {}, batch)) as (address, _), pytest.raises(CallError) as caught:
        await anext(provider_of(a_judge(address)).results("b"))
    assert (caught.value.reason, caught.value.rule.permanent) == ("protocol", False)


@pytest.mark.uncounted
async def test_one_client_serves_all_calls(judge: LLMJudge, loopback: LoopbackProcess) -> None:  # noqa: F811
    """Forty readings at once never have more than sixteen calls in flight."""
    loopback.control(latency={"mean": 0.05})
    await asyncio.gather(*(judge.read(a_sample(f"r{number}")) for number in range(40)))
    record = loopback.record(bodies=False)
    assert record["counts"] == {"POST /v1/messages": 40}
    assert 1 < record["peak_in_flight"] <= 16
