"""The model: a prompt, and the schema its reply must have -> the text of the reply."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from loopback import other_peers, peers, rule
from loopback.flaws import spoil
from loopback.page import PageError, parse
from loopback.shape import fit

_TOLD = re.compile(r"\bReply with (\{[^{}]*\})")


class Speech(NamedTuple):
    """What the model says. Note: why it did not understand."""

    text: str
    note: str | None = None


def speak(prompt: str, schema: Mapping[str, Any] | None, flaw: str | None = None, *, by_facts: bool = False) -> Speech:
    """The reply to the page, or the prompt of a peer, in a prompt. Without a schema all that could be said is said."""
    try:
        page = parse(prompt)
    except PageError as error:
        asked = peers.input_of(prompt)
        answer = peers.reply_to(asked) if asked else other_peers.reply_to(prompt)
        if isinstance(answer, str):
            return Speech(answer)
        return Speech(json.dumps(answer)) if answer else _lost(prompt, schema, str(error))
    reply = rule.reply_to(page, by_facts=by_facts)
    fitted = fit(reply, schema) if schema else reply
    return Speech(spoil(fitted, page, flaw) if flaw else json.dumps(fitted))


def _lost(prompt: str, schema: Mapping[str, Any] | None, why: str) -> Speech:
    """A model that sees no page: blanks where it is held to a schema, what it is told to reply with, or a sentence."""
    told = _TOLD.search(prompt)
    if told and not schema:
        return Speech(told[1])
    return Speech(json.dumps(fit({}, schema)) if schema else f"I cannot read this: {why}.", why)
