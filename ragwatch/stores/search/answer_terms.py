"""What a search finds answers by: digests of their metadata and of the ids of their contexts, and words of their texts.

With encryption the digests are keyed, so that the database says which answers have a value in common, and not which.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

from ragwatch.errors import StoreError
from ragwatch.model.sample import Sample
from ragwatch.model.stages import Stage
from ragwatch.ports import Query
from ragwatch.statistics.causes.traits import MAX_ID_CHARS, METADATA, Traits, traits_of
from ragwatch.statistics.text.search_words import words_of
from ragwatch.statistics.verdict import Judged, Verdict
from ragwatch.stores.codec.encryption import TextCipher
from ragwatch.stores.codec.kept_texts import Texts
from ragwatch.stores.rows import sample_of, unpack

TERM_BYTES = 8
_CONTEXT, _TOP_CONTEXT = "context", "top_context"


class Rules(NamedTuple):
    """What is indexed.

    Attributes:
        texts: Texts of which answers are kept.
        cipher: Encrypts texts; None for none.
        words_off: Why the words of texts are not indexed; None if they are.
    """

    texts: Texts
    cipher: TextCipher | None
    words_off: str | None = None

    def keeps_words(self, *, fails: bool) -> bool:
        """Whether the words of an answer are indexed: its texts are kept for good, and in the clear."""
        return self.words_off is None and (self.texts is Texts.ALL or fails)


def rules_of(texts: Texts, cipher: TextCipher | None, *, text_search: bool) -> Rules:
    """Return what is indexed under a configuration.

    >>> rules_of(Texts.NONE, None, text_search=True).words_off
    'no texts are kept (store.texts: none)'
    """
    off = None
    if not text_search:
        off = "words are not indexed (store.text_search: false)"
    elif texts is Texts.NONE:
        off = "no texts are kept (store.texts: none)"
    elif cipher is not None:
        off = "texts are encrypted (store.encryption), and an index would contain their words"
    return Rules(texts, cipher, off)


def fails(verdict: Verdict) -> bool:
    """Whether a judge names a stage at fault, so that texts are kept under `store.texts: failing`."""
    return isinstance(verdict, Judged) and verdict.stage not in (None, Stage.NONE)


def stored_words(body: bytes | None) -> tuple[list[str], list[str]] | None:
    """Return the words of question and answer of a stored text; None if it is not kept or damaged."""
    try:
        return None if body is None else sample_words(sample_of(unpack(body)))
    except (StoreError, LookupError, TypeError, ValueError, AttributeError):
        return None


def sample_words(sample: Sample) -> tuple[list[str], list[str]]:
    """Return the words of question and answer."""
    return words_of(sample.question or ""), words_of(sample.answer)


def terms_of(traits: Traits, cipher: TextCipher | None) -> list[int]:
    """Return the terms of an answer, by its traits; none if these are damaged."""
    try:
        names = list(dict.fromkeys(_names(traits)))
    except (LookupError, TypeError, AttributeError):
        return []
    return [_digests(name, cipher)[0] for name in names]


def terms_of_sample(sample: Sample, rules: Rules) -> list[int]:
    """Return the terms of a sample, as far as `store.texts` allows."""
    return terms_of(traits_of(sample, texts=rules.texts is Texts.ALL), rules.cipher)


def stored_terms(traits: bytes | None, body: bytes | None, rules: Rules) -> list[int]:
    """Return the terms of an answer that is stored: by its traits, or by its text if an earlier version stored none."""
    try:
        if traits is not None:
            return terms_of(unpack(traits), rules.cipher)
        return [] if body is None else terms_of_sample(sample_of(unpack(body)), rules)
    except (StoreError, LookupError, TypeError, ValueError, AttributeError):  # not kept, or damaged
        return []


def asked_terms(query: Query, cipher: TextCipher | None) -> list[list[int]]:
    """Return the terms of which an answer must have one each: one by each key that may have been used.

    The rarest kinds come first: the first of them is looked up, and the others are compared.
    """
    ids = ((_TOP_CONTEXT, query.top_context), (_CONTEXT, query.context))
    names = [_name(kind, value[:MAX_ID_CHARS]) for kind, value in ids if value is not None]
    names += [_name(METADATA, key, value) for key, value in query.metadata]
    return [_digests(name, cipher) for name in dict.fromkeys(names)]


def _names(traits: Traits) -> Iterator[str]:
    contexts = traits["contexts"]
    if contexts and contexts[0] is not None:
        yield _name(_TOP_CONTEXT, contexts[0])
    yield from (_name(_CONTEXT, identity) for identity in contexts if identity is not None)
    yield from (_name(METADATA, key, value) for key, value in traits[METADATA].items())


def _name(*parts: str) -> str:
    return "\0".join(parts)


def _digests(name: str, cipher: TextCipher | None) -> list[int]:
    text = name.encode("utf-8", "surrogatepass")
    keys = [b""] if cipher is None else cipher.term_keys
    return [
        int.from_bytes(hashlib.blake2b(text, digest_size=TERM_BYTES, key=key).digest(), "big", signed=True)
        for key in keys
    ]
