"""Relevance judgements in a file of their own (qrels), in the formats of TREC and BEIR.

TREC: four columns, `query-id iteration document-id grade`, separated by white space. BEIR: three columns separated by
tabs, `query-id corpus-id score`, below a header. A grade is a whole number; 0 and below is not relevant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ragwatch.core.sample import RelevantContext
from ragwatch.errors import ConfigError

Qrels = Mapping[str, tuple[RelevantContext, ...]]
_COLUMNS = {3: "BEIR: query-id, corpus-id, score", 4: "TREC: query-id, iteration, document-id, grade"}


def parse_qrels(text: str, name: str) -> Qrels:
    r"""Return the relevant contexts by query id; empty for a query of which nothing is relevant.

    A context that is listed twice with different grades is an error.

    >>> parse_qrels("query-id\tcorpus-id\tscore\nq1\tc1\t2\nq1\tc2\t0\n", "qrels.tsv")
    {'q1': (RelevantContext(id='c1', text=None, grade=2),)}

    Args:
        text: Content of the file.
        name: Name of the file, for errors.

    Raises:
        ConfigError: A line is not one of the two formats; the message names the line.
    """
    grades: dict[str, dict[str, int]] = {}
    columns = 0
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        row = _split(line)
        if not row:
            continue
        place = f"{name} line {number}"
        if not columns:
            columns = len(row)
            if columns not in _COLUMNS:
                raise ConfigError(f"{place}: has {len(row)} columns; give {' or '.join(_COLUMNS.values())}")
            if _is_header(row):
                continue
        if len(row) != columns:
            raise ConfigError(f"{place}: has {len(row)} columns, the first line {columns} ({_COLUMNS[columns]})")
        _add(grades, row, place)
    return {
        query: tuple(RelevantContext(context, None, grade) for context, grade in contexts.items() if grade > 0)
        for query, contexts in grades.items()
    }


def _split(line: str) -> Sequence[str]:
    """Columns of a line; none of a blank one. Ids may contain spaces where tabs separate the columns."""
    return [column.strip() for column in line.strip().split("\t")] if "\t" in line.strip() else line.split()


def _is_header(row: Sequence[str]) -> bool:
    return _grade(row[-1]) is None and row[-1].lower() in {"score", "grade", "rel", "relevance", "relevancy", "label"}


def _add(grades: dict[str, dict[str, int]], row: Sequence[str], place: str) -> None:
    query, context, grade = row[0], row[-2], _grade(row[-1])
    if not query or not context:
        raise ConfigError(f"{place}: has an empty id")
    if grade is None:
        raise ConfigError(f"{place}: the grade {row[-1][:20]!r} is not a whole number")
    known = grades.setdefault(query, {})
    if known.setdefault(context, grade) != grade:
        raise ConfigError(f"{place}: {context!r} has the grade {grade} for {query!r}, and {known[context]} before")


def _grade(text: str) -> int | None:
    """A grade, which some files write as `1.0`; None for anything else."""
    whole, _, fraction = text.partition(".")
    digits = whole.removeprefix("-")
    if len(digits) > 6 or not (digits.isascii() and digits.isdecimal()) or fraction.strip("0"):
        return None
    return int(whole)
