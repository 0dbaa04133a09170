"""Index of judged answers for searches: digests of their metadata and ids of contexts, and words of their texts.

It is written with their verdicts, and deleted with their texts and samples. With encryption the digests are keyed, so
that the database says which answers have a value in common, and not which. Each engine stores it in its own way.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from ragwatch.errors import StoreError
from ragwatch.model.sample import Sample
from ragwatch.model.stages import Stage
from ragwatch.ports import Query
from ragwatch.statistics.causes.traits import MAX_ID_CHARS, METADATA, Traits, traits_of
from ragwatch.statistics.text.search_words import words_of
from ragwatch.statistics.verdict import Judged, Verdict
from ragwatch.stores.encryption import TextCipher
from ragwatch.stores.engine import Writer
from ragwatch.stores.kept_texts import Rules, Texts
from ragwatch.stores.rows import sample_of
from ragwatch.stores.texts import unpack

TERM_BYTES = 8
_CONTEXT, _TOP_CONTEXT = "context", "top_context"
_DAMAGED = (StoreError, LookupError, TypeError, ValueError, AttributeError)
FAILS = "v.outcome = 'judged' AND v.stage NOT IN ('none')"
_STORED = (
    "SELECT s.key, s.at, NULLIF(s.body, DROPPED), t.body,"  # noqa: S608 - constants
    f" EXISTS (SELECT 1 FROM verdicts v WHERE v.key = s.key AND {FAILS})"
    " FROM samples s JOIN SAMPLE_KEYS k ON k.key = s.key LEFT JOIN traits t ON t.key = s.key"
    " WHERE s.key = LIST(:keys) ORDER BY s.key LOCKING(FOR SHARE OF s)"  # waits for erasures
)

Words = tuple[list[str], list[str]]
"""Words of question and answer."""


class Entry(NamedTuple):
    """What the index has of an answer: its time and its terms, and its words if they are indexed."""

    at: float
    terms: Sequence[int]
    words: Words | None


class SearchIndex(Protocol):
    """The index of an engine. Each method is within a transaction."""

    def add(self, writer: Writer, entries: Mapping[str, Entry]) -> None:
        """Add answers by their keys, unless they are in the index; words are added to those that have none."""

    def remove(self, writer: Writer, keys: Sequence[str]) -> None:
        """Remove answers, while their texts are still stored."""

    def remove_words(self, writer: Writer, keys: Sequence[str]) -> None:
        """Remove the words of answers, while their texts are still stored."""

    def set_terms(self, writer: Writer, terms: Mapping[str, Sequence[int]]) -> None:
        """Leave only these terms of answers that are in the index, and no words."""


def entries_of(verdicts: Iterable[Verdict], rules: Rules) -> dict[str, Entry]:
    """Return the entries of judged answers. Words are indexed under `store.texts: failing` if a judge finds a fault."""
    entries: dict[str, Entry] = {}
    for verdict in verdicts:
        draw = verdict.draw
        if draw.damage is None:
            words = entries[draw.key].words if draw.key in entries else None
            fails = isinstance(verdict, Judged) and verdict.stage not in (None, Stage.NONE)
            if words is None and rules.keeps_words(fails=fails):
                words = _words(draw.sample)
            entries[draw.key] = Entry(draw.at, _terms_of_sample(draw.sample, rules), words)
    return entries


def stored_entries(writer: Writer, keys: Sequence[str], rules: Rules) -> dict[str, Entry]:
    """Return the entries of stored answers."""
    return {
        key: Entry(
            at,
            stored_terms(traits, body, rules),
            stored_words(body) if rules.keeps_words(fails=bool(failing)) else None,
        )
        for key, at, body, traits, failing in writer.rows(_STORED, {"keys": list(keys)})
    }


def stored_words(body: bytes | None) -> Words | None:
    """Return the words of a stored text; None if it is not kept or damaged."""
    try:
        return None if body is None else _words(sample_of(unpack(body)))
    except _DAMAGED:
        return None


def stored_terms(traits: bytes | None, body: bytes | None, rules: Rules) -> list[int]:
    """Return the terms of an answer that is stored: by its traits, or by its text if an earlier version stored none."""
    try:
        if traits is not None:
            return terms_of(unpack(traits), rules.cipher)
        return [] if body is None else _terms_of_sample(sample_of(unpack(body)), rules)
    except _DAMAGED:  # or not kept
        return []


def _words(sample: Sample) -> Words:
    return words_of(sample.question or ""), words_of(sample.answer)


def _terms_of_sample(sample: Sample, rules: Rules) -> list[int]:
    """Terms of a sample, as far as `store.texts` allows."""
    return terms_of(traits_of(sample, texts=rules.texts is Texts.ALL), rules.cipher)


def terms_of(traits: Traits, cipher: TextCipher | None) -> list[int]:
    """Return the terms of an answer, by its traits."""
    return [_digests(name, cipher)[0] for name in dict.fromkeys(_names(traits))]


def _names(traits: Traits) -> Iterator[str]:
    contexts = traits["contexts"]
    if contexts and contexts[0] is not None:
        yield _name(_TOP_CONTEXT, contexts[0])
    yield from (_name(_CONTEXT, identity) for identity in contexts if identity is not None)
    yield from (_name(METADATA, key, value) for key, value in traits[METADATA].items())


def asked_terms(query: Query, cipher: TextCipher | None) -> list[list[int]]:
    """Return the terms of which an answer must have one each: one by each key that may have been used.

    The rarest kinds come first: the first of them is looked up, and the others are compared.
    """
    ids = ((_TOP_CONTEXT, query.top_context), (_CONTEXT, query.context))
    names = [_name(kind, value[:MAX_ID_CHARS]) for kind, value in ids if value is not None]
    names += [_name(METADATA, key, value) for key, value in query.metadata]
    return [_digests(name, cipher) for name in dict.fromkeys(names)]


def _name(*parts: str) -> str:
    return "\0".join(parts)


def _digests(name: str, cipher: TextCipher | None) -> list[int]:
    text = name.encode("utf-8", "surrogatepass")
    keys = [b""] if cipher is None else cipher.term_keys
    return [
        int.from_bytes(hashlib.blake2b(text, digest_size=TERM_BYTES, key=key).digest(), "big", signed=True)
        for key in keys
    ]
