"""Scores of a test set by question, which pair the rows of one run of a gate with those of another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

from ragwatch.model.quantities import LOW_IS_GOOD
from ragwatch.model.sample import Sample
from ragwatch.statistics.compare import key_of, match_keys

MAX_CHARS = 200
"""Of a question in a report."""
_LOW_IS_GOOD: frozenset[str] = frozenset(LOW_IS_GOOD)


class QuestionScores(NamedTuple):
    """The scores of one row."""

    id: str
    question: str | None  # the question, shortened; None if the row has none
    link: str | None  # address of the row or of its trace; None if it has none
    key: str  # digest of question and earlier turns, which tells whether two rows ask the same
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
    return QuestionScores(sample.id, None if text is None else text[:MAX_CHARS], link, digest, {})


Pairs = list[tuple[QuestionScores, QuestionScores]]


def pairs_of(before: Sequence[QuestionScores], after: Sequence[QuestionScores]) -> Pairs:
    """Returns the rows that two runs share: by id and question, else by question; none if too few are shared.

    Ids alone would pair other questions where they are line numbers.
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


class LostQuestion(NamedTuple):
    """A question that lost, with its scores before and now by metric."""

    question: QuestionScores
    lost: Mapping[str, tuple[float, float]]


def lost_questions(pairs: Pairs, metrics: Sequence[str]) -> tuple[LostQuestion, ...]:
    """Returns the questions that lost in a metric, by their largest loss, then by the sum of their losses."""
    rows: list[tuple[float, float, LostQuestion]] = []
    for before, after in pairs:
        lost: dict[str, tuple[float, float]] = {}
        losses = []
        for metric in metrics:
            if metric in before.scores and metric in after.scores:
                step = before.scores[metric] - after.scores[metric]
                step = -step if metric in _LOW_IS_GOOD else step
                if step > 1e-9:
                    lost[metric] = before.scores[metric], after.scores[metric]
                    losses.append(step)
        if lost:
            rows.append((max(losses), sum(losses), LostQuestion(after, lost)))
    return tuple(row for *_, row in sorted(rows, key=lambda one: (-one[0], -one[1])))


def lost_line(one: LostQuestion) -> dict[str, object]:
    """Returns a question that lost as JSON values; `scores` are those before and now (of A and of B) by metric."""
    return {
        "id": one.question.id,
        "question": one.question.question,
        "link": one.question.link,
        "scores": {str(metric): list(scores) for metric, scores in one.lost.items()},
    }
