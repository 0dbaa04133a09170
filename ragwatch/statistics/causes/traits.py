"""Traits of an answer that may explain its failing: what is stored of it for the search for causes.

Questions and metadata are texts: where texts are not kept, `without_texts` leaves them out, apart from metadata that
describe the deployment.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, TypedDict

from ragwatch.model.sample import Sample
from ragwatch.statistics.text.citations import markers_of

MAX_CONTEXTS, MAX_ID_CHARS = 20, 128
MAX_KEYS, MAX_VALUE_CHARS, MAX_KEY_CHARS = 32, 64, 64
MAX_WORDS, MAX_WORD_CHARS = 24, 32
_MAX_QUESTION_CHARS, _MAX_ANSWER_CHARS, _MAX_MARKERS = 600, 20_000, 40
_MAX_NUMBER = 10**6  # greater ones are times, sizes and ids
_REDACTED = re.compile(r"\[[A-Z_]+:[0-9a-f]{6}\]")
_WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")
_IDENTIFIERS = frozenset({"trace_id", "span_id", "request_id", "session_id", "conversation_id", "message_id"})

METADATA: Final = "metadata"
DEPLOYMENT_KEYS = frozenset(
    """release version app_version model model_version prompt prompt_version template index index_version index_date
    retriever reranker embedding embedding_model chunker variant experiment environment region language lang locale
    tier plan""".split()  # noqa: SIM905  to be read
)
"""Metadata that describe the deployment and no person; they are kept without texts, too."""


class Traits(TypedDict):
    """Traits of an answer as JSON values."""

    contexts: Sequence[str | None]  # ids of the first contexts
    retrieved: int
    score: float | None  # of the first context
    chars: int
    cited: Sequence[int]  # positions of the contexts that the answer cites
    metadata: dict[str, str]  # short values by key
    words: Sequence[str]  # first words of the question


def traits_of(sample: Sample, *, texts: bool = True) -> Traits:
    """Return the traits of a redacted sample, without `texts` those that describe no person."""
    scores = [context.score for context in sample.contexts[:1] if context.score is not None]
    markers = islice(markers_of(sample.answer[:_MAX_ANSWER_CHARS]), _MAX_MARKERS)
    given = min(len(sample.contexts), MAX_CONTEXTS)
    plain = _REDACTED.sub(" ", (sample.question or "")[:_MAX_QUESTION_CHARS]).lower()  # without what redaction put in
    traits: Traits = {
        "contexts": [context.id and context.id[:MAX_ID_CHARS] for context in sample.contexts[:MAX_CONTEXTS]],
        "retrieved": len(sample.contexts),
        "score": scores[0] if scores else None,
        "chars": len(sample.answer),
        "cited": sorted({number - 1 for marker in markers for number in marker.numbers if number <= given}),
        METADATA: dict(islice(_metadata(sample.metadata), MAX_KEYS)),
        "words": [match.group()[:MAX_WORD_CHARS] for match in islice(_WORD.finditer(plain), MAX_WORDS)],
    }
    return traits if texts else without_texts(traits)


def without_texts(traits: Traits) -> Traits:
    """Return traits without words of the question and without metadata that may describe a person."""
    metadata = {key: value for key, value in traits[METADATA].items() if key in DEPLOYMENT_KEYS}
    return {**traits, METADATA: metadata, "words": []}


def _metadata(metadata: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Short values by key or, one level down, by path: texts, truth values and small whole numbers."""
    for name, value in metadata.items():
        key = f"{prefix}{name}"
        if isinstance(value, Mapping) and not prefix:
            yield from _metadata(value, f"{name}.")
        elif len(key) <= MAX_KEY_CHARS and key not in _IDENTIFIERS and (short := _value(value)) is not None:
            yield key, short


def _value(value: object) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value if 0 < len(value) <= MAX_VALUE_CHARS else None
    return str(value) if isinstance(value, int) and abs(value) < _MAX_NUMBER else None
