"""Builds the JSON schema of a reply: one static schema for each turn and set of parts.

Static, because a provider compiles every new schema; so ids are plain strings here, and `reply` checks them. There are
three turns. JOINT: one call about everything. FIRST and CONTEXT: the two rounds of an isolated reading, first question
and answer, then each context in a call of its own. The keys are the parts; the keys of an entry are:

| part      | JOINT                                           | FIRST            | CONTEXT                       |
|-----------|-------------------------------------------------|------------------|-------------------------------|
| claims    | id, cells[context, quote], verdict, in_reference| id, in_reference | id, cells, verdict            |
| contexts  | id, useful[line id]                             |                  | id, useful                    |
| needs     | question, answered                              | question         | id, answered                  |
| address   | one word                                        | one word         |                               |
| reference | id, cells[context, quote], in_answer            | id, in_answer    | id, cells                     |
| criteria  | by name of a criterion: quote, answer           |                  |                               |

`in_reference` is requested only where the part `reference` is. A line whose parts differ has no entry there, but some
under `facts` (of the answer) or `reference_facts`, with the same keys and the `facts` that the entry is about. As these
have a key of their own, a line that is one claim costs nothing more.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import cache

from ragwatch.core.evidence import Address, ClaimVerdict, CriterionAnswer
from ragwatch.judges.llm.prompt.parts import SUPPORTED_JOINTLY, facts_key
from ragwatch.model.quantity_row import Part

_TEXT: Mapping[str, object] = {"type": "string"}
_TEXTS: Mapping[str, object] = {"type": "array", "items": _TEXT}
_UNSUPPORTED = tuple(verdict.value for verdict in ClaimVerdict if verdict is not ClaimVerdict.SUPPORTED)
_YES_NO: Mapping[str, object] = {"type": "string", "enum": ["yes", "no"]}


class PromptTurn(StrEnum):
    """Kind of a call of a reading."""

    JOINT = "joint"
    FIRST = "first"
    CONTEXT = "context"


def keys(turn: PromptTurn, parts: frozenset[Part]) -> dict[Part, tuple[str, ...]]:
    """Keys of an entry of each requested part; empty for `address`, which is one string."""
    compared = Part.REFERENCE in parts
    table: dict[PromptTurn, dict[Part, tuple[str, ...]]] = {
        PromptTurn.JOINT: {
            Part.CLAIMS: ("id", "cells", "verdict", *(("in_reference",) if compared else ())),
            Part.CONTEXTS: ("id", "useful"),
            Part.NEEDS: ("question", "answered"),
            Part.ADDRESS: (),
            Part.REFERENCE: ("id", "cells", "in_answer"),
            Part.CRITERIA: ("quote", "answer"),
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
    requested = {part: names for part, names in table[turn].items() if part in parts}
    if not requested.get(Part.CLAIMS, ("id",)):
        del requested[Part.CLAIMS]
    return requested


@cache
def schema(turn: PromptTurn, parts: frozenset[Part], criteria: tuple[str, ...] = ()) -> Mapping[str, object]:
    """JSON schema of a reply. Cached, so that equal schemas are the same object.

    Args:
        turn: Kind of the call.
        parts: The requested parts.
        criteria: Names of the criteria, if these are requested.
    """
    properties: dict[str, object] = {}
    for part, names in keys(turn, parts).items():
        if part is Part.CRITERIA:
            properties[str(part)] = _object(dict.fromkeys(criteria, _object({name: _KEYS[name] for name in names})))
            continue
        properties[str(part)] = _part(part, names)
        if (key := facts_key(part, names)) is not None:
            properties[key] = _part(part, ("id", "facts", *names[1:]))
    return _object(properties)


def _part(part: Part, names: tuple[str, ...]) -> Mapping[str, object]:
    if part is Part.ADDRESS:
        return {"type": "string", "enum": [str(address) for address in Address]}
    return {"type": "array", "items": _object({name: _KEYS[name] for name in names})}


def _object(properties: Mapping[str, object]) -> Mapping[str, object]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_KEYS: Mapping[str, Mapping[str, object]] = {
    "id": _TEXT,
    "facts": _TEXTS,
    "question": _TEXT,
    "cells": {"type": "array", "items": _object({"context": _TEXT, "quote": _TEXT})},
    "verdict": {"type": "string", "enum": [ClaimVerdict.SUPPORTED.value, SUPPORTED_JOINTLY, *_UNSUPPORTED]},
    "useful": _TEXTS,
    "answered": _YES_NO,
    "in_answer": _YES_NO,
    "in_reference": _YES_NO,
    "quote": _TEXT,
    "answer": {"type": "string", "enum": [str(answer) for answer in CriterionAnswer]},
}
