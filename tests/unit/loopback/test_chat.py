"""The loopback server speaks the chat protocol, and our own judges read through it."""

from __future__ import annotations

import base64
import json
import struct
import time
from typing import Any

import anthropic
import httpx
import pytest
from loopback import peers
from loopback.asked import RUBRIC, SAMPLE, SCHEMA, a_request, embedded
from loopback.process import KEY, LoopbackProcess

from ragwatch.core.evidence import Evidence
from ragwatch.core.verdict import Usage
from ragwatch.judges import KINDS as JUDGES
from ragwatch.pipeline.sampling_control import InMemoryBudget
from ragwatch.ports import JudgeContext
from ragwatch.telemetry import Telemetry

pytestmark = pytest.mark.servers


def a_chat(form: str | None = "json_schema", **parts: Any) -> dict[str, Any]:
    """A chat request about the page."""
    body = {"model": "local", "messages": [{"role": "system", "content": RUBRIC}, *a_request()["messages"]]} | parts
    if form == "json_schema":
        body["response_format"] = {"type": form, "json_schema": {"name": "reading", "strict": True, "schema": SCHEMA}}
    elif form:
        body["response_format"] = {"type": form}
    return body


def content_of(reply: httpx.Response) -> str:
    """What the first choice says."""
    found: str = reply.json()["choices"][0]["message"]["content"]
    return found


@pytest.mark.costly
def test_chat_answers_as_far_as_it_is_bound(web: httpx.Client) -> None:
    """To the schema, to JSON with all it could say, or in prose around it; a temperature is fine here."""
    bound = web.post("/v1/chat/completions", json=a_chat(temperature=0))
    assert list(json.loads(content_of(bound))) == ["claims", "address"]
    assert {"claims", "contexts", "needs"} <= json.loads(
        content_of(web.post("/v1/chat/completions", json=a_chat("json_object")))
    ).keys()
    assert "```json" in content_of(web.post("/v1/chat/completions", json=a_chat(None)))
    usage = bound.json()["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"] > 0


def test_servers_without_schemas(web: httpx.Client, loopback: LoopbackProcess) -> None:
    """Some refuse the format and name it, some take it and do not heed it."""
    loopback.control(formats=["json_object", "text"])
    refused = web.post("/v1/chat/completions", json=a_chat())
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "response_format")
    loopback.control(heeds_schema=False)
    assert "needs" in json.loads(content_of(web.post("/v1/chat/completions", json=a_chat())))


@pytest.mark.parametrize(
    ("kind", "finish"), [("max_tokens", "length"), ("refusal", "content_filter"), ("unknown_stop", "resting")]
)
def test_chat_stops(web: httpx.Client, loopback: LoopbackProcess, kind: str, finish: str) -> None:
    """The same faults, in the words of this protocol."""
    loopback.control(kind)
    reply = web.post("/v1/chat/completions", json=a_chat()).json()
    assert reply["choices"][0]["finish_reason"] == finish
    loopback.control("spend_limit")
    error = web.post("/v1/chat/completions", json=a_chat())
    assert (error.status_code, error.json()["error"]["code"]) == (429, "insufficient_quota")


def test_chat_heeds_its_limit_and_number(web: httpx.Client) -> None:
    """`max_completion_tokens` cuts, `n` repeats, unknown models and empty requests are refused."""
    short = web.post("/v1/chat/completions", json=a_chat(max_completion_tokens=5)).json()
    assert short["choices"][0]["finish_reason"] == "length"
    assert len(web.post("/v1/chat/completions", json=a_chat(n=3)).json()["choices"]) == 3
    for wrong in ({"model": "local"}, {"model": "local", "messages": ["Hello"]}, a_chat(None, response_format="json")):
        assert web.post("/v1/chat/completions", json=wrong).status_code == 400


def test_models_are_those_of_the_script(
    web: httpx.Client, claude: anthropic.Anthropic, loopback: LoopbackProcess
) -> None:
    """Both protocols list them, and both answer 404 for another."""
    loopback.control(models=["small"])
    assert [model["id"] for model in web.get("/v1/models").json()["data"]] == ["small"]
    assert [model.id for model in claude.models.list()] == ["small"]
    assert web.post("/v1/chat/completions", json=a_chat()).status_code == 404
    with pytest.raises(anthropic.NotFoundError):
        claude.messages.create(**a_request())


def test_embeddings_are_alike_in_both_encodings(web: httpx.Client) -> None:
    """One vector a text, of length one; texts with the same words have the same."""
    body = {"model": "vectors", "input": ["green tea", "Tea, green!", "black coffee"]}
    plain = [row["embedding"] for row in web.post("/v1/embeddings", json=body).json()["data"]]
    assert plain[0] == plain[1] != plain[2]
    assert sum(value * value for value in plain[2]) == pytest.approx(1.0)
    coded = web.post("/v1/embeddings", json=body | {"encoding_format": "base64"}).json()["data"][2]["embedding"]
    assert struct.unpack(f"<{peers.DIMENSIONS}f", base64.b64decode(coded)) == pytest.approx(plain[2])
    assert web.post("/v1/embeddings", json=body | {"input": [[1, 2]]}).status_code == 400


@pytest.mark.parametrize(
    ("asked", "reply"),
    [
        (
            {"question": "What do cats do?", "answer": "Cats purr. Dogs bark."},
            {"statements": ["Cats purr.", "Dogs bark."]},
        ),
        ({"context": "Cats purr.", "statements": ["Cats purr.", "Dogs bark at night."]}, {"statements": [1, 0]}),
        ({"question": "What do cats do?", "context": "Cats purr.", "answer": "Cats purr."}, {"verdict": 1}),
        ({"response": "I don't know."}, {"noncommittal": 1}),
    ],
)
def test_what_ragas_asks_is_answered(web: httpx.Client, asked: dict[str, Any], reply: dict[str, Any]) -> None:
    """Each of its prompts, shown as it shows them, gets what its metric computes from, also as a tool call."""
    prompt = f"Do it.\nNow perform the same with the following input\ninput: {json.dumps(asked, indent=4)}\nOutput: "
    body = {"model": "gpt", "messages": [{"role": "user", "content": prompt}]}
    form = {"response_format": {"type": "json_object"}}
    said = json.loads(content_of(web.post("/v1/chat/completions", json=body | form)))
    if "verdict" in str(said.get("statements")):
        assert all(len(row["reason"]) > 80 for row in said["statements"])
        said = {"statements": [row["verdict"] for row in said["statements"]]}
    assert {key: said[key] for key in reply} == reply
    tool = {"type": "function", "function": {"name": "Output", "parameters": {}}}
    called = web.post("/v1/chat/completions", json=body | {"tools": [tool]}).json()["choices"][0]["message"]
    assert called["tool_calls"][0]["function"]["name"] == "Output"
    assert json.loads(called["tool_calls"][0]["function"]["arguments"])


async def read(kind: str, **options: Any) -> tuple[Evidence, Usage]:
    """A sample, read by one of our judges."""
    context = JudgeContext(Telemetry(), InMemoryBudget(), time.time)
    module = JUDGES[kind]
    judge = module.build(module.Options.model_validate({"api_key": KEY} | options), name=kind, context=context)
    try:
        return await judge.read(SAMPLE)
    finally:
        await judge.close()


def as_embedded(evidence: Evidence) -> bool:
    """Whether a judge that asked the server has the embedded judge's verdicts."""
    wanted = embedded()
    return [(claim.verdict, claim.cells) for claim in evidence.claims] == [
        (claim.verdict, claim.cells) for claim in wanted.claims
    ]


@pytest.mark.parametrize("reading", ["joint", "isolated"])
async def test_our_own_judge_reads_through_it(loopback: LoopbackProcess, reading: str) -> None:
    """One call where all is read at once, one more than there are contexts where each is read apart."""
    evidence, usage = await read("claude", base_url=loopback.address, reading=reading)
    assert as_embedded(evidence)
    assert len(loopback.requests()) == (1 if reading == "joint" else 1 + len(SAMPLE.contexts))
    assert usage.output_tokens == loopback.record()["usage"]["output"]


@pytest.mark.parametrize("formats", [["json_schema", "text"], ["json_object", "text"], ["text"]])
async def test_our_own_judge_reads_through_plainer_servers(loopback: LoopbackProcess, formats: list[str]) -> None:
    """Whatever a server understands of formats, the evidence is the same."""
    loopback.control(formats=formats)
    evidence, _ = await read("openai", base_url=f"{loopback.address}/v1", model="local", allow_unknown_price=True)
    assert as_embedded(evidence)
