"""Finds documents that are no longer retrieved, and since when: a vanished document is in no failing answer.

A time counts if of the documents that were retrieved outside of it, and that chance would have brought back, hardly any
came back. That only depends on what was retrieved, never on how answers failed.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence

from ragwatch.core.causes.slices import METADATA_PREFIX, MIN_ANSWERS, Answer, Attribute, Places, Slice

MAX_NAMED = 20
_MAX_DOCUMENTS, _MAX_HELD, _GRID = 1000, 20, 24
_MIN_HELD = 0.5  # share of the answers of a period that have the value
_MIN_RETRIEVALS = 2  # of a document outside of the period
_MIN_EXPECTED = 5.0  # documents that chance brings back
_MAX_SHARE = 0.5  # of them that came back
_MIN_DEVIATION = 4.0  # standard deviations
_NAMED_CHANCE = 0.5  # of coming back by chance, from which an absent document is named

Period = tuple[int, int]


def missing_documents(answers: Sequence[Answer], by_attribute: Mapping[str, Places]) -> list[Slice]:
    """Return at most one slice: the answers of the period in which most documents are missing."""
    order = sorted(range(len(answers)), key=lambda place: answers[place].seq)
    position = [0] * len(answers)
    for number, place in enumerate(order):
        position[place] = number
    documents = _documents(by_attribute.get(Attribute.CONTEXT, {}), position)
    best: tuple[float, Period, tuple[str, ...]] | None = None
    for period in _periods(len(answers), by_attribute, position):
        absence = _absence(documents, period, len(answers))
        if absence is not None and (best is None or absence[0] > best[0]):
            best = (absence[0], period, absence[1])
    if best is None:
        return []
    _, (begin, end), names = best
    others = f" and {len(names) - 1} more" if len(names) > 1 else ""
    places = sorted(order[begin:end])
    return [Slice(Attribute.MISSING_CONTEXT, f"{names[0]}{others}", places, names[:MAX_NAMED])]


def _documents(retrieved: Places, position: Sequence[int]) -> list[tuple[str, list[int]]]:
    """The documents that were retrieved most, and the positions in time of the answers with them."""
    repeated = [(name, places) for name, places in retrieved.items() if len(places) >= _MIN_RETRIEVALS]
    repeated.sort(key=lambda entry: (-len(entry[1]), entry[0]))
    return [(name, sorted(position[place] for place in places)) for name, places in repeated[:_MAX_DOCUMENTS]]


def _periods(count: int, by_attribute: Mapping[str, Places], position: Sequence[int]) -> list[Period]:
    """While a value of metadata held, and from a point of a grid until now."""
    held = []
    for attribute, values in by_attribute.items():
        for places in values.values() if attribute.startswith(METADATA_PREFIX) else ():
            if len(places) >= MIN_ANSWERS:
                moments = [position[place] for place in places]
                begin, end = min(moments), max(moments) + 1
                if len(moments) >= _MIN_HELD * (end - begin):  # else others held meanwhile
                    held.append((begin, end))
    held.sort(key=lambda period: period[0] - period[1])
    grid = [(count * step // _GRID, count) for step in range(2, _GRID)]
    return [
        (begin, end)
        for begin, end in dict.fromkeys((*held[:_MAX_HELD], *grid))
        if begin >= MIN_ANSWERS <= end - begin <= count - MIN_ANSWERS
    ]


def _absence(
    documents: Sequence[tuple[str, list[int]]], period: Period, count: int
) -> tuple[float, tuple[str, ...]] | None:
    """How many more documents chance would have brought back in a period; those that did not come, most missed first.

    None if that may be chance.
    """
    begin, end = period
    ratio = (end - begin) / (count - (end - begin))
    expected = observed = variance = 0.0
    absent: list[tuple[float, str]] = []
    for name, moments in documents:
        inside = bisect_left(moments, end) - bisect_left(moments, begin)
        outside = len(moments) - inside
        if outside < _MIN_RETRIEVALS:
            continue
        missed = (outside - 1) * ratio  # one less, because it was chosen for having been retrieved
        chance = -math.expm1(-missed)
        expected += chance
        variance += chance * (1.0 - chance)
        observed += inside > 0
        if not inside and (chance >= _NAMED_CHANCE or not absent):
            absent.append((missed, name))
    surplus = expected - observed
    if expected < _MIN_EXPECTED or observed > _MAX_SHARE * expected or surplus < _MIN_DEVIATION * math.sqrt(variance):
        return None
    absent.sort(key=lambda entry: (-entry[0], entry[1]))
    return surplus, tuple(name for _, name in absent)
