"""Cuts answers into slices by their traits: the candidates, chosen by how often they occur, never by how they fail.

A vanished document is in no failing answer, so documents that are no longer retrieved are looked for by time. A time
counts if of the documents that were retrieved outside of it, and that chance would have brought back, hardly any came
back. That only depends on what was retrieved, never on how answers failed.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

from ragwatch.statistics.causes.traits import Traits

MIN_ANSWERS = 5
"""Of a slice, and of those outside: fewer prove nothing."""
MAX_CANDIDATES = 5000
_MAX_VALUES = 50_000  # of an attribute at a time; rare ones are left out above
_MAX_METADATA_KEYS = 50
_BANDS = 5
_DAY, _HOUR = 86400, 3600
_HOURS = [f"{hour:02}:00 to {(hour + 1) % 24:02}:00 UTC" for hour in range(24)]
_FUNCTION_WORDS = frozenset(
    """a an and are as at be by can could did do does for from had has have how i if in is it its me my of on or our
    should so that the their them there these they this to was we were what when where which who why will with would
    you your""".split()  # noqa: SIM905  to be read
)


class Attribute(StrEnum):
    """What the answers of a slice have in common. A key of metadata is an attribute `metadata.KEY`, too."""

    MISSING_CONTEXT = "missing_context"
    TOP_CONTEXT = "top_context"
    CONTEXT = "context"
    CITED_CONTEXT = "cited_context"
    CONTEXTS = "contexts"
    TOP_SCORE = "top_score"
    ANSWER_LENGTH = "answer_length"
    JUDGE = "judge"
    TERM = "term"
    HOUR = "hour"


METADATA_PREFIX = "metadata."
SYMPTOMS = frozenset({Attribute.CONTEXTS, Attribute.TOP_SCORE, Attribute.ANSWER_LENGTH, Attribute.HOUR})
"""Attributes that nobody changes by themselves: what explains one of them comes first."""
_ORDER = {
    attribute: place
    for place, attribute in enumerate((Attribute.MISSING_CONTEXT, METADATA_PREFIX, *list(Attribute)[1:]))
}


class Answer(NamedTuple):
    """An answer that was judged as number `seq`, and given at a time in seconds since the epoch."""

    key: str
    seq: int
    at: float
    route: str
    judge: str
    probability: float
    failing: bool
    traits: Traits


class Slice(NamedTuple):
    """Answers that have a value of an attribute in common."""

    attribute: str  # an `Attribute`, or `metadata.KEY`
    value: str
    places: Sequence[int]
    values: tuple[str, ...] = ()

    @property
    def rank(self) -> int:
        """Which of two slices with the same answers comes first: the one that says most about what to mend."""
        return _ORDER[METADATA_PREFIX if self.attribute.startswith(METADATA_PREFIX) else Attribute(self.attribute)]

    @property
    def is_symptom(self) -> bool:
        """Whether its attribute follows from others rather than being changed by somebody."""
        return self.attribute in SYMPTOMS


Places = dict[str, list[int]]


def places_by_attribute(answers: Sequence[Answer]) -> dict[str, Places]:
    """Return the places of the answers with each value of each attribute; very rare values of many are left out."""
    return {
        **_of_contexts(answers),
        **_of_metadata(answers),
        Attribute.CONTEXTS: _grouped(answer.traits.get("retrieved") for answer in answers),
        Attribute.TOP_SCORE: _banded([answer.traits.get("score") for answer in answers]),
        Attribute.ANSWER_LENGTH: _banded([answer.traits.get("chars") for answer in answers]),
        Attribute.JUDGE: _grouped(answer.judge for answer in answers),
        Attribute.TERM: _of_terms(answers),
        Attribute.HOUR: _grouped(_HOURS[int(answer.at % _DAY // _HOUR)] for answer in answers),
    }


def candidates(by_attribute: Mapping[str, Places], count: int) -> list[Slice]:
    """Return the slices that hold, and leave out, at least MIN_ANSWERS answers: the most frequent MAX_CANDIDATES."""
    slices = [
        Slice(str(attribute), value, places)
        for attribute, values in by_attribute.items()
        for value, places in values.items()
        if MIN_ANSWERS <= len(places) <= count - MIN_ANSWERS
    ]
    slices.sort(key=lambda slice_: (-len(slice_.places), slice_.rank, slice_.attribute, slice_.value))
    return slices[:MAX_CANDIDATES]


def _of_contexts(answers: Sequence[Answer]) -> dict[str, Places]:
    retrieved: Places = {}
    first: Places = {}
    cited: Places = {}
    for place, answer in enumerate(answers):
        ids: Sequence[str | None] = answer.traits.get("contexts", ())
        named = [ids[position] for position in answer.traits.get("cited", ()) if position < len(ids)]
        for values, names in ((retrieved, ids), (first, ids[:1]), (cited, named)):
            for name in dict.fromkeys(names):
                if name is not None:
                    values.setdefault(name, []).append(place)
            _forget_rare(values)
    return {Attribute.CONTEXT: retrieved, Attribute.TOP_CONTEXT: first, Attribute.CITED_CONTEXT: cited}


def _of_terms(answers: Sequence[Answer]) -> Places:
    """Words of the questions, and pairs of words that follow each other."""
    terms: Places = {}
    for place, answer in enumerate(answers):
        words = answer.traits.get("words", ())
        own = {word for word in words if word not in _FUNCTION_WORDS}
        own.update(f"{one} {next_}" for one, next_ in pairwise(words) if not {one, next_} <= _FUNCTION_WORDS)
        for term in own:
            terms.setdefault(term, []).append(place)
        _forget_rare(terms)
    return terms


def _of_metadata(answers: Sequence[Answer]) -> dict[str, Places]:
    by_key: dict[str, Places] = {}
    for place, answer in enumerate(answers):
        for key, value in answer.traits.get("metadata", {}).items():
            if key in by_key or len(by_key) < _MAX_METADATA_KEYS:
                values = by_key.setdefault(key, {})
                values.setdefault(value, []).append(place)
                _forget_rare(values)
    return {f"{METADATA_PREFIX}{key}": values for key, values in by_key.items()}


def _forget_rare(values: Places) -> None:
    """Leave out the rarest values of too many, so that memory is bounded."""
    least = 1
    while len(values) > _MAX_VALUES:
        for value in [value for value, places in values.items() if len(places) <= least]:
            del values[value]
        least *= 2


def _grouped(values: Iterator[object]) -> Places:
    places: Places = {}
    for place, value in enumerate(values):
        if value is not None:
            places.setdefault(str(value), []).append(place)
    return places


def _banded(figures: Sequence[float | None]) -> Places:
    """Five bands with as many answers each.

    >>> list(_banded([1.0, 2.0, 3.0, 4.0, 50.0, None]))
    ['1', '2', '3', '4', '50']
    >>> list(_banded([float(figure) for figure in range(100)]))
    ['0 to 19', '20 to 39', '40 to 59', '60 to 79', '80 to 99']
    """
    known = sorted(figure for figure in figures if figure is not None)
    cuts = sorted({known[len(known) * band // _BANDS] for band in range(1, _BANDS)}) if known else []
    bands: list[list[int]] = [[] for _ in range(len(cuts) + 1)]
    bounds: list[list[float]] = [[] for _ in bands]
    for place, figure in enumerate(figures):
        if figure is not None:
            band = bisect_right(cuts, figure)
            bands[band].append(place)
            bounds[band].append(figure)
    return {_span(min(bound), max(bound)): places for bound, places in zip(bounds, bands, strict=True) if bound}


def _span(low: float, high: float) -> str:
    return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"


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
    retrieved = by_attribute.get(Attribute.CONTEXT, {})
    repeated = [(name, places) for name, places in retrieved.items() if len(places) >= _MIN_RETRIEVALS]
    repeated.sort(key=lambda entry: (-len(entry[1]), entry[0]))
    documents = [(name, sorted(position[place] for place in places)) for name, places in repeated[:_MAX_DOCUMENTS]]
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
    """How many more documents chance would have brought back, and the absent ones; None if that may be chance."""
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
