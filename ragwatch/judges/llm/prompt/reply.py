"""Parses a reply strictly, or raises a `ReplyError` with the invalid field and the expected value.

A reply is invalid if a requested claim or context is missing, named twice or unknown, or if a value is not in its
enumeration. A claim has one entry, or several that name different facts of it. Error messages never contain text of the
reply, which is untrusted: they are logged, and sent to the model to request a repair.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import orjson

from ragwatch.core.evidence import Address, ClaimVerdict, CriterionAnswer
from ragwatch.judges.llm.prompt.parts import SUPPORTED_JOINTLY, facts_key
from ragwatch.model.quantity_row import Part

Kind = TypeVar("Kind")

MAX_NEEDS = 3
MAX_FACTS = 12  # of one claim
_VERDICTS = (*map(str, ClaimVerdict), SUPPORTED_JOINTLY)
_MAX_NEED_CHARS = 300
_MAX_QUOTE_CHARS = 300
_MAX_REPLY_CHARS = 1_000_000


class ReplyError(ValueError):
    """A reply is invalid.

    Args:
        field: Path of the invalid field, empty for the whole reply.
        why: What the field must be.
    """

    def __init__(self, field: str, why: str) -> None:
        super().__init__(f"{field}: {why}" if field else why)
        self.field = field
        self.why = why


@dataclass(frozen=True, slots=True)
class ReplyRow:
    """What a reply says of one claim of the answer or of the reference, or of one fact of it.

    Attributes:
        verdict: Verdict on the claim; None if it was not requested.
        quotes: (rank of the context, quote), not checked.
        other: Whether the other text states the claim too: the reference for a claim of the answer, the answer for one
            of the reference; None if it was not requested.
        fact: The words of the claim that the row is about, not checked; empty for the whole claim.
        jointly: Whether only several contexts together support the claim.
    """

    verdict: ClaimVerdict | None
    quotes: tuple[tuple[int, str], ...]
    other: bool | None
    fact: str = ""
    jointly: bool = False


ClaimRows = tuple[ReplyRow, ...]
"""What a reply says of one claim: a row about the whole claim, or one about each of its facts."""


@dataclass(frozen=True, slots=True)
class Reply:
    """Contents of a reply. None: the part was not requested.

    Attributes:
        claims: The rows of each claim of the answer, in its order.
        useful: For each context on the page, how many of its sentences are useful.
        needs: Sub-questions that the model wrote; None where they are on the page.
        answered: Whether the contexts answer each of them.
        address: How the answer addresses the question.
        reference: The rows of each claim of the reference, in its order.
    """

    claims: tuple[ClaimRows, ...] | None = None
    useful: tuple[int, ...] | None = None
    needs: tuple[str, ...] | None = None
    answered: tuple[bool, ...] | None = None
    address: Address | None = None
    reference: tuple[ClaimRows, ...] | None = None
    criteria: tuple[tuple[CriterionAnswer, str], ...] | None = None


@dataclass(frozen=True, slots=True)
class PageIds:
    """The ids on a page.

    Attributes:
        claims: Ids of the answer's claims, in order.
        contexts: Ids of the lines of each context, by the id of the context.
        ranks: Rank of each context in the sample, by its id.
        needs: Ids of the sub-questions on the page.
        reference: Ids of the reference's claims.
        criteria: Names of the criteria that are asked.
    """

    claims: Sequence[str]
    contexts: Mapping[str, Sequence[str]]
    ranks: Mapping[str, int]
    needs: Sequence[str]
    reference: Sequence[str]
    criteria: Sequence[str] = ()


def parse(text: str, keys: Mapping[Part, Sequence[str]], ids: PageIds) -> Reply:
    """Parse the reply to a prompt that requested these keys about these ids.

    Raises:
        ReplyError: It is not JSON, or does not match the request.
    """
    reply = _object(text)
    for part in keys:
        if part not in reply:
            raise ReplyError(str(part), "is missing")

    def rows(part: Part, lines: Sequence[str]) -> tuple[ClaimRows, ...] | None:
        return _rows(reply, part, keys[part], lines, ids) if part in keys else None

    needs, answered = _needs(reply[Part.NEEDS], keys[Part.NEEDS], ids) if Part.NEEDS in keys else (None, None)
    return Reply(
        claims=rows(Part.CLAIMS, ids.claims),
        useful=_useful(reply[Part.CONTEXTS], ids) if Part.CONTEXTS in keys else None,
        needs=needs,
        answered=answered,
        address=Address(_choice(reply, Part.ADDRESS, "", tuple(map(str, Address)))) if Part.ADDRESS in keys else None,
        reference=rows(Part.REFERENCE, ids.reference),
        criteria=_criteria(reply[Part.CRITERIA], ids) if Part.CRITERIA in keys else None,
    )


def _object(text: str) -> dict[str, object]:
    """Extract the JSON object of a text, which a model without a schema may wrap in a fence or a sentence."""
    if len(text) > _MAX_REPLY_CHARS:
        raise ReplyError("", f"must be shorter than {_MAX_REPLY_CHARS} characters")
    text = text.rpartition("</think>")[2]
    start, end = text.find("{"), text.rfind("}") + 1
    try:
        value = orjson.loads(text[start:end] if start >= 0 else "")
    except (ValueError, UnicodeEncodeError):
        raise ReplyError("", "must be one JSON object") from None
    return _typed(value, dict, "", "one JSON object")


def _rows(
    reply: Mapping[str, object], part: Part, keys: Sequence[str], lines: Sequence[str], ids: PageIds
) -> tuple[ClaimRows, ...]:
    """The rows of each line, which has either one entry as a whole, or entries about its facts."""
    entries = _all_by_id(reply[part], part, lines)
    rows: dict[str, ClaimRows] = {name: (_row(*_only(named), keys, ids),) for name, named in entries.items()}
    key = facts_key(part, keys)
    if key is not None:  # a reply without facts may leave the key out
        for name, named in _all_by_id(reply.get(key, []), key, lines).items():
            if name in rows:
                raise ReplyError(f"{named[0][0]}.id", f"has an entry in {part}")
            rows[name] = _facts(named, keys, ids)
    _check_complete(rows, part, lines)
    return tuple(rows[name] for name in lines)


def _facts(entries: Sequence[tuple[str, dict[str, object]]], keys: Sequence[str], ids: PageIds) -> ClaimRows:
    """A row for each fact of one line."""
    rows: dict[str, ReplyRow] = {}
    for path, entry in entries:
        row = _row(path, entry, keys, ids)
        for index, value in enumerate(_list(entry, "facts", path)):
            place = f"{path}.facts[{index}]"
            fact = " ".join(_typed(value, str, place, "a string").split())
            if not fact or fact in rows:
                raise ReplyError(place, "must be another part of the line")
            rows[fact] = replace(row, fact=fact)
    if not rows:
        raise ReplyError(f"{entries[0][0]}.facts", "must not be empty")
    if len(rows) > MAX_FACTS:
        raise ReplyError(f"{entries[-1][0]}.facts", f"are more than {MAX_FACTS} of one line")
    return tuple(rows.values())


def _row(path: str, entry: dict[str, object], keys: Sequence[str], ids: PageIds) -> ReplyRow:
    other = next((key for key in ("in_reference", "in_answer") if key in keys), None)
    word = _choice(entry, "verdict", path, _VERDICTS) if "verdict" in keys else None
    jointly = word == SUPPORTED_JOINTLY
    return ReplyRow(
        ClaimVerdict.SUPPORTED if jointly else None if word is None else ClaimVerdict(word),
        _quotes(entry, path, ids) if "cells" in keys else (),
        _yes(entry, other, path) if other else None,
        jointly=jointly,
    )


def _quotes(entry: dict[str, object], path: str, ids: PageIds) -> tuple[tuple[int, str], ...]:
    quotes = []
    for index, cell in enumerate(_list(entry, "cells", path)):
        place = f"{path}.cells[{index}]"
        fields = _typed(cell, dict, place, "an object with context and quote")
        name = _name(_text(fields, "context", place)).partition(".")[0]  # accept the id of a line of the context
        if name not in ids.ranks:
            raise ReplyError(f"{place}.context", "must be the id of a context on the page")
        quotes.append((ids.ranks[name], _text(fields, "quote", place)))
    return tuple(quotes)


def _useful(value: object, ids: PageIds) -> tuple[int, ...]:
    """How many lines of each context are useful."""
    entries = _by_id(value, "contexts", tuple(ids.contexts))
    counts = []
    for context, lines in ids.contexts.items():
        path, entry = entries[context]
        line_ids, useful = frozenset(lines), set()
        for index, line in enumerate(_list(entry, "useful", path)):
            place = f"{path}.useful[{index}]"
            name = _name(_typed(line, str, place, "a string"))
            if name not in line_ids:
                raise ReplyError(place, "must be the id of a line of that context")
            useful.add(name)
        counts.append(len(useful))
    return tuple(counts)


def _needs(value: object, keys: Sequence[str], ids: PageIds) -> tuple[tuple[str, ...] | None, tuple[bool, ...] | None]:
    """Sub-questions that are not on the page, and whether the contexts answer each."""
    if "id" in keys:
        entries = _by_id(value, "needs", ids.needs)
        ordered = [entries[need] for need in ids.needs]
        return None, tuple(_yes(entry, "answered", path) for path, entry in ordered)
    needs: dict[str, bool] = {}
    for index, item in enumerate(_typed(value, list, "needs", "a list")):
        path = f"needs[{index}]"
        entry = _typed(item, dict, path, "an object")
        question = " ".join(_text(entry, "question", path).split())[:_MAX_NEED_CHARS]
        if not question:
            raise ReplyError(f"{path}.question", "must not be empty")
        needs.setdefault(question, _yes(entry, "answered", path) if "answered" in keys else False)
    kept = tuple(needs)[:MAX_NEEDS]
    return kept, tuple(needs[question] for question in kept) if "answered" in keys else None


def _criteria(value: object, ids: PageIds) -> tuple[tuple[CriterionAnswer, str], ...]:
    """Answer and quote, not checked, of each criterion in order."""
    entries = _typed(value, dict, "criteria", "an object")
    if unknown := len(entries.keys() - set(ids.criteria)):
        raise ReplyError("criteria", f"has {unknown} names that were not asked for")
    answers = []
    for name in ids.criteria:
        path = f"criteria.{name}"
        entry = _typed(_value(entries, name, "criteria"), dict, path, "an object with quote and answer")
        answer = CriterionAnswer(_choice(entry, "answer", path, tuple(map(str, CriterionAnswer))))
        answers.append((answer, _text(entry, "quote", path)[:_MAX_QUOTE_CHARS]))
    return tuple(answers)


def _by_id(value: object, path: str, ids: Sequence[str]) -> dict[str, tuple[str, dict[str, object]]]:
    """Path and entry of each id. Every id must be named exactly once."""
    entries = {name: _only(named) for name, named in _all_by_id(value, path, ids).items()}
    _check_complete(entries, path, ids)
    return entries


def _only(entries: Sequence[tuple[str, dict[str, object]]]) -> tuple[str, dict[str, object]]:
    if len(entries) > 1:
        raise ReplyError(f"{entries[1][0]}.id", "is named twice")
    return entries[0]


def _all_by_id(value: object, path: str, ids: Sequence[str]) -> dict[str, list[tuple[str, dict[str, object]]]]:
    """Paths and entries of each id that is named, in the order of the reply."""
    entries: dict[str, list[tuple[str, dict[str, object]]]] = {}
    expected = frozenset(ids)
    for index, item in enumerate(_typed(value, list, path, "a list")):
        place = f"{path}[{index}]"
        entry = _typed(item, dict, place, "an object")
        name = _name(_text(entry, "id", place))
        if name not in expected:
            raise ReplyError(f"{place}.id", "must be an id of the page that was asked about")
        entries.setdefault(name, []).append((place, entry))
    return entries


def _check_complete(named: Collection[str], path: str, ids: Sequence[str]) -> None:
    missing = [name for name in ids if name not in named]
    if missing:
        raise ReplyError(path, f"has no entry for {', '.join(missing[:5])}")


def _name(text: str) -> str:
    """An id without the brackets or bar of the page: `[kqv]`, `kqv.1|`."""
    return text.strip("[]| ")


def _yes(entry: dict[str, object], key: str, path: str) -> bool:
    return _choice(entry, key, path, ("yes", "no")) == "yes"


def _choice(entry: dict[str, object], key: str, path: str, choices: Sequence[str]) -> str:
    choice = _text(entry, key, path)
    if choice not in choices:
        raise ReplyError(_joined(path, key), f"must be one of {', '.join(choices)}")
    return choice


def _text(entry: dict[str, object], key: str, path: str) -> str:
    return _typed(_value(entry, key, path), str, _joined(path, key), "a string")


def _list(entry: dict[str, object], key: str, path: str) -> list[object]:
    return _typed(_value(entry, key, path), list, _joined(path, key), "a list")


def _value(entry: dict[str, object], key: str, path: str) -> object:
    if key not in entry:
        raise ReplyError(_joined(path, key), "is missing")
    return entry[key]


def _typed(value: object, kind: type[Kind], path: str, what: str) -> Kind:
    if not isinstance(value, kind):
        raise ReplyError(path, f"must be {what}")
    return value


def _joined(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
