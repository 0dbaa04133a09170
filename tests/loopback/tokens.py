"""Tokens, at four characters each, and what a prompt cache makes of them."""

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

LONG_PREFIX = 4096
SHORT_PREFIX = 512
_KEPT_SECONDS = 300.0


def count(text: str) -> int:
    """Tokens of a text.

    >>> count("four"), count("fives"), count("")
    (1, 2, 0)
    """
    return -(-len(text) // 4)


def of_content(content: Any) -> str:
    """The text of a message or system prompt: a string, or a list of blocks."""
    if isinstance(content, str):
        return content
    return "".join(str(block.get("text", "")) for block in content or () if isinstance(block, Mapping))


def least_prefix(model: str) -> int:
    """Tokens below which a model caches nothing, silently."""
    return LONG_PREFIX if any(old in model for old in ("haiku-4", "opus-4")) else SHORT_PREFIX


class Prompt(NamedTuple):
    """Tokens of a prompt: not cached, written to the cache, read from it."""

    plain: int
    written: int
    read: int


class PromptCache:
    """Prefixes seen before, by model, each for five minutes since its last use.

    Only blocks of the system prompt are looked at: nothing else of a judge's prompt repeats.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._until: dict[tuple[str, str], float] = {}

    def prompt(self, body: Mapping[str, Any]) -> Prompt:
        """How the tokens of a request divide; what is written is known from `keep` on."""
        whole = prompt_tokens(body)
        prefix = _prefix(body)
        cached = count(prefix)
        if not prefix or cached < least_prefix(str(body.get("model"))):
            return Prompt(whole, 0, 0)
        known = self._until.get((str(body.get("model")), prefix), 0.0) > self._clock()
        return Prompt(whole - cached, 0, cached) if known else Prompt(whole - cached, cached, 0)

    def keep(self, body: Mapping[str, Any]) -> None:
        """A reply to this request has begun: its prefix can be read from now on."""
        if prefix := _prefix(body):
            self._until[(str(body.get("model")), prefix)] = self._clock() + _KEPT_SECONDS


def _prefix(body: Mapping[str, Any]) -> str:
    """The system text up to the last block marked for caching."""
    system = body.get("system")
    prefix = seen = ""
    for block in system if isinstance(system, list) else ():
        seen += str(block.get("text", ""))
        if block.get("cache_control"):
            prefix = seen
    return prefix


def prompt_tokens(body: Mapping[str, Any]) -> int:
    """Tokens of system, messages, tools and schema."""
    texts = [of_content(body.get("system"))]
    texts += [of_content(message.get("content")) for message in body.get("messages") or ()]
    schemas = [body.get("tools"), (body.get("output_config") or {}).get("format"), body.get("response_format")]
    texts += [json.dumps(schema, separators=(",", ":")) for schema in schemas if schema]
    return count("".join(texts))
