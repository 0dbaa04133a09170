"""Relevance judgements in a record: `relevant_ids` and `relevant_texts`.

`relevant_ids` is a list of ids, of `{"id", "grade"}`, or an object from id to grade; `relevant_texts` is a list of
texts or of `{"text", "grade"}`. A grade is a whole number: 0 is not relevant, 1 relevant, higher ones more relevant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ragwatch.core.sample import RelevantContext
from ragwatch.formats import fields
from ragwatch.formats.shape import Record

KEYS = ("relevant_ids", "relevant_texts")
MAX_GRADE = 1000


def relevant_contexts(record: Record) -> tuple[RelevantContext, ...] | None:
    """Return the relevant contexts of a record; None if it has neither key, or both are null.

    A context that is listed twice has the higher grade; one of grade 0 is left out.

    >>> relevant_contexts({"relevant_ids": ["c1", {"id": "c2", "grade": 2}]})
    (RelevantContext(id='c1', text=None, grade=1), RelevantContext(id='c2', text=None, grade=2))
    >>> relevant_contexts({"relevant_ids": {"c1": 0}}), relevant_contexts({"question": "why?"})
    ((), None)

    Raises:
        FormatError: A key has a value of the wrong type.
    """
    ids, texts = (record.get(key) for key in KEYS)
    if ids is None and texts is None:
        return None
    by_id = _highest(_items(ids, KEYS[0], "id", fields.identity))
    by_text = _highest(_items(texts, KEYS[1], "text", fields.text))
    return (
        *(RelevantContext(key, None, grade) for key, grade in by_id.items() if grade),
        *(RelevantContext(None, text, grade) for text, grade in by_text.items() if grade),
    )


def _highest(items: Iterator[tuple[str, int]]) -> dict[str, int]:
    grades: dict[str, int] = {}
    for key, grade in items:
        grades[key] = max(grade, grades.get(key, 0))
    return grades


def _items(
    value: object, path: str, name: str, convert: Callable[[object, str], str | None]
) -> Iterator[tuple[str, int]]:
    if value is None:
        return
    if isinstance(value, dict) and name == "id":
        for key, grade in value.items():
            yield key, _grade(grade, f"{path}.{key}")
        return
    if not isinstance(value, list):
        raise fields.wrong(path, "a list", value)
    for index, item in enumerate(value):
        place = f"{path}[{index}]"
        key, grade = (item.get(name), item.get("grade", 1)) if isinstance(item, dict) else (item, 1)
        converted = convert(key, place)
        if not converted or converted.isspace():
            raise fields.missing(place, f"has no {name}")
        yield converted, _grade(grade, f"{place}.grade")


def _grade(value: object, path: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_GRADE:
        return value
    raise fields.wrong(path, f"a whole number from 0 to {MAX_GRADE}", value)
