"""The reply: its text to values, or a `ReplyError` that names the field at fault and what it ought to be.

Nothing is guessed. A claim or context that was asked about and is missing, named twice, or unknown makes the reply
invalid, and so does a word outside its list. Messages never hold the reply's own words, which may be anybody's: they
go to logs and into the request for a repair.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import orjson

from ragwatch.core.evidence import Address, ClaimVerdict
from ragwatch.judges.llm.prompt.parts import Part

Kind = TypeVar("Kind")

NEEDS_MOST = 3
_NEED_CHARS = 300
_REPLY_CHARS = 1_000_000


class ReplyError(ValueError):
    """A reply is not what was asked for.

    Args:
        field: Path of the part at fault, empty when the whole reply is.
        why: What it ought to be.
    """

    def __init__(self, field: str, why: str) -> None:
        super().__init__(f"{field}: {why}" if field else why)
        self.field = field
        self.why = why


@dataclass(frozen=True, slots=True)
class ReplyRow:
    """What a reply says of one claim (of the answer, or of the reference).

    Attributes:
        verdict: None where it was not asked for.
        quotes: (rank of the context, quote) as given.
        other: Whether the other text says it too: the reference for a claim of the answer, the answer for one of the
            reference; None where it was not asked for.
    """

    verdict: ClaimVerdict | None
    quotes: tuple[tuple[int, str], ...]
    other: bool | None


@dataclass(frozen=True, slots=True)
class Reply:
    """What a reply says. None: it was not asked for.

    Attributes:
        claims: A row for each claim of the answer, in its order.
        useful: For each context on the page, how many of its sentences are useful.
        needs: Sub-questions in words of the model; empty words where the page named them.
        answered: Whether the contexts answer each of them.
        address: How the answer addresses the question.
        reference: A row for each claim of the reference, in its order.
    """

    claims: tuple[ReplyRow, ...] | None = None
    useful: tuple[int, ...] | None = None
    needs: tuple[str, ...] | None = None
    answered: tuple[bool, ...] | None = None
    address: Address | None = None
    reference: tuple[ReplyRow, ...] | None = None


@dataclass(frozen=True, slots=True)
class PageIds:
    """The ids on a page, and the place that each stands for.

    Attributes:
        claims: Ids of the answer's claims, in order.
        contexts: Ids of the contexts, with the ids of the lines of each.
        ranks: The place of each context in the sample.
        needs: Ids of the sub-questions on the page.
        reference: Ids of the reference's claims.
    """

    claims: Sequence[str]
    contexts: Mapping[str, Sequence[str]]
    ranks: Mapping[str, int]
    needs: Sequence[str]
    reference: Sequence[str]


def parse(text: str, keys: Mapping[Part, Sequence[str]], names: PageIds) -> Reply:
    """The reply to an ask that wanted these keys about these ids.

    Raises:
        ReplyError: It is not JSON, or not that.
    """
    found = _object(text)
    readers: Mapping[Part, Callable[[object, Sequence[str], PageIds], dict[str, Any]]] = {
        Part.CLAIMS: _claims,
        Part.CONTEXTS: _contexts,
        Part.NEEDS: _needs,
        Part.ADDRESS: _address,
        Part.REFERENCE: _reference,
    }
    values: dict[str, Any] = {}
    for part, wanted in keys.items():
        if part not in found:
            raise ReplyError(str(part), "is missing")
        values |= readers[part](found[part], wanted, names)
    return Reply(**values)


def _object(text: str) -> dict[str, Any]:
    """The JSON object in a text: all of it, or what a model without a schema wraps in a fence or a sentence."""
    if len(text) > _REPLY_CHARS:
        raise ReplyError("", f"must be shorter than {_REPLY_CHARS} characters")
    text = text.rpartition("</think>")[2]
    start, end = text.find("{"), text.rfind("}") + 1
    try:
        found = orjson.loads(text[start:end] if start >= 0 else "")
    except (ValueError, UnicodeEncodeError):
        raise ReplyError("", "must be one JSON object") from None
    return _typed(found, dict, "", "one JSON object")


def _claims(found: object, keys: Sequence[str], names: PageIds) -> dict[str, Any]:
    return {"claims": _rows(found, keys, "claims", names.claims, names)}


def _reference(found: object, keys: Sequence[str], names: PageIds) -> dict[str, Any]:
    return {"reference": _rows(found, keys, "reference", names.reference, names)}


def _rows(found: object, keys: Sequence[str], path: str, ids: Sequence[str], names: PageIds) -> tuple[ReplyRow, ...]:
    entries = _by_id(found, path, ids)
    return tuple(_row(*entries[each], keys, names) for each in ids)


def _row(path: str, entry: dict[str, Any], keys: Sequence[str], names: PageIds) -> ReplyRow:
    other = next((key for key in ("in_reference", "in_answer") if key in keys), None)
    return ReplyRow(
        ClaimVerdict(_word(entry, "verdict", path, tuple(map(str, ClaimVerdict)))) if "verdict" in keys else None,
        _quotes(entry, path, names) if "cells" in keys else (),
        _yes(entry, other, path) if other else None,
    )


def _quotes(entry: dict[str, Any], path: str, names: PageIds) -> tuple[tuple[int, str], ...]:
    found = []
    for index, cell in enumerate(_list(entry, "cells", path)):
        place = f"{path}.cells[{index}]"
        inner = _typed(cell, dict, place, "an object with context and quote")
        name = _name(_text(inner, "context", place)).partition(".")[0]  # the id of a line names its context too
        if name not in names.ranks:
            raise ReplyError(f"{place}.context", "must be the id of a context on the page")
        found.append((names.ranks[name], _text(inner, "quote", place)))
    return tuple(found)


def _contexts(found: object, _: Sequence[str], names: PageIds) -> dict[str, Any]:
    entries = _by_id(found, "contexts", tuple(names.contexts))
    counts = []
    for context, lines in names.contexts.items():
        path, entry = entries[context]
        known, useful = frozenset(lines), set()
        for index, line in enumerate(_list(entry, "useful", path)):
            place = f"{path}.useful[{index}]"
            name = _name(_typed(line, str, place, "a string"))
            if name not in known:
                raise ReplyError(place, "must be the id of a line of that context")
            useful.add(name)
        counts.append(len(useful))
    return {"useful": tuple(counts)}


def _needs(found: object, keys: Sequence[str], names: PageIds) -> dict[str, Any]:
    if "id" in keys:
        entries = _by_id(found, "needs", names.needs)
        ordered = [entries[each] for each in names.needs]
        return {"answered": tuple(_yes(entry, "answered", path) for path, entry in ordered)}
    needs: dict[str, bool] = {}
    for index, each in enumerate(_typed(found, list, "needs", "a list")):
        path = f"needs[{index}]"
        entry = _typed(each, dict, path, "an object")
        words = " ".join(_text(entry, "question", path).split())[:_NEED_CHARS]
        if not words:
            raise ReplyError(f"{path}.question", "must not be empty")
        needs.setdefault(words, _yes(entry, "answered", path) if "answered" in keys else False)
    kept = tuple(needs)[:NEEDS_MOST]
    return {"needs": kept, "answered": tuple(needs[each] for each in kept) if "answered" in keys else None}


def _address(found: object, _: Sequence[str], __: PageIds) -> dict[str, Any]:
    return {"address": Address(_word({"address": found}, "address", "", tuple(map(str, Address))))}


def _by_id(found: object, path: str, ids: Sequence[str]) -> dict[str, tuple[str, dict[str, Any]]]:
    """Path and entry of each id, every one of which must be named once."""
    entries: dict[str, tuple[str, dict[str, Any]]] = {}
    known = frozenset(ids)
    for index, each in enumerate(_typed(found, list, path, "a list")):
        place = f"{path}[{index}]"
        entry = _typed(each, dict, place, "an object")
        name = _name(_text(entry, "id", place))
        if name not in known:
            raise ReplyError(f"{place}.id", "must be an id of the page that was asked about")
        if name in entries:
            raise ReplyError(f"{place}.id", "is named twice")
        entries[name] = (place, entry)
    missing = [each for each in ids if each not in entries]
    if missing:
        raise ReplyError(path, f"has no entry for {', '.join(missing[:5])}")
    return entries


def _name(text: str) -> str:
    """An id as models write it: `[kqv]`, `kqv.1|`."""
    return text.strip("[]| ")


def _yes(entry: dict[str, Any], key: str, path: str) -> bool:
    return _word(entry, key, path, ("yes", "no")) == "yes"


def _word(entry: dict[str, Any], key: str, path: str, words: Sequence[str]) -> str:
    word = _text(entry, key, path)
    if word not in words:
        raise ReplyError(_joined(path, key), f"must be one of {', '.join(words)}")
    return word


def _text(entry: dict[str, Any], key: str, path: str) -> str:
    return _typed(_value(entry, key, path), str, _joined(path, key), "a string")


def _list(entry: dict[str, Any], key: str, path: str) -> list[object]:
    return _typed(_value(entry, key, path), list, _joined(path, key), "a list")


def _value(entry: dict[str, Any], key: str, path: str) -> object:
    if key not in entry:
        raise ReplyError(_joined(path, key), "is missing")
    return entry[key]


def _typed(found: object, kind: type[Kind], path: str, what: str) -> Kind:
    if not isinstance(found, kind):
        raise ReplyError(path, f"must be {what}")
    return found


def _joined(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
