"""Chat: what is sent to and comes from an OpenAI-compatible chat endpoint, in the dialects that servers speak."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any

import orjson

from ragwatch.core.verdict import Usage
from ragwatch.judges.llm.calls.failures import CallError, CallFailure, word
from ragwatch.judges.llm.calls.messages import count_of
from ragwatch.judges.llm.calls.provider import Completion
from ragwatch.judges.llm.prompt.reading import Prompt


class ReplyConstraint(StrEnum):
    """How far the server binds a reply."""

    SCHEMA = "schema"
    OBJECT = "object"
    NOTHING = "nothing"


_TOLD: Mapping[ReplyConstraint, str] = MappingProxyType(
    {
        ReplyConstraint.SCHEMA: "it binds replies to a JSON schema",
        ReplyConstraint.OBJECT: "it binds replies to JSON, not to a schema: expect some invalid ones",
        ReplyConstraint.NOTHING: "it cannot bind replies to JSON: expect invalid ones",
    }
)


@dataclass(frozen=True, slots=True)
class Dialect:
    """What a server understands.

    Attributes:
        bound: How far it binds a reply.
        most: Its name for the most tokens of a reply.
    """

    bound: ReplyConstraint = ReplyConstraint.SCHEMA
    most: str = "max_tokens"

    @property
    def told(self) -> str:
        """The same, for a person."""
        return _TOLD[self.bound]

    def plainer(self) -> Dialect | None:
        """The dialect to try next when this one is not understood; None behind the last."""
        if self.most == "max_tokens":
            return replace(self, most="max_completion_tokens")
        after = {ReplyConstraint.SCHEMA: ReplyConstraint.OBJECT, ReplyConstraint.OBJECT: ReplyConstraint.NOTHING}.get(
            self.bound
        )
        return None if after is None else Dialect(after)


def body_of(ask: Prompt, model: str, max_tokens: int, temperature: float | None, dialect: Dialect) -> dict[str, Any]:
    """The body of a request. A schema that the server does not enforce is shown to the model instead."""
    system = ask.system
    if dialect.bound is not ReplyConstraint.SCHEMA:
        system += f"\n\nThe reply is one JSON object of this JSON schema:\n{orjson.dumps(ask.schema).decode()}"
    body: dict[str, Any] = {
        "model": model,
        "messages": [{"role": "system", "content": system}, {"role": "user", "content": ask.user}],
        dialect.most: max_tokens,
    }
    if dialect.bound is ReplyConstraint.SCHEMA:
        shape = {"name": "reading", "strict": True, "schema": ask.schema}
        body["response_format"] = {"type": "json_schema", "json_schema": shape}
    elif dialect.bound is ReplyConstraint.OBJECT:
        body["response_format"] = {"type": "json_object"}
    if temperature is not None:
        body["temperature"] = temperature
    return body


_STOPS: Mapping[str, str] = MappingProxyType(
    {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal", "eos": "end_turn"}
)
_THOUGHT = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
_FENCED = re.compile(r"```[a-zA-Z]*[ \t]*\n(.*?)\n?[ \t]*```", re.DOTALL)


def chat(body: Mapping[str, Any]) -> Completion:
    """A reply out of the JSON of a completion.

    Raises:
        CallFailed: It is no completion.
    """
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    found = choice.get("message") if isinstance(choice, Mapping) else None
    if not isinstance(choice, Mapping) or not isinstance(found, Mapping):
        raise CallError(CallFailure.PROTOCOL, "JSON, but no chat completion", usage=None)
    ended = word(choice.get("finish_reason"))
    stop = "refusal" if found.get("refusal") else _STOPS.get(ended, ended)
    content = found.get("content")
    return Completion(bare(content) if isinstance(content, str) else "", _usage(body.get("usage")), stop)


def bare(text: str) -> str:
    r"""The JSON object in a reply, without the thoughts before it, a fence around it, or words on either side.

    >>> bare("<think>{hm}</think>Here it is:\n```json\n{}\n```"), bare("Sure! {} Bye.")
    ('{}', '{}')
    """
    text = _THOUGHT.sub("", text)
    if text.lstrip()[:1] != "{" and (fenced := _FENCED.search(text)):
        text = fenced[1]
    first, last = text.find("{"), text.rfind("}")
    return text[first : last + 1] if 0 <= first < last else text.strip()


def _usage(found: object) -> Usage | None:
    if not isinstance(found, Mapping):
        return None
    sent, received = count_of(found.get("prompt_tokens")), count_of(found.get("completion_tokens"))
    if sent is None or received is None:
        return None
    details = found.get("prompt_tokens_details")
    cached = count_of(details.get("cached_tokens")) if isinstance(details, Mapping) else None
    read = min(sent, cached or 0)
    return Usage(sent - read, received, cache_read_tokens=read)
