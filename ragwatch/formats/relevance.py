"""Relevance judgements. In a record: `relevant_ids` and `relevant_texts`.

`relevant_ids` is a list of ids, of `{"id", "grade"}`, or an object from id to grade; `relevant_texts` is a list of
texts or of `{"text", "grade"}`. A grade is a whole number: 0 is not relevant, 1 relevant, higher ones more relevant.

They may also be in a file of their own (qrels). TREC: four columns, `query-id iteration document-id grade`, separated
by white space. BEIR: three columns separated by tabs, `query-id corpus-id score`, below a header. Grades of 0 and below
are not relevant there.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from ragwatch.errors import ConfigError
from ragwatch.formats import fields
from ragwatch.formats.record import Record
from ragwatch.model.sample import RelevantContext

KEYS = ("relevant_ids", "relevant_texts")
_MAX_GRADE = 1000
_GRADE_IN_FILE = re.compile(r"(-?[0-9]{1,6})(?:\.0*)?")  # some files write `1.0`
Qrels = Mapping[str, tuple[RelevantContext, ...]]
_HEADER = ("score", "grade", "rel", "relevance", "relevancy", "label")  # names of the last column
_COLUMNS = {3: "BEIR: query-id, corpus-id, score", 4: "TREC: query-id, iteration, document-id, grade"}


def relevant_contexts(record: Record) -> tuple[RelevantContext, ...] | None:
    """Return the relevant contexts of a record; None if it has neither key, or both are null.

    A context that is listed twice has the higher grade; one of grade 0 is left out.
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
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_GRADE:
        return value
    raise fields.wrong(path, f"a whole number from 0 to {_MAX_GRADE}", value)


def parse_qrels(text: str, name: str) -> Qrels:
    """Return the relevant contexts by query id; empty for a query of which nothing is relevant.

    A line of neither format, and a context that is listed twice with different grades, is a `ConfigError`.
    """
    grades: dict[str, dict[str, int]] = {}
    columns = 0
    for number, raw in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        line = raw.strip()  # ids may contain spaces where tabs separate the columns
        row = [column.strip() for column in line.split("\t")] if "\t" in line else line.split()
        if not row:
            continue
        place = f"{name} line {number}"
        if not columns:
            columns = len(row)
            if columns not in _COLUMNS:
                raise ConfigError(f"{place}: has {len(row)} columns; give {' or '.join(_COLUMNS.values())}")
            if row[-1].lower() in _HEADER:
                continue
        if len(row) != columns:
            raise ConfigError(f"{place}: has {len(row)} columns, the first line {columns} ({_COLUMNS[columns]})")
        _add(grades, row, place)
    return {
        query: tuple(RelevantContext(context, None, grade) for context, grade in contexts.items() if grade > 0)
        for query, contexts in grades.items()
    }


def _add(grades: dict[str, dict[str, int]], row: Sequence[str], place: str) -> None:
    query, context, whole = row[0], row[-2], _GRADE_IN_FILE.fullmatch(row[-1])
    if not query or not context:
        raise ConfigError(f"{place}: has an empty id")
    if whole is None:
        raise ConfigError(f"{place}: the grade {row[-1][:20]!r} is not a whole number")
    grade, known = int(whole[1]), grades.setdefault(query, {})
    if known.setdefault(context, grade) != grade:
        raise ConfigError(f"{place}: {context!r} has the grade {grade} for {query!r}, and {known[context]} before")
