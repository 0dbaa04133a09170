"""Builds requests to and parses replies of OpenAI-compatible chat endpoints, in the dialects of different servers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType

import orjson

from ragwatch.core.verdict import Usage
from ragwatch.judges.llm.calls.failures import CallError, CallFailure, safe_code
from ragwatch.judges.llm.calls.messages import token_count
from ragwatch.judges.llm.calls.provider import Completion
from ragwatch.judges.llm.prompt.prompt import Prompt


class ReplyConstraint(StrEnum):
    """How a server constrains the reply (structured outputs)."""

    SCHEMA = "schema"
    OBJECT = "object"
    NOTHING = "nothing"


_DESCRIPTIONS: Mapping[ReplyConstraint, str] = MappingProxyType(
    {
        ReplyConstraint.SCHEMA: "it binds replies to a JSON schema",
        ReplyConstraint.OBJECT: "it binds replies to JSON, not to a schema: expect some invalid ones",
        ReplyConstraint.NOTHING: "it cannot bind replies to JSON: expect invalid ones",
    }
)


@dataclass(frozen=True, slots=True)
class Dialect:
    """Request parameters that a server accepts.

    Attributes:
        constraint: How it constrains the reply.
        max_tokens_key: Its name for the maximum number of tokens of a reply.
    """

    constraint: ReplyConstraint = ReplyConstraint.SCHEMA
    max_tokens_key: str = "max_tokens"

    @property
    def description(self) -> str:
        """Sentence about the constraint, for a person."""
        return _DESCRIPTIONS[self.constraint]

    def fallback(self) -> Dialect | None:
        """The dialect to try next when the server rejects this one; None after the last."""
        if self.max_tokens_key == "max_tokens":
            return replace(self, max_tokens_key="max_completion_tokens")
        weaker = {ReplyConstraint.SCHEMA: ReplyConstraint.OBJECT, ReplyConstraint.OBJECT: ReplyConstraint.NOTHING}.get(
            self.constraint
        )
        return None if weaker is None else Dialect(weaker)


def request_body(
    prompt: Prompt, model: str, *, max_tokens: int, temperature: float | None, dialect: Dialect
) -> dict[str, object]:
    """Build the body of a request. A schema that the server does not enforce is added to the system prompt."""
    system = prompt.system
    if dialect.constraint is not ReplyConstraint.SCHEMA:
        system += f"\n\nThe reply is one JSON object of this JSON schema:\n{orjson.dumps(prompt.schema).decode()}"
    body: dict[str, object] = {
        "model": model,
        "messages": [{"role": "system", "content": system}, {"role": "user", "content": prompt.user}],
        dialect.max_tokens_key: max_tokens,
    }
    if dialect.constraint is ReplyConstraint.SCHEMA:
        json_schema = {"name": "reading", "strict": True, "schema": prompt.schema}
        body["response_format"] = {"type": "json_schema", "json_schema": json_schema}
    elif dialect.constraint is ReplyConstraint.OBJECT:
        body["response_format"] = {"type": "json_object"}
    if temperature is not None:
        body["temperature"] = temperature
    return body


_STOPS: Mapping[str, str] = MappingProxyType(
    {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal", "eos": "end_turn"}
)
_THOUGHT = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
_FENCED = re.compile(r"```[a-zA-Z]*[ \t]*\n(.*?)\n?[ \t]*```", re.DOTALL)


def parse_chat(body: Mapping[str, object]) -> Completion:
    """Parse the JSON of a chat completion.

    Raises:
        CallError: It is not a chat completion.
    """
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, Mapping) else None
    if not isinstance(choice, Mapping) or not isinstance(message, Mapping):
        raise CallError(CallFailure.PROTOCOL, "JSON, but no chat completion", usage=None)
    finish_reason = safe_code(choice.get("finish_reason"))
    stop = "refusal" if message.get("refusal") else _STOPS.get(finish_reason, finish_reason)
    content = message.get("content")
    return Completion(extract_json(content) if isinstance(content, str) else "", _usage(body.get("usage")), stop)


def extract_json(text: str) -> str:
    r"""Extract the JSON object of a reply from thoughts, a code fence, or text around it.

    >>> extract_json("<think>{hm}</think>Here it is:\n```json\n{}\n```"), extract_json("Sure! {} Bye.")
    ('{}', '{}')
    """
    text = _THOUGHT.sub("", text)
    if text.lstrip()[:1] != "{" and (fenced := _FENCED.search(text)):
        text = fenced[1]
    first, last = text.find("{"), text.rfind("}")
    return text[first : last + 1] if 0 <= first < last else text.strip()


def _usage(usage: object) -> Usage | None:
    if not isinstance(usage, Mapping):
        return None
    sent, received = token_count(usage.get("prompt_tokens")), token_count(usage.get("completion_tokens"))
    if sent is None or received is None:
        return None
    details = usage.get("prompt_tokens_details")
    cached = token_count(details.get("cached_tokens")) if isinstance(details, Mapping) else None
    read = min(sent, cached or 0)
    return Usage(sent - read, received, cache_read_tokens=read)
