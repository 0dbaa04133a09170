"""The shape of a reply: one static JSON schema for each turn and set of parts.

Static, because a provider compiles every new schema anew; so ids are plain strings here and are checked by `reply`.
Three turns. JOINT: one call about everything. FIRST and CONTEXT: the two rounds of an isolated reading, first question
and answer alone, then each context in a call of its own. The keys are the parts; what an entry of a list holds:

| part      | JOINT                                           | FIRST            | CONTEXT                       |
|-----------|-------------------------------------------------|------------------|-------------------------------|
| claims    | id, cells[context, quote], verdict, in_reference| id, in_reference | id, cells, verdict            |
| contexts  | id, useful[line id]                             |                  | id, useful                    |
| needs     | question, answered                              | question         | id, answered                  |
| address   | one word                                        | one word         |                               |
| reference | id, cells[context, quote], in_answer            | id, in_answer    | id, cells                     |

`in_reference` is asked for only where the part `reference` is.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from typing import Any

from ragwatch.core.evidence import Address, ClaimVerdict
from ragwatch.judges.llm.prompt.parts import Part

_TEXT: Mapping[str, Any] = {"type": "string"}
_WORDS: Mapping[str, Any] = {"type": "array", "items": _TEXT}
_YES_NO: Mapping[str, Any] = {"type": "string", "enum": ["yes", "no"]}


class PromptTurn(StrEnum):
    """Which call of a reading this is."""

    JOINT = "joint"
    FIRST = "first"
    CONTEXT = "context"


def keys(turn: PromptTurn, parts: frozenset[Part]) -> dict[Part, tuple[str, ...]]:
    """Keys that an entry of each asked part has; empty for `address`, which is one word."""
    compared = Part.REFERENCE in parts
    table: dict[PromptTurn, dict[Part, tuple[str, ...]]] = {
        PromptTurn.JOINT: {
            Part.CLAIMS: ("id", "cells", "verdict", "in_reference") if compared else ("id", "cells", "verdict"),
            Part.CONTEXTS: ("id", "useful"),
            Part.NEEDS: ("question", "answered"),
            Part.ADDRESS: (),
            Part.REFERENCE: ("id", "cells", "in_answer"),
        },
        PromptTurn.FIRST: {
            Part.CLAIMS: ("id", "in_reference") if compared else (),
            Part.NEEDS: ("question",),
            Part.ADDRESS: (),
            Part.REFERENCE: ("id", "in_answer"),
        },
        PromptTurn.CONTEXT: {
            Part.CLAIMS: ("id", "cells", "verdict"),
            Part.CONTEXTS: ("id", "useful"),
            Part.NEEDS: ("id", "answered"),
            Part.REFERENCE: ("id", "cells"),
        },
    }
    found = {part: names for part, names in table[turn].items() if part in parts}
    if not found.get(Part.CLAIMS, ("id",)):
        del found[Part.CLAIMS]
    return found


@cache
def schema(turn: PromptTurn, parts: frozenset[Part]) -> Mapping[str, Any]:
    """The JSON schema of a reply. The same object for the same question, so that it can be compared by identity."""
    return _object({str(part): _part(part, names) for part, names in keys(turn, parts).items()})


def _part(part: Part, names: tuple[str, ...]) -> Mapping[str, Any]:
    if part is Part.ADDRESS:
        return {"type": "string", "enum": [str(each) for each in Address]}
    return {"type": "array", "items": _object({name: _KEYS[name] for name in names})}


def _object(properties: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_KEYS: Mapping[str, Mapping[str, Any]] = {
    "id": _TEXT,
    "question": _TEXT,
    "cells": {"type": "array", "items": _object({"context": _TEXT, "quote": _TEXT})},
    "verdict": {"type": "string", "enum": [str(each) for each in ClaimVerdict]},
    "useful": _WORDS,
    "answered": _YES_NO,
    "in_answer": _YES_NO,
    "in_reference": _YES_NO,
}
