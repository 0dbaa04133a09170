"""Reads answers in other languages than English, so that their changes are measured. Their accuracy is not known.

German, Spanish, French, Italian, Dutch and Portuguese are compared by the stems of words (Snowball) without function
words; Japanese, Chinese, Korean, Thai, Hindi and Arabic by character n-grams. All words weigh alike. What is known of
English alone is left out: facts within a sentence, names, conditions, denials, earlier turns, kinds of questions.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, lru_cache
from threading import Lock
from typing import Literal, get_args

from ragwatch.judges.claims.claims import AnswerClaims, claims_of
from ragwatch.judges.claims.kinds import kind_of
from ragwatch.judges.claims.limits import Check
from ragwatch.judges.claims.sentences import spans
from ragwatch.judges.claims.words import fold, term
from ragwatch.judges.lexical.language import ENGLISH, OTHER, function_words, language_of
from ragwatch.judges.lexical.tables import FittedTables, Split, shipped
from ragwatch.model.sample import Sample

Language = Literal["de", "es", "fr", "it", "nl", "pt", "ar", "hi", "ja", "ko", "th", "zh"]
"""ISO 639 code of a language that is read for changes."""

LANGUAGES: tuple[Language, ...] = get_args(Language)

_STEMMERS = {"de": "german", "es": "spanish", "fr": "french", "it": "italian", "nl": "dutch", "pt": "portuguese"}
_GRAMS = {"ja": 2, "zh": 2, "ko": 2, "th": 3, "hi": 3, "ar": 3}  # characters
_CONTEXTS = 8  # their beginnings show the language of all
_CONTEXT_CHARS = 350
_WORD = re.compile(r"\d+(?:[.,]\d+)+|[^\W_]+")
_MARKS_OF_NUMBERS = str.maketrans(",.", ".,")  # "2.000,5" is written 2,000.5 in English
_ELIDED = re.compile(r"\b[^\W\d_]{1,5}['’](?=[^\W\d_])")  # "l'eau", "dell'ordine"
_RUN = re.compile(
    r"(?P<grams>[\u3040-\u30fa\u30fc-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]+|[\u0e01-\u0e3a\u0e40-\u0e4e]+"
    r"|[\u0900-\u0963\u0971-\u097f]+|[\u0620-\u065f\u066e-\u06d3\u06d5-\u06ef\u06fa-\u06ff]+)"
    r"|\d+(?:[.,]\d+)*|[a-z\u00df-\u024f]+"
)
_KANA = re.compile("[\u3040-\u309f]+")  # of Japanese words and endings that have no content


def language_of_sample(sample: Sample) -> str | None:
    """Language of a sample that is not English; None in English, or where it is not clear.

    `OTHER` where answer, contexts and question are in different languages, so that their words do not meet, or in one
    that is not recognized.

    >>> from ragwatch.model.sample import Context
    >>> english, german = Context("It takes the most of the day."), "Es dauert mehr als zwei Tage."
    >>> [language_of_sample(Sample("1", None, (english,), answer)) for answer in (german, "Bern")]
    ['und', None]
    >>> language_of_sample(Sample("1", "Wie lange dauert das?", (Context(german),), "Zwei Tage."))
    'de'
    """
    texts = "\n".join(context.text[:_CONTEXT_CHARS] for context in sample.contexts[:_CONTEXTS])
    answered, contexts = language_of(sample.answer), language_of(texts)
    if {answered, contexts} <= {ENGLISH, None}:
        return None
    # Short answers and questions are often of no clear language, contexts rarely.
    spoken = {answered, language_of(sample.question or "")} - {None, OTHER} | {contexts} - {None}
    return next(iter(spoken)) if len(spoken) == 1 and spoken != {ENGLISH} else OTHER


def claims_in(sample: Sample, *, max_claims: int | None, check: Check) -> AnswerClaims:
    """The claims of an answer in another language, which are whole sentences."""
    said = claims_of(sample.answer, sample.question, max_claims=max_claims, check=check)
    if said.claims or said.abstained:
        return said
    kinds = (kind_of(sample.answer[one.start : one.end]) for one in spans(sample.answer))
    return said._replace(abstained="abstention" in kinds)


@cache
def tables_in(language: str) -> FittedTables:
    """The tables for a language: the weights of English, words that weigh alike, and no names.

    >>> tables_in("de").terms("Die Häuser waren 2.000 Euro wert.")
    ['haus', 'war', '2000', 'euro', 'wert']
    >>> tables_in("zh").terms("退款需要5天。")
    ['退款', '款需', '需要', '5', '天']
    """
    split = _by_stems(language) if language in _STEMMERS else _by_grams(_GRAMS[language])
    return replace(shipped(), rarity={}, names=frozenset(), split=split)


def _by_stems(language: str) -> Split:
    import snowballstemmer  # noqa: PLC0415 - 0.1 s, for other languages than English only

    stemmer = snowballstemmer.stemmer(_STEMMERS[language])
    stop_words = function_words(language)
    lock = Lock()  # a stemmer holds the word that it works on, and judges read in threads

    @lru_cache(maxsize=1 << 14)
    def stem(word: str) -> str:
        if word in stop_words or (len(word) == 1 and word.isalpha()):
            return ""
        if word[0].isdigit():
            return term(word.translate(_MARKS_OF_NUMBERS))
        with lock:
            return fold(stemmer.stemWord(word))

    def split(text: str) -> list[str]:
        text = unicodedata.normalize("NFC", text).lower()
        return [name for name in map(stem, _WORD.findall(_ELIDED.sub(" ", text))) if name]

    return split


def _by_grams(length: int) -> Split:
    def split(text: str) -> list[str]:
        names: list[str] = []
        for run in _RUN.finditer(unicodedata.normalize("NFKC", text).lower()):
            names += _grams(run.group(), length) if run["grams"] else filter(None, [term(run.group())])
        return names

    return split


def _grams(run: str, length: int) -> Sequence[str]:
    """The n-grams of a run of letters; those of hiragana alone say nothing."""
    parts = [run[index : index + length] for index in range(max(1, len(run) - length + 1))]
    return [part for part in parts if not _KANA.fullmatch(part)]
