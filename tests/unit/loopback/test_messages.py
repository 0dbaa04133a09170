"""The loopback server speaks the Messages API."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import httpx
import pytest
from loopback.asked import RUBRIC, a_request, words_of
from loopback.process import KEY, LoopbackProcess
from loopback.tokens import PromptCache


def test_a_message_answers_in_the_schema_and_is_recorded(
    claude: anthropic.Anthropic,
    loopback: LoopbackProcess,
) -> None:
    """The reply has the schema's keys alone; the record holds the body, the version and a yes for the key."""
    message = claude.messages.create(**a_request())
    assert message.stop_reason == "end_turn"
    reply = words_of(message)
    assert list(reply) == ["claims", "address"]
    assert [row["verdict"] for row in reply["claims"]] == ["supported", "not_in_context"]
    (entry,) = loopback.requests()
    assert entry["body"]["messages"] == a_request()["messages"]
    assert (entry["authorized"], entry["status"], entry["note"]) == (True, 200, None)
    assert entry["headers"]["anthropic-version"] == "2026-10-21"
    assert loopback.record()["usage"]["output"] == message.usage.output_tokens


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
@pytest.mark.parametrize(
    ("parts", "why"),
    [
        ({"temperature": 0}, "temperature: Extra inputs are not permitted"),
        ({"top_p": 1.0}, "top_p: Extra inputs are not permitted"),
        ({"top_k": 1}, "top_k: Extra inputs are not permitted"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"messages": []}, "messages: Field required"),
        ({"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "{"}]}, "prefill"),
        ({"output_config": {"effort": "extreme"}}, "output_config.effort"),
        ({"output_config": {"effort": "low"}, "model": "claude-haiku-4-5"}, "does not support the effort"),
        ({"output_config": {"effort": "max"}, "thinking": {"type": "disabled"}}, "thinking.type"),
        ({"model": "claude-opus-5-5", "thinking": {"type": "disabled"}}, '"thinking.type.disabled" is not supported'),
        ({"model": "claude-sonnet-5-5", "thinking": {"type": "disabled"}}, "thinking.type.between_tools"),
        ({"thinking": {"type": "between_tools"}}, "thinking.type.between_tools"),
        ({"output_config": {"format": {"type": "json_schema", "schema": {"properties": {}}}}}, "additionalProperties"),
        ({"stream": True}, "stream"),
        ({"messages": ["Hello"]}, "messages"),
        ({"messages": [{"role": "user", "content": None}]}, "messages.0"),
        ({"output_config": "json"}, "output_config"),
        ({"output_config": {"format": "json"}}, "output_config.format"),
    ],
)
def test_requests_that_the_api_refuses(web: httpx.Client, parts: dict[str, Any], why: str) -> None:
    """Status 400, and a message that names the field."""
    reply = web.post("/v1/messages", json=a_request(**parts))
    assert reply.status_code == 400
    error = reply.json()["error"]
    assert error["type"] == "invalid_request_error"
    assert why in error["message"]


def test_a_wrong_key_is_refused_and_none_is_recorded(loopback: LoopbackProcess) -> None:
    """Status 401 without the key; neither it nor a wrong one stands anywhere in the record."""
    for key in ("wrong-key", KEY):
        with anthropic.Anthropic(api_key=key, base_url=loopback.address, max_retries=0) as client:
            if key == KEY:
                client.messages.create(**a_request())
            else:
                with pytest.raises(anthropic.AuthenticationError):
                    client.messages.create(**a_request())
    record = loopback.record()
    assert [entry["authorized"] for entry in record["requests"]] == [False, True]
    assert "wrong-key" not in json.dumps(record)
    assert KEY not in json.dumps(record)
