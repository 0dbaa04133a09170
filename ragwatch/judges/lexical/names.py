"""Finds the proper names of a claim that no source holds, in any of their forms.

A name is a capitalised word inside a sentence. A source holds it in another form when a word of the source begins alike
(`German`, `Germany`), or when it is made of the source's initials (`UN`, `United Nations`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from ragwatch.judges.claims import number_words
from ragwatch.judges.claims.words import STOP_WORDS, fold, term, word_set

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_AFTER_STOP = re.compile(r"(?:^|[.!?:;“\"(\n*•-])\s*$")
_INSIDE_NAMES = word_set("of the de la le van von der den and for")
_MIN_TITLE_WORDS = 3
_TITLE_SHARE = 0.7
_PREFIX = 4
_MAX_PREFIX = 40  # a longer beginning is no abbreviation; without a limit, the time would be quadratic in a long word
MONTHS = frozenset(map(term, (*number_words.MONTHS, *number_words.SHORT_MONTHS)))
_ALIASES: Mapping[str, frozenset[str]] = {
        form: frozenset(entry.split())
        for entry in (
            "french france", "dutch netherland holland", "spanish spain spaniard", "swiss switzerland", "greek greece",
            "welsh wale", "danish denmark dane", "polish poland pole", "american america usa unit",
            "british britain uk",
            "european europ eu", "german germany", "irish ireland", "scottish scotland scot", "christmas xmas",
        )
        for form in entry.split()
    }  # fmt: skip


class Names(NamedTuple):
    """Names of a claim: their terms, with the names as they stand.

    Attributes:
        subject: Those that the claim begins with; sources may call it "he" or "the company".
    """

    subject: Mapping[str, str]
    others: Mapping[str, str]


def names_of(text: str, listed: AbstractSet[str], proper: AbstractSet[str]) -> Names:
    """The names of a claim, without the first word, months, and listed terms (of the table of rarity) but proper ones.

    >>> names_of("It was founded in Zurich by Anna Keller.", frozenset(), frozenset()).others
    {'zurich': 'Zurich', 'anna': 'Anna', 'keller': 'Keller'}
    >>> names_of("Anna Keller founded it in Zurich.", frozenset(), frozenset())
    Names(subject={'keller': 'Keller'}, others={'zurich': 'Zurich'})
    """
    subject: dict[str, str] = {}
    others: dict[str, str] = {}
    words = list(_WORD.finditer(text))
    capitals = sum([word.group()[0].isupper() for word in words])
    if len(words) > _MIN_TITLE_WORDS and capitals > _TITLE_SHARE * len(words):
        return Names(subject, others)
    is_subject = True
    for place, word in enumerate(words):
        name = word.group()
        if not name[0].isupper():
            is_subject = is_subject and (place == 0 or name in _INSIDE_NAMES)
            continue
        if place and _AFTER_STOP.search(text[max(0, word.start() - 3) : word.start()]):
            continue
        key = _name_term(name, listed, proper)
        if key and place:
            (subject if is_subject else others).setdefault(key, name)
    return Names(subject, {key: name for key, name in others.items() if key not in subject})


def _name_term(name: str, listed: AbstractSet[str], proper: AbstractSet[str]) -> str:
    """The term of a name; empty for a word that is none."""
    if len(name) < 2 or not name.replace("'", "").replace("’", "").isalpha() or fold(name) in STOP_WORDS:
        return ""
    key = term(fold(name))
    return "" if key in MONTHS or (key in listed and key not in proper) else key


def missing(names: Mapping[str, str], held: AbstractSet[str], prefixes: AbstractSet[str]) -> set[str]:
    """Terms of the names that are in no source, in no form, given terms and `prefixes_of` the sources."""
    return {key for key, name in names.items() if key not in held and not _has_form(key, name, prefixes, held)}


def _has_form(key: str, name: str, prefixes: AbstractSet[str], held: AbstractSet[str]) -> bool:
    if not _ALIASES.get(key, frozenset()).isdisjoint(held):
        return True
    if name.isupper() and len(name) <= 5:
        return f"^{name.lower()}" in prefixes
    return len(key) >= _PREFIX and key[: max(_PREFIX, len(key) - 3)] in prefixes


def prefixes_of(terms: Iterable[str], text: str) -> frozenset[str]:
    """Beginnings of the terms of a source, and the initials of its capitalised words in a row."""
    beginnings: set[str] = set()
    for name in terms:
        beginnings.update(name[:length] for length in range(_PREFIX, min(len(name), _MAX_PREFIX) + 1))
    for run in re.finditer(r"(?:[A-Z][\w'’]*(?:[ -](?:of|and|for|the|de) |[ -])){1,6}[A-Z][\w'’]*", text):
        capitals = "".join(re.findall(r"\b[A-Z]", run.group())).lower()
        beginnings.update(
            f"^{capitals[start:end]}" for start in range(len(capitals)) for end in range(start + 2, len(capitals) + 1)
        )
    return frozenset(beginnings)
