"""Index of judged answers for searches: written with their verdicts, and deleted with their texts and samples.

Answers that were judged by earlier versions, or under other settings, are added in small transactions after the start,
the newest first. How terms and words are stored is a matter of each engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from ragwatch.statistics.verdict import Verdict
from ragwatch.stores.engine import Writer
from ragwatch.stores.search.answer_terms import Rules, fails, sample_words, stored_terms, stored_words, terms_of_sample

MAX_ROWS_PER_STEP = 200
NEWEST = (float("inf"), 0)
FAILS = "v.outcome = 'judged' AND v.stage NOT IN ('none')"
BEHIND = (
    f"SELECT v.at, v.seq, v.key, HAS_WORDS, {FAILS} FROM verdicts v LEFT JOIN answer_index a ON a.key = v.key"  # noqa: S608 - constants
    " WHERE (v.at, v.seq) < (CAST(:at AS double precision), CAST(:seq AS bigint))"
    " ORDER BY v.at DESC, v.seq DESC LIMIT :limit"
)
_STORED = (
    "SELECT s.key, s.at, NULLIF(s.body, DROPPED), t.body,"  # noqa: S608 - constants
    f" EXISTS (SELECT 1 FROM verdicts v WHERE v.key = s.key AND {FAILS})"
    " FROM samples s JOIN SAMPLE_KEYS k ON k.key = s.key LEFT JOIN traits t ON t.key = s.key"
    " WHERE s.key = LIST(:keys) ORDER BY s.key LOCKING(FOR SHARE OF s)"  # waits for erasures
)

Place = tuple[float, int]
Words = tuple[list[str], list[str]]
"""Of question and answer."""


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
    """Return the entries of judged answers."""
    entries: dict[str, Entry] = {}
    for verdict in verdicts:
        draw = verdict.draw
        if draw.damage is None:
            words = entries[draw.key].words if draw.key in entries else None
            if words is None and rules.keeps_words(fails=fails(verdict)):
                words = sample_words(draw.sample)
            entries[draw.key] = Entry(draw.at, terms_of_sample(draw.sample, rules), words)
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
