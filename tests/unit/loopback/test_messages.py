"""The loopback server speaks the Messages API, plays its script, reads pages, and answers what other tools ask."""

import ast
import json
from typing import Any

import httpx
import pytest
from loopback import other_peers as peers
from loopback.asked import RUBRIC, SAMPLE, a_page, a_request, embedded
from loopback.faults import Fault, Script
from loopback.page import parse, text_of
from loopback.process import LoopbackProcess
from loopback.rule import reply_to
from loopback.tokens import PromptCache
from support.hostile import HOSTILE
from support.kit import a_sample

from ragwatch.judges.claims.claims import claims_of
from ragwatch.judges.llm.quotes import folded, is_verbatim
from ragwatch.model.sample import Role, Turn


def test_short_unmarked_and_stale_prefixes_are_not_read_from_the_cache() -> None:
    """512 tokens at least (4,096 for older models), a mark, and no more than five minutes since the last use."""
    now = [0.0]
    cache = PromptCache(lambda: now[0])
    request = a_request()
    cache.keep(request)
    assert cache.prompt(request).read == len(RUBRIC) // 4
    now[0] = 301.0
    assert (cache.prompt(request).read, cache.prompt(request).written) == (0, len(RUBRIC) // 4)
    for other in (
        a_request(system=[{"type": "text", "text": "Short.", "cache_control": {"type": "ephemeral"}}]),
        a_request(system=[{"type": "text", "text": RUBRIC}]),
        a_request(system=RUBRIC),
        a_request(model="claude-haiku-4-5"),
    ):
        cache.keep(other)
        assert cache.prompt(other)[1:3] == (0, 0)


@pytest.mark.costly
def test_requests_that_the_api_refuses(web: httpx.Client) -> None:
    """Status 400, and a message that names the field."""
    prefilled = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "{"}]
    schema = {"type": "json_schema", "schema": {"properties": {}}}
    refused: list[tuple[dict[str, Any], str]] = [
        ({"temperature": 0}, "temperature: Extra inputs are not permitted"),
        ({"top_p": 1.0}, "top_p: Extra inputs are not permitted"),
        ({"top_k": 1}, "top_k: Extra inputs are not permitted"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"messages": []}, "messages: Field required"),
        ({"messages": prefilled}, "prefill"),
        ({"output_config": {"effort": "extreme"}}, "output_config.effort"),
        ({"output_config": {"effort": "low"}, "model": "claude-haiku-4-5"}, "does not support the effort"),
        ({"output_config": {"effort": "max"}, "thinking": {"type": "disabled"}}, "thinking.type"),
        ({"model": "claude-opus-5-5", "thinking": {"type": "disabled"}}, '"thinking.type.disabled" is not supported'),
        ({"model": "claude-sonnet-5-5", "thinking": {"type": "disabled"}}, "thinking.type.between_tools"),
        ({"thinking": {"type": "between_tools"}}, "thinking.type.between_tools"),
        ({"output_config": {"format": schema}}, "additionalProperties"),
        ({"stream": True}, "stream"),
        ({"messages": ["Hello"]}, "messages"),
        ({"messages": [{"role": "user", "content": None}]}, "messages.0"),
        ({"output_config": "json"}, "output_config"),
        ({"output_config": {"format": "json"}}, "output_config.format"),
    ]
    for parts, why in refused:
        reply = web.post("/v1/messages", json=a_request(**parts))
        error = reply.json()["error"]
        assert (reply.status_code, error["type"]) == (400, "invalid_request_error"), parts
        assert why in error["message"]


def test_a_script_strikes_where_it_says() -> None:
    """Path, text, times and those that go by first are heeded; a share is drawn alike from the same seed."""
    busy, page = Fault(kind="overloaded", after=1, times=2), Fault(kind="html", path="/v1/embeddings", match="tea")
    script = Script([busy, page])
    struck = [script.pick("/v1/messages", "") for _ in range(4)]
    assert [fault.kind if fault else None for fault in struck] == [None, "overloaded", "overloaded", None]
    assert script.pick("/v1/embeddings", "milk") is None
    assert script.pick("/v1/embeddings", "green tea") is not None
    faults = [Fault(kind="overloaded", share=0.3)]
    first, second, other = (Script(faults, seed) for seed in (1, 1, 2))
    draws = [[script.pick("/v1/messages", "") is not None for _ in range(1000)] for script in (first, second, other)]
    assert draws[0] == draws[1] != draws[2]
    assert 250 < sum(draws[0]) < 350


@pytest.mark.parametrize("text", HOSTILE)
def test_a_page_reads_back_as_it_was_written(text: str) -> None:
    """Whatever stands in question, context and answer, each line comes back in its section with its own words."""
    history = (Turn(Role.USER, "Hello"), Turn(Role.ASSISTANT, text))
    sample = a_sample(question=text, contexts=(text, "Cats purr."), answer=f"Cats purr. {text}", history=history)
    page = parse(a_page(sample))
    assert [(role, text_of(lines)) for role, lines in page.history] == [("user", "Hello"), ("assistant", text.strip())]
    assert text_of(page.question) == text.strip()
    said = [sample.answer[claim.start : claim.end] for claim in claims_of(sample.answer, text).claims]
    assert [line.meant for line in page.answer if line.numbered] == said
    assert "".join(text_of(page.contexts[0][1]).split()) == "".join(text.split())
    assert page.contexts[1][1][0].meant == "Cats purr."


def test_the_rule_is_what_the_embedded_judge_reads() -> None:
    """Verdicts, cells, relevance and address are the embedded judge's; every quote stands where it says."""
    page = parse(a_page())
    reply = reply_to(page)
    evidence = embedded()
    assert [row["verdict"] for row in reply["claims"]] == [str(claim.verdict) for claim in evidence.claims]
    assert reply["claims"][0]["cells"][0]["context"] == page.contexts[0][0]
    assert [bool(row["useful"]) for row in reply["contexts"]] == [each.relevant for each in evidence.contexts]
    assert reply["address"] == str(evidence.address)
    texts = {mark: folded(each.text) for (mark, _), each in zip(page.contexts, SAMPLE.contexts, strict=True)}
    cells = [cell for row in reply["claims"] for cell in row["cells"]]
    assert cells
    assert all(is_verbatim(cell["quote"], texts[cell["context"]]) for cell in cells)


CONTEXT = "The mill stands by the river. It was built in 1820. A cat sleeps there."
DEEPEVAL = '**IMPORTANT: Please make sure to only return in JSON format, with the "{}" key.**\n'
SCHEMA = {
    "type": "object",
    "properties": {
        "criteria": {"type": "string"},
        "supporting_evidence": {"type": "string"},
        "score": {"type": "integer"},
    },
}


def asked(key: str, text: str) -> Any:
    """The value under the key that a prompt of deepeval asks for."""
    reply = peers.reply_to(DEEPEVAL.format(key) + text)
    assert isinstance(reply, dict)
    return reply[key]


def test_deepeval_and_trulens_get_what_they_ask_for() -> None:
    """As many verdicts as claims, "no" with a reason; a statement is graded by the words that its source holds."""
    claims = ["The mill stands by the river.", "Whales sing at night."]
    verdicts = asked("verdicts", f"\nRetrieval Contexts:\n{CONTEXT}\n\nClaims:\n{claims}\n\nJSON:\n")
    assert [row["verdict"] for row in verdicts] == ["yes", "no"]
    assert [row["reason"] is None for row in verdicts] == [True, False]
    page = f"SOURCE: {CONTEXT}\n\nSTATEMENT: {{}}\n\nRespond ONLY with a single-line JSON object"
    grades = [peers.reply_to(page.format(said)) for said in ("The mill stands by the river.", "Whales sing at night.")]
    assert [grade["score"] for grade in grades if isinstance(grade, dict)] == [3, 0]
    kept = peers.reply_to("ALL STATEMENTS: ['Tea is green.', 'Hello.']\n\nIMPORTANT STATEMENTS: ")
    assert isinstance(kept, str)
    assert ast.literal_eval(kept) == ["Tea is green.", "Hello."]


def test_responses_are_held_to_their_schema(web: httpx.Client, loopback: LoopbackProcess) -> None:
    """The newer protocol gives the same reply in its own shape, counts it, and refuses what is no request."""
    body = {
        "model": "any",
        "input": [{"role": "user", "content": f"SOURCE: {CONTEXT}\n\nSTATEMENT: A cat sleeps there."}],
        "text": {"format": {"type": "json_schema", "name": "grade", "schema": SCHEMA}},
    }
    reply = web.post("/v1/responses", json=body)
    message = reply.json()["output"][0]["content"][0]["text"]
    assert json.loads(message)["score"] == 3
    assert reply.json()["usage"]["output_tokens"] == loopback.record()["usage"]["output"] > 0
    refused = web.post("/v1/responses", json={"model": "any"})
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "input")


def content_of(reply: httpx.Response) -> str:
    """What the first choice says."""
    found: str = reply.json()["choices"][0]["message"]["content"]
    return found


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
