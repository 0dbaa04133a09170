"""Scores of a test set by question, which pair the rows of one run of a gate with those of another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

from ragwatch.core.compare import key_of, match_keys
from ragwatch.core.sample import Sample

_MAX_CHARS = 200


class QuestionScores(NamedTuple):
    """The scores of one row.

    Attributes:
        id: Id of the row.
        question: The question, shortened; None if the row has none.
        link: Address of the row or of its trace; None if it has none.
        key: Digest of question and earlier turns, which tells whether two rows ask the same.
        scores: Known scores by metric.
    """

    id: str
    question: str | None
    link: str | None
    key: str
    scores: Mapping[str, float]

    def scored(self, scores: Iterable[tuple[str, float | None]]) -> QuestionScores:
        """Returns the row with these scores; unknown ones are left out."""
        return self._replace(scores={str(metric): score for metric, score in scores if score is not None})


def question_of(sample: Sample) -> QuestionScores:
    """Returns the question of a row, without scores. Its link is `url` or `link` of its metadata."""
    text = sample.question
    links = (sample.metadata.get(name) for name in ("url", "link"))
    link = next((one for one in links if isinstance(one, str) and one.startswith(("http://", "https://"))), None)
    key = key_of(text, sample.id, sample.user_turns)
    digest = blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return QuestionScores(sample.id, None if text is None else text[:_MAX_CHARS], link, digest, {})


Pairs = list[tuple[QuestionScores, QuestionScores]]


def pairs_of(before: Sequence[QuestionScores], after: Sequence[QuestionScores]) -> Pairs:
    """Returns the rows that two runs share: by id and question, else by question; none if too few are shared.

    Ids alone would pair other questions where they are line numbers.

    >>> row = QuestionScores("1", "why?", None, "k", {})
    >>> len(pairs_of([row] * 3, [row] * 2)), pairs_of([row] * 3, [row._replace(key="l")] * 3)
    (2, [])
    >>> len(pairs_of([row] * 3, [row._replace(id="2")] * 3))
    3
    """
    for named in (True, False):
        first, second = (by_row(side, named=named) for side in (before, after))
        matched = match_keys(first, second)
        if matched.enough:
            return [(first[key], second[key]) for key in matched.keys]
    return []


def by_row(rows: Iterable[QuestionScores], *, named: bool = True) -> dict[str, QuestionScores]:
    """Returns rows by id (if `named`) and question; of several with one key the second has another, and so on."""
    seen: Counter[str] = Counter()
    by_key = {}
    for row in rows:
        key = f"{row.id}\n{row.key}" if named else row.key
        seen[key] += 1
        by_key[f"{key}\n{seen[key]}"] = row
    return by_key
