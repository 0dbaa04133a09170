"""Cuts answers into slices by their traits: the candidates, chosen by how often they occur, never by how they fail."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

from ragwatch.core.causes.traits import Traits

MIN_ANSWERS = 5
"""Of a slice, and of those outside: fewer prove nothing."""
MAX_CANDIDATES = 5000
_MAX_VALUES = 50_000  # of an attribute at a time; rare ones are left out above
_MAX_METADATA_KEYS = 50
_BANDS = 5
_DAY, _HOUR = 86400, 3600
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
    """Answers that have a value of an attribute in common.

    Attributes:
        attribute: An `Attribute`, or `metadata.KEY`.
        places: Of its answers among all, ascending.
        values: The first of the values that it stands for, where these are several.
    """

    attribute: str
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
        Attribute.CONTEXTS: _grouped(_text(answer.traits.get("retrieved")) for answer in answers),
        Attribute.TOP_SCORE: _banded([answer.traits.get("score") for answer in answers]),
        Attribute.ANSWER_LENGTH: _banded([answer.traits.get("chars") for answer in answers]),
        Attribute.JUDGE: _grouped(answer.judge for answer in answers),
        Attribute.TERM: _of_terms(answers),
        Attribute.HOUR: _grouped(_hour(answer.at) for answer in answers),
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
        for identity in dict.fromkeys(ids):
            if identity is not None:
                retrieved.setdefault(identity, []).append(place)
        if ids and ids[0] is not None:
            first.setdefault(ids[0], []).append(place)
        for position in answer.traits.get("cited", ()):
            if position < len(ids) and (named := ids[position]) is not None:
                _add(cited, named, place)
        for values in (retrieved, first, cited):
            _forget_rare(values)
    return {Attribute.CONTEXT: retrieved, Attribute.TOP_CONTEXT: first, Attribute.CITED_CONTEXT: cited}


def _of_terms(answers: Sequence[Answer]) -> Places:
    """Words of the questions, and pairs of words that follow each other."""
    terms: Places = {}
    for place, answer in enumerate(answers):
        for term in set(_terms(answer.traits.get("words", ()))):
            terms.setdefault(term, []).append(place)
        _forget_rare(terms)
    return terms


def _terms(words: Sequence[str]) -> list[str]:
    pairs = pairwise(words)
    return [
        *[word for word in words if word not in _FUNCTION_WORDS],
        *[f"{one} {next_}" for one, next_ in pairs if one not in _FUNCTION_WORDS or next_ not in _FUNCTION_WORDS],
    ]


def _of_metadata(answers: Sequence[Answer]) -> dict[str, Places]:
    by_key: dict[str, Places] = {}
    for place, answer in enumerate(answers):
        for key, value in answer.traits.get("metadata", {}).items():
            if key in by_key or len(by_key) < _MAX_METADATA_KEYS:
                values = by_key.setdefault(key, {})
                values.setdefault(value, []).append(place)
                _forget_rare(values)
    return {f"{METADATA_PREFIX}{key}": values for key, values in by_key.items()}


def _add(values: Places, value: str, place: int) -> None:
    places = values.setdefault(value, [])
    if not places or places[-1] != place:
        places.append(place)


def _forget_rare(values: Places) -> None:
    """Leave out the rarest values of too many, so that memory is bounded."""
    least = 1
    while len(values) > _MAX_VALUES:
        for value in [value for value, places in values.items() if len(places) <= least]:
            del values[value]
        least *= 2


def _grouped(values: Iterator[str | None]) -> Places:
    places: Places = {}
    for place, value in enumerate(values):
        if value is not None:
            places.setdefault(value, []).append(place)
    return places


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _hour(at: float) -> str:
    """Hour of the day, in UTC."""
    hour = int(at % _DAY // _HOUR)
    return f"{hour:02}:00 to {(hour + 1) % 24:02}:00 UTC"


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
            band = bisect_left(cuts, figure) if figure not in cuts else cuts.index(figure) + 1
            bands[band].append(place)
            bounds[band].append(figure)
    return {_span(min(bound), max(bound)): places for bound, places in zip(bounds, bands, strict=True) if bound}


def _span(low: float, high: float) -> str:
    return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
