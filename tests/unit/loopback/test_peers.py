"""The loopback server answers what ragas, deepeval, TruLens and phoenix-evals ask: the bench of their cost is fair."""

from __future__ import annotations

import ast
import json
from typing import Any

import httpx
import pytest
from loopback.other_peers import reply_to
from loopback.process import LoopbackProcess

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
    reply = reply_to(DEEPEVAL.format(key) + text)
    assert isinstance(reply, dict)
    return reply[key]


def test_every_claim_has_a_verdict() -> None:
    """As many verdicts as claims, "no" with a reason only where the contexts do not hold the words."""
    claims = ["The mill stands by the river.", "Whales sing at night."]
    verdicts = asked("verdicts", f"\nRetrieval Contexts:\n{CONTEXT}\n\nClaims:\n{claims}\n\nJSON:\n")
    assert [row["verdict"] for row in verdicts] == ["yes", "no"]
    assert [row["reason"] is None for row in verdicts] == [True, False]


def test_trulens_gets_grades_and_its_list_back() -> None:
    """A statement is graded by the words that its source holds; no statement is called trivial."""
    page = f"SOURCE: {CONTEXT}\n\nSTATEMENT: {{}}\n\nRespond ONLY with a single-line JSON object"
    grades = [reply_to(page.format(said)) for said in ("The mill stands by the river.", "Whales sing at night.")]
    assert [grade["score"] for grade in grades if isinstance(grade, dict)] == [3, 0]
    kept = reply_to("ALL STATEMENTS: ['Tea is green.', 'Hello.']\n\nIMPORTANT STATEMENTS: ")
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
