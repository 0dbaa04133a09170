"""The loopback server answers what deepeval, TruLens and phoenix-evals ask, so that a bench of their cost is fair."""

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


@pytest.mark.parametrize(("key", "mark"), [("claims", "AI Output"), ("truths", "Text"), ("statements", "Text")])
def test_a_statement_is_a_sentence(key: str, mark: str) -> None:
    """A text is split into its sentences, whatever deepeval calls them."""
    assert asked(key, f"\n{mark}:\n{CONTEXT}\n\nJSON:\n") == [
        "The mill stands by the river.",
        "It was built in 1820.",
        "A cat sleeps there.",
    ]


def test_every_claim_has_a_verdict() -> None:
    """As many verdicts as claims, "no" with a reason only where the contexts do not hold the words."""
    claims = ["The mill stands by the river.", "Whales sing at night."]
    verdicts = asked("verdicts", f"\nRetrieval Contexts:\n{CONTEXT}\n\nClaims:\n{claims}\n\nJSON:\n")
    assert [row["verdict"] for row in verdicts] == ["yes", "no"]
    assert [row["reason"] is None for row in verdicts] == [True, False]


def test_every_sentence_of_a_context_has_a_verdict() -> None:
    """Each sentence is repeated, as deepeval asks, with a verdict about the question."""
    verdicts = asked("verdicts", f"\nInput:\nWhere does the mill stand?\n\nContext:\n{CONTEXT}\n\nJSON:\n")
    assert [(row["statement"][:6], row["verdict"]) for row in verdicts] == [
        ("The mi", "yes"),
        ("It was", "no"),
        ("A cat ", "no"),
    ]


def test_statements_that_are_no_list_have_no_verdicts() -> None:
    """A list that cannot be read is an empty one, not an error of the server."""
    assert asked("verdicts", "\nInput:\nWhere?\n\nStatements:\n[oops\n\nJSON:\n") == []


def test_trulens_gets_grades_and_its_list_back() -> None:
    """A statement is graded by the words that its source holds; no statement is called trivial."""
    page = f"SOURCE: {CONTEXT}\n\nSTATEMENT: {{}}\n\nRespond ONLY with a single-line JSON object"
    grades = [reply_to(page.format(said)) for said in ("The mill stands by the river.", "Whales sing at night.")]
    assert [grade["score"] for grade in grades if isinstance(grade, dict)] == [3, 0]
    kept = reply_to("ALL STATEMENTS: ['Tea is green.', 'Hello.']\n\nIMPORTANT STATEMENTS: ")
    assert isinstance(kept, str)
    assert ast.literal_eval(kept) == ["Tea is green.", "Hello."]


def test_other_prompts_are_left_to_others() -> None:
    """What none of these tools asks has no reply here."""
    assert reply_to("What is the capital of France?") is None


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
