"""Proposes the condition `where`, which tells the answers in a mixed log from its other records."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from ragwatch.formats import names
from ragwatch.formats.expressions import predicate
from ragwatch.formats.shape import Record

EVERY_OBJECT = "@"
_NAMES = (
    *("event", "type", "kind", "status", "status_code", "message", "msg", "action", "name", "logger", "path", "method"),
    *("component", "operation", "level", "severity"),
)
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN = re.compile(r"[^'\\`\x00-\x1f]{1,60}")
_MAX_DEPTH = 3
_MAX_TERMS = 3
_MIN_RECORDS = 5  # with fewer, a field of any name may be constant by coincidence
_Scalar = str | int | bool


def propose_where(answers: Sequence[Record], others: Sequence[Record], texts: int = 0) -> str | None:
    """Return a condition that is true for all answers, and false for as many of the other records as possible.

    None if nothing tells them apart; `@`, which every object fulfils, if there are only `texts`, lines without a JSON
    object, beside the answers.

    >>> propose_where([{"event": "answer", "id": 1}, {"event": "answer", "id": 2}], [{"event": "health"}])
    "event == 'answer'"
    """
    if not answers or not (others or texts):
        return None
    if not others:
        return EVERY_OBJECT
    every = _constants(answers)
    words = {path: value for path, value in every.items() if isinstance(value, str)}
    terms = _selective(_telling(every), others) or _selective(words, others) or _presence(answers, others)
    where = " && ".join(terms)
    return where if where and all(map(predicate("where", where), answers)) else None


def _telling(constants: Mapping[str, _Scalar]) -> dict[str, _Scalar]:
    return {path: value for path, value in constants.items() if _rank(path)[0] < len(_NAMES)}


def _selective(constants: Mapping[str, _Scalar], others: Sequence[Record]) -> list[str]:
    """Comparisons with constants, each with the one that fewest of the remaining records fulfil."""
    by_record = [dict(_scalars(record)) for record in others]
    terms: list[str] = []
    left = list(range(len(others)))
    while left and len(terms) < _MAX_TERMS:
        ranked = [
            (sum(_same(by_record[index].get(path), value) for index in left), _rank(path), path)
            for path, value in constants.items()
        ]
        if not ranked or min(ranked)[0] == len(left):
            break
        path = min(ranked)[2]
        value = constants[path]
        terms.append(f"{path} == '{value}'" if isinstance(value, str) else f"{path} == `{str(value).lower()}`")
        left = [index for index in left if _same(by_record[index].get(path), value)]
    return terms


def _constants(answers: Sequence[Record]) -> dict[str, _Scalar]:
    """Fields that have the same value in all answers, by path."""
    first, *rest = answers
    constants = dict(_scalars(first))
    if len(answers) < _MIN_RECORDS:
        constants = _telling(constants)
    for record in rest:
        values = dict(_scalars(record))
        constants = {path: value for path, value in constants.items() if _same(values.get(path), value)}
    return constants


def _presence(answers: Sequence[Record], others: Sequence[Record]) -> list[str]:
    """The condition that a field is there, which all answers have and no other record has.

    A record with most fields of an answer is an answer that lacks something: it has to be rejected, not skipped.
    """
    keys = answers[0].keys()
    others = [record for record in others if 2 * len(record.keys() & keys) < len(keys)]
    if not others:
        return []
    for name, value in answers[0].items():
        if value is None or not _IDENTIFIER.fullmatch(name) or any(record.get(name) is None for record in answers):
            continue
        if all(name not in record for record in others):
            return [f"{name} != `null`"]
    return []


def _scalars(record: Record) -> Iterator[tuple[str, _Scalar]]:
    """Path and value of short texts, whole numbers and booleans in a record and in the objects in it."""
    level: list[tuple[str, Mapping[str, object]]] = [("", record)]
    for _ in range(_MAX_DEPTH):
        deeper: list[tuple[str, Mapping[str, object]]] = []
        for prefix, parent in level:
            for key, value in parent.items():
                if not _IDENTIFIER.fullmatch(key):
                    continue
                path = f"{prefix}{key}"
                if isinstance(value, dict):
                    deeper.append((f"{path}.", value))
                elif isinstance(value, int) or (isinstance(value, str) and _may_tell_kinds(key, value)):
                    yield path, value
        level = deeper


def _may_tell_kinds(name: str, text: str) -> bool:
    """Whether a text is a word, or a telling field: two answers may be the same sentence by coincidence."""
    if name in _NAMES or not _PLAIN.fullmatch(text):
        return _PLAIN.fullmatch(text) is not None
    is_text = any(names.rank(part, name) is not None for part in ("question", "answer"))
    return not is_text and not any(map(str.isspace, text))


def _same(value: object, other: _Scalar) -> bool:
    return type(value) is type(other) and value == other


def _rank(path: str) -> tuple[int, int]:
    """How likely the field tells kinds of records apart: the lower the better."""
    name = path.rpartition(".")[2]
    return (_NAMES.index(name) if name in _NAMES else len(_NAMES), path.count("."))
