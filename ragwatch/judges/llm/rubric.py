"""What is asked of a model: the rubric from the texts in `judges/prompts/`, and the JSON schema of the reply.

Both are the same for every sample with the same parts (apart from a paragraph for those with a history), so that a
provider can cache the one and compile the other once; everything else is on the page. So ids are plain strings here,
and `reply` checks them. There are three turns. JOINT: one call about everything. FIRST and CONTEXT: the two rounds of
an isolated reading, first question and answer, then each context in a call of its own. The keys of an entry are:

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

import hashlib
import json
from collections.abc import Mapping
from enum import StrEnum
from functools import cache, lru_cache
from importlib.resources import files

from ragwatch.model.evidence import Address, ClaimVerdict, CriterionAnswer
from ragwatch.model.quantities import Criterion, Quantity
from ragwatch.model.quantity_row import Part

SUPPORTED_JOINTLY = "supported_jointly"
"""The word of a reply for a claim that only several contexts together support: `supported`, with cells `jointly`."""


FACTS_KEYS: Mapping[Part, str] = {Part.CLAIMS: "facts", Part.REFERENCE: "reference_facts"}
"""Keys of the entries about facts, where contexts are read for the lines of a part."""


def parts_of(quantities: frozenset[Quantity], *, reference: bool) -> frozenset[Part]:
    """Parts that these quantities are computed from; with a reference also the parts to compare it by.

    >>> sorted(parts_of(frozenset({Quantity.CONTEXT_USE}), reference=False))
    [<Part.ADDRESS: 'address'>, <Part.CLAIMS: 'claims'>]
    """
    parts = frozenset[Part]().union(*(quantity.row.parts for quantity in quantities))
    return parts | {Part.CLAIMS, Part.REFERENCE} if reference else parts


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
    """JSON schema of a reply. Cached, so that equal schemas are the same object."""
    properties: dict[str, object] = {}
    for part, names in keys(turn, parts).items():
        if part is Part.CRITERIA:
            properties[str(part)] = _object(dict.fromkeys(criteria, _object({name: _KEYS[name] for name in names})))
            continue
        properties[str(part)] = _part(part, names)
        if "cells" in names:
            properties[FACTS_KEYS[part]] = _part(part, ("id", "facts", *names[1:]))
    return _object(properties)


def _part(part: Part, names: tuple[str, ...]) -> Mapping[str, object]:
    if part is Part.ADDRESS:
        return {"type": "string", "enum": [str(address) for address in Address]}
    return {"type": "array", "items": _object({name: _KEYS[name] for name in names})}


def _object(properties: Mapping[str, object]) -> Mapping[str, object]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


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


_SECTIONS: Mapping[PromptTurn, tuple[str, ...]] = {
    PromptTurn.JOINT: ("claims", "contexts", "needs", "address", "reference"),
    PromptTurn.FIRST: ("needs_first", "address", "reference_first"),
    PromptTurn.CONTEXT: ("claims", "contexts", "needs_context", "reference_context"),
}
"""The texts of a rubric in their order; the first word is that of the part."""
_CELLS = [{"context": "kqv", "quote": "ships within five days"}]
_IDS = {Part.CLAIMS: "rwd.1", Part.CONTEXTS: "kqv", Part.NEEDS: "nds.1", Part.REFERENCE: "hgp.1"}
_PATTERN: Mapping[str, object] = {
    "question": "How long does shipping take?",
    "cells": _CELLS,
    "verdict": "supported",
    "useful": ["kqv.1"],
    "answered": "yes",
    "in_answer": "yes",
    "in_reference": "yes",
}


@lru_cache(256)
def system(
    turn: PromptTurn, parts: frozenset[Part], *, with_history: bool = False, criteria: tuple[Criterion, ...] = ()
) -> str:
    """Build the rubric for these parts, for pages with or without a history, and for these criteria if requested."""
    names = [name for name in _SECTIONS[turn] if Part(name.partition("_")[0]) in parts]
    opening = ("opening", "history") if with_history else ("opening",)
    questions = [_questions(criteria)] if Part.CRITERIA in keys(turn, parts) else []
    texts = [*map(_section, (*opening, *names)), *questions, _section("closing")]
    return "\n\n".join(texts) + "\n" + _pattern(turn, parts, criteria)


def _questions(criteria: tuple[Criterion, ...]) -> str:
    """The section about criteria: what is asked of each, and its examples as JSON strings."""
    lines = [_section("criteria")]
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
        if "cells" in names:
            example[FACTS_KEYS[part]] = []
    return json.dumps(example, separators=(",", ":"))


@cache
def _section(name: str) -> str:
    return (files("ragwatch.judges") / "prompts" / f"{name}.md").read_text(encoding="utf-8").strip()


_ANSWERED = {"answer": "yes"}
READING_VERSION = 4
"""Changes with how replies are read: 2 counts a line that is reported as a whole for its facts."""


def _version() -> str:
    """Eight hexadecimal digits of the hash of all texts and schemas, and of how replies are read.

    Criteria are not part of it: the version of a judge that reads some has a digest of these.
    """
    names = sorted({"opening", "history", "closing"}.union(*_SECTIONS.values()))
    all_parts = frozenset(Part) - {Part.CRITERIA}
    shapes = json.dumps([(schema(turn, all_parts), _pattern(turn, all_parts)) for turn in PromptTurn])
    return hashlib.sha256("\0".join([*map(_section, names), shapes, str(READING_VERSION)]).encode()).hexdigest()[:8]


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
