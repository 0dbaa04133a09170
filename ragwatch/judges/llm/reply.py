"""Parses a reply strictly, or raises a `ReplyError` with the invalid field and the expected value.

A reply is invalid if a requested claim or context is missing, named twice or unknown, or if a value is not in its
enumeration. A claim has one entry, or several that name different facts of it. Error messages never contain text of the
reply, which is untrusted: they are logged, and sent to the model to request a repair.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import orjson

from ragwatch.judges.llm.rubric import FACTS_KEYS, SUPPORTED_JOINTLY
from ragwatch.model.evidence import Address, ClaimVerdict, CriterionAnswer
from ragwatch.model.quantity_row import Part

MAX_NEEDS = 3
MAX_FACTS = 12  # of one claim
_KINDS: Mapping[str, tuple[type, str]] = {
    "object": (dict, "an object"),
    "array": (list, "a list"),
    "string": (str, "a string"),
}
_MAX_NEED_CHARS = 300
_MAX_QUOTE_CHARS = 300
_MAX_REPLY_CHARS = 1_000_000
_FENCED = re.compile(r"```[a-zA-Z]*[ \t]*\n(.*?)\n?[ \t]*```", re.DOTALL)


class ReplyError(ValueError):
    """A reply is invalid: the path of a field, empty for the whole reply, and what it must be."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(f"{field}: {why}" if field else why)
        self.field = field


@dataclass(frozen=True, slots=True)
class ReplyRow:
    """What a reply says of one claim of the answer or of the reference, or of one fact of it."""

    verdict: ClaimVerdict | None  # verdict on the claim; None if it was not requested
    quotes: tuple[tuple[int, str], ...]  # (rank of the context, quote), not checked
    # whether the other text states the claim too: the reference for a claim of the answer, the answer for one of the
    # reference; None if it was not requested
    other: bool | None
    fact: str = ""  # the words of the claim that the row is about, not checked; empty for the whole claim
    jointly: bool = False  # whether only several contexts together support the claim


ClaimRows = tuple[ReplyRow, ...]
"""What a reply says of one claim: a row about the whole claim, or one about each of its facts."""


@dataclass(frozen=True, slots=True)
class Reply:
    """Contents of a reply. None: the part was not requested."""

    # the rows of each claim of the answer, in its order; `reference` has those of the reference
    claims: tuple[ClaimRows, ...] | None = None
    useful: tuple[int, ...] | None = None  # for each context on the page, how many of its sentences are useful
    needs: tuple[str, ...] | None = None  # sub-questions that the model wrote; None where they are on the page
    answered: tuple[bool, ...] | None = None  # whether the contexts answer each of them
    address: Address | None = None
    reference: tuple[ClaimRows, ...] | None = None
    criteria: tuple[tuple[CriterionAnswer, str], ...] | None = None


@dataclass(frozen=True, slots=True)
class PageIds:
    """The ids on a page: of claims, needs and claims of the reference, and names of criteria, in order.

    Those of the lines of a context, and its rank in the sample, are by the id of the context.
    """

    claims: Sequence[str]
    contexts: Mapping[str, Sequence[str]]
    ranks: Mapping[str, int]
    needs: Sequence[str]
    reference: Sequence[str]
    criteria: Sequence[str] = ()


Entries = dict[str, list[tuple[str, dict[str, Any]]]]
"""Paths and entries of each id that a reply names."""


def parse(text: str, schema: Mapping[str, Any], ids: PageIds) -> Reply:
    """Parse the reply to a prompt with this schema about these ids; a ReplyError if it does not match the request."""
    whole = _object(text)
    reply = _requested(whole, schema, "")
    if Part.CRITERIA in reply and (unknown := len(whole[Part.CRITERIA].keys() - set(ids.criteria))):
        raise ReplyError(Part.CRITERIA, f"has {unknown} names that were not asked for")
    needs = answered = criteria = None
    if Part.NEEDS in reply:
        on_page = "id" in schema["properties"][Part.NEEDS]["items"]["properties"]
        needs, answered = _needs(reply[Part.NEEDS], ids, on_page=on_page)
    if Part.CRITERIA in reply:
        entries = reply[Part.CRITERIA].values()
        criteria = tuple((CriterionAnswer(one["answer"]), one["quote"][:_MAX_QUOTE_CHARS]) for one in entries)
    return Reply(
        claims=_rows(reply, Part.CLAIMS, ids.claims, ids),
        useful=_useful(reply[Part.CONTEXTS], ids) if Part.CONTEXTS in reply else None,
        needs=needs,
        answered=answered,
        address=Address(reply[Part.ADDRESS]) if Part.ADDRESS in reply else None,
        reference=_rows(reply, Part.REFERENCE, ids.reference, ids),
        criteria=criteria,
    )


def extract_json(text: str) -> str:
    r"""Extract the JSON object of a reply from thoughts, a code fence, or text around it.

    >>> extract_json("<think>{hm}</think>Here it is:\n```json\n{}\n```"), extract_json("Sure! {} Bye.")
    ('{}', '{}')
    """
    text = text.rpartition("</think>")[2]
    if text.lstrip()[:1] != "{" and (fenced := _FENCED.search(text)):
        text = fenced[1]
    first, last = text.find("{"), text.rfind("}")
    return text[first : last + 1] if 0 <= first < last else text.strip()


def _object(text: str) -> dict[str, Any]:
    if len(text) > _MAX_REPLY_CHARS:
        raise ReplyError("", f"must be shorter than {_MAX_REPLY_CHARS} characters")
    try:
        value = orjson.loads(extract_json(text))
    except (ValueError, UnicodeEncodeError):
        value = None
    if not isinstance(value, dict):
        raise ReplyError("", "must be one JSON object")
    return value


def _requested(value: object, schema: Mapping[str, Any], path: str) -> Any:  # noqa: ANN401 - JSON
    """Copy what a schema requests of a value. A reply without facts may leave their keys out, and may have others."""
    kind, what = _KINDS[schema["type"]]
    if not isinstance(value, kind):
        fields = schema.get("required", ())
        raise ReplyError(path, f"must be {what}" + f" with {' and '.join(fields)}" * ("quote" in fields))
    if isinstance(value, list):
        return [_requested(item, schema["items"], f"{path}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, dict):
        for key in schema["required"]:
            if key not in value and (path or key not in FACTS_KEYS.values()):
                raise ReplyError(_joined(path, key), "is missing")
        requested = {key: one for key, one in schema["properties"].items() if key in value}
        return {key: _requested(value[key], one, _joined(path, key)) for key, one in requested.items()}
    if value not in schema.get("enum", (value,)):
        raise ReplyError(path, f"must be one of {', '.join(schema['enum'])}")
    return value


def _joined(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _rows(reply: Mapping[str, Any], part: Part, lines: Sequence[str], ids: PageIds) -> tuple[ClaimRows, ...] | None:
    """The rows of each line, which has either one entry as a whole, or entries about its facts."""
    if part not in reply:
        return None
    entries = _only(_by_id(reply[part], part, lines))
    rows: dict[str, ClaimRows] = {name: (_row(path, entry, ids),) for name, (path, entry) in entries.items()}
    key = FACTS_KEYS[part]
    for name, named in _by_id(reply.get(key, []), key, lines).items():
        if name in rows:
            raise ReplyError(f"{named[0][0]}.id", f"has an entry in {part}")
        rows[name] = _facts(named, ids)
    _check_complete(rows, part, lines)
    return tuple(rows[name] for name in lines)


def _facts(entries: Sequence[tuple[str, dict[str, Any]]], ids: PageIds) -> ClaimRows:
    """A row for each fact of one line."""
    rows: dict[str, ReplyRow] = {}
    for path, entry in entries:
        row = _row(path, entry, ids)
        for index, value in enumerate(entry["facts"]):
            fact = " ".join(value.split())
            if not fact or fact in rows:
                raise ReplyError(f"{path}.facts[{index}]", "must be another part of the line")
            rows[fact] = replace(row, fact=fact)
    if not rows:
        raise ReplyError(f"{entries[0][0]}.facts", "must not be empty")
    if len(rows) > MAX_FACTS:
        raise ReplyError(f"{entries[-1][0]}.facts", f"are more than {MAX_FACTS} of one line")
    return tuple(rows.values())


def _row(path: str, entry: Mapping[str, Any], ids: PageIds) -> ReplyRow:
    word = entry.get("verdict")
    jointly = word == SUPPORTED_JOINTLY
    other = entry.get("in_reference", entry.get("in_answer"))
    quotes = []
    for index, cell in enumerate(entry.get("cells", ())):
        name = _name(cell["context"]).partition(".")[0]  # accept the id of a line of the context
        if name not in ids.ranks:
            raise ReplyError(f"{path}.cells[{index}].context", "must be the id of a context on the page")
        quotes.append((ids.ranks[name], cell["quote"]))
    return ReplyRow(
        ClaimVerdict.SUPPORTED if jointly else None if word is None else ClaimVerdict(word),
        tuple(quotes),
        None if other is None else other == "yes",
        jointly=jointly,
    )


def _useful(entries: Sequence[dict[str, Any]], ids: PageIds) -> tuple[int, ...]:
    """How many lines of each context are useful."""
    named = _only(_by_id(entries, Part.CONTEXTS, ids.contexts))
    _check_complete(named, Part.CONTEXTS, ids.contexts)
    for context, (path, entry) in named.items():
        entry["useful"] = [_name(line) for line in entry["useful"]]
        for index, line in enumerate(entry["useful"]):
            if line not in ids.contexts[context]:
                raise ReplyError(f"{path}.useful[{index}]", "must be the id of a line of that context")
    return tuple(len(set(named[context][1]["useful"])) for context in ids.contexts)


def _needs(
    entries: Sequence[dict[str, Any]], ids: PageIds, *, on_page: bool
) -> tuple[tuple[str, ...] | None, tuple[bool, ...] | None]:
    """Sub-questions that are not on the page, and whether the contexts answer each."""
    if on_page:
        named = _only(_by_id(entries, Part.NEEDS, ids.needs))
        _check_complete(named, Part.NEEDS, ids.needs)
        return None, tuple(named[need][1]["answered"] == "yes" for need in ids.needs)
    needs: dict[str, str | None] = {}
    for index, entry in enumerate(entries):
        question = " ".join(entry["question"].split())[:_MAX_NEED_CHARS]
        if not question:
            raise ReplyError(f"needs[{index}].question", "must not be empty")
        needs.setdefault(question, entry.get("answered"))
    kept = dict(islice(needs.items(), MAX_NEEDS))
    return tuple(kept), None if None in kept.values() else tuple(word == "yes" for word in kept.values())


def _only(entries: Entries) -> dict[str, tuple[str, dict[str, Any]]]:
    """The one entry of each id."""
    for named in entries.values():
        if len(named) > 1:
            raise ReplyError(f"{named[1][0]}.id", "is named twice")
    return {name: named[0] for name, named in entries.items()}


def _by_id(entries: Sequence[dict[str, Any]], path: str, ids: Collection[str]) -> Entries:
    """Paths and entries of each id that is named, in the order of the reply."""
    named: Entries = {}
    for index, entry in enumerate(entries):
        name = _name(entry["id"])
        if name not in ids:
            raise ReplyError(f"{path}[{index}].id", "must be an id of the page that was asked about")
        named.setdefault(name, []).append((f"{path}[{index}]", entry))
    return named


def _check_complete(named: Collection[str], path: str, ids: Collection[str]) -> None:
    missing = [name for name in ids if name not in named]
    if missing:
        raise ReplyError(path, f"has no entry for {', '.join(missing[:5])}")


def _name(text: str) -> str:
    """An id without the brackets or bar of the page: `[kqv]`, `kqv.1|`."""
    return text.strip("[]| ")
