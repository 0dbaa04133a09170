"""Builds the system prompt (the rubric) from the texts in `judges/prompts/`, for the requested parts.

It is the same for every sample (apart from a paragraph for those with a history), so that a provider can cache it;
everything else is on the page.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib.resources import files
from types import MappingProxyType

from ragwatch.core.criteria import Criterion
from ragwatch.judges.llm.prompt.parts import facts_key
from ragwatch.judges.llm.prompt.schema import PromptTurn, keys, schema
from ragwatch.model.quantity_row import Part

_TEXTS: Mapping[PromptTurn, Mapping[Part, str]] = MappingProxyType(
    {
        PromptTurn.JOINT: {
            Part.CLAIMS: "claims",
            Part.CONTEXTS: "contexts",
            Part.NEEDS: "needs",
            Part.ADDRESS: "address",
            Part.REFERENCE: "reference",
        },
        PromptTurn.FIRST: {Part.NEEDS: "needs_first", Part.ADDRESS: "address", Part.REFERENCE: "reference_first"},
        PromptTurn.CONTEXT: {
            Part.CLAIMS: "claims",
            Part.CONTEXTS: "contexts",
            Part.NEEDS: "needs_context",
            Part.REFERENCE: "reference_context",
        },
    }
)
_CELLS = [{"context": "kqv", "quote": "ships within five days"}]
_IDS = {Part.CLAIMS: "rwd.1", Part.CONTEXTS: "kqv", Part.NEEDS: "nds.1", Part.REFERENCE: "hgp.1"}
_PATTERN: Mapping[str, object] = MappingProxyType(
    {
        "question": "How long does shipping take?",
        "cells": _CELLS,
        "verdict": "supported",
        "useful": ["kqv.1"],
        "answered": "yes",
        "in_answer": "yes",
        "in_reference": "yes",
    }
)


@lru_cache(256)
def system(
    turn: PromptTurn, parts: frozenset[Part], *, with_history: bool = False, criteria: tuple[Criterion, ...] = ()
) -> str:
    """Build the rubric for these parts, for pages with or without a history, and for these criteria if requested."""
    names = [name for part, name in _TEXTS[turn].items() if part in parts]
    opening = ("opening", "history") if with_history else ("opening",)
    questions = [_questions(criteria)] if Part.CRITERIA in keys(turn, parts) else []
    texts = [*map(_text, (*opening, *names)), *questions, _text("closing")]
    return "\n\n".join(texts) + "\n" + _pattern(turn, parts, criteria)


def _questions(criteria: tuple[Criterion, ...]) -> str:
    """The section about criteria: what is asked of each, and its examples as JSON strings."""
    lines = [_text("criteria")]
    for criterion in criteria:
        lines.append(f"`{criterion.name}`: {criterion.question}")
        lines += [
            f"- {json.dumps(example.text, ensure_ascii=False)} is `{example.answer}`" for example in criterion.examples
        ]
    return "\n".join(lines)


def _pattern(turn: PromptTurn, parts: frozenset[Part], criteria: tuple[Criterion, ...] = ()) -> str:
    """An example of a reply, with the keys of the schema."""
    example: dict[str, object] = {}
    for part, names in keys(turn, parts).items():
        if part is Part.CRITERIA:
            example[part] = {criterion.name: dict.fromkeys(names, "") | _ANSWERED for criterion in criteria}
            continue
        entry = {name: _PATTERN[name] if name != "id" else _IDS[part] for name in names}
        example[part] = [entry] if entry else "fully"
        if (key := facts_key(part, names)) is not None:
            example[key] = []
    return json.dumps(example, separators=(",", ":"))


@cache
def _text(name: str) -> str:
    return (files("ragwatch.judges") / "prompts" / f"{name}.md").read_text(encoding="utf-8").strip()


_ANSWERED = {"answer": "yes"}
READING_VERSION = 4
"""Changes with how replies are read: 2 counts a line that is reported as a whole for its facts."""


def _version() -> str:
    """Eight hexadecimal digits of the hash of all texts and schemas, and of how replies are read.

    Criteria are not part of it: the version of a judge that reads some has a digest of these.
    """
    names = sorted({"opening", "history", "closing"}.union(*(texts.values() for texts in _TEXTS.values())))
    all_parts = frozenset(Part) - {Part.CRITERIA}
    shapes = json.dumps([(schema(turn, all_parts), _pattern(turn, all_parts)) for turn in PromptTurn])
    return hashlib.sha256("\0".join([*map(_text, names), shapes, str(READING_VERSION)]).encode()).hexdigest()[:8]


PROMPT_VERSION = _version()
"""Changes with every change of the rubric, the schema of replies, or `READING_VERSION`."""


def criteria_version(criteria: tuple[Criterion, ...]) -> str:
    """Return eight hexadecimal digits of the hash of what is asked about criteria; empty if there are none."""
    if not criteria:
        return ""
    parts = frozenset({Part.CRITERIA})
    shape = schema(PromptTurn.JOINT, parts, tuple(criterion.name for criterion in criteria))
    asked = (_questions(criteria), json.dumps(shape), _pattern(PromptTurn.JOINT, parts, criteria))
    return hashlib.sha256("\0".join(asked).encode()).hexdigest()[:8]
