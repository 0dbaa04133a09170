"""Signals: what every request tells without a judge. Cheap, exact, and counted for all traffic, drawn or not."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import add, eq, itemgetter

from ragwatch.core.abstention import MAX_ABSTENTION_CHARS, abstains
from ragwatch.core.sample import Context, Sample
from ragwatch.core.tally import BUCKETS, INF, SUM, Tallies, Tally, bound_label
from ragwatch.core.vocabulary import NoveltyMeter

_TEXT = itemgetter(Context._fields.index("text"))  # the same as `.text`, in C
_MOST_SCORE = 1e30
"""What lies beyond stands for no score (retrievers write the largest float there), and its sum would be no number."""


class SignalCounter:
    """Collects one batch of samples by route, and adds them to the tallies at its end.

    Values are kept as lists until then: the intake loop runs for every line of a busy log.

    Args:
        meters: What the words of questions are measured with, by route; questions of other routes are there to be
            learnt from. None where nobody wants to know.
    """

    def __init__(self, meters: Mapping[str, NoveltyMeter] | None = None) -> None:
        self._routes: dict[str, _Route] = {}
        self._asks = meters is not None
        self._meters = dict(meters or {})  # those of now, for the whole batch

    def add(self, route: str, sample: Sample) -> None:
        """Take note of one sample; `route` is a label value (configured, or `other`)."""
        seen = self._routes.get(route)
        if seen is None:
            seen = self._routes[route] = _Route()
        contexts, answer = sample.contexts, sample.answer
        count = len(contexts)
        seen.contexts.append(count)
        seen.chars.append(len(answer))
        if count:
            score = contexts[0].score
            if score is not None and -_MOST_SCORE < score < _MOST_SCORE:
                seen.scores.append(score)
            if count > 1 and _repeats(contexts):
                seen.duplicated += 1
        if len(answer) <= MAX_ABSTENTION_CHARS and abstains(answer):
            seen.abstained += 1
        if self._asks and sample.question:
            seen.questions.append(sample.question)

    def to_learn_from(self) -> dict[str, list[str]]:
        """Questions by route, where they could not be measured yet."""
        return {
            route: seen.questions
            for route, seen in self._routes.items()
            if seen.questions and route not in self._meters
        }

    def add_to(self, tallies: Tallies) -> None:
        """Add what was collected to the tallies."""
        for route, seen in self._routes.items():
            _spread(tallies, Tally.CONTEXTS, route, seen.contexts)
            _spread(tallies, Tally.ANSWER_CHARS, route, seen.chars)
            _spread(tallies, Tally.TOP_SCORE, route, seen.scores)
            if route in self._meters:
                found = self._meters[route].strangeness(seen.questions)
                _spread(tallies, Tally.QUESTION_STRANGENESS, route, found)
            for tally, amount in (
                (Tally.EMPTY_RETRIEVALS, seen.contexts.count(0)),
                (Tally.DUPLICATE_CONTEXTS, seen.duplicated),
                (Tally.ABSTENTIONS, seen.abstained),
            ):
                if amount:
                    tallies[tally, (route,)] += amount


def _repeats(contexts: tuple[Context, ...]) -> bool:
    """Whether two contexts hold the same text: in order, they would be neighbours.

    Texts are told apart where they first differ, and need not be hashed from end to end as for a set.
    """
    texts = sorted(map(_TEXT, contexts))
    return any(map(eq, texts, texts[1:]))


class _Route:
    __slots__ = ("abstained", "chars", "contexts", "duplicated", "questions", "scores")

    def __init__(self) -> None:
        self.contexts: list[float] = []
        self.chars: list[float] = []
        self.scores: list[float] = []
        self.questions: list[str] = []
        self.duplicated = 0
        self.abstained = 0


def _spread(tallies: Tallies, histogram: Tally, route: str, values: Sequence[float]) -> None:
    """Add many observations to a histogram at once: in order, each bound is looked for once."""
    if not values:
        return
    ordered, below = sorted(values), 0
    for bound in BUCKETS[histogram]:
        up_to = bisect_right(ordered, bound, below)
        if up_to > below:
            tallies[histogram, (route, bound_label(bound))] += up_to - below
        below = up_to
    if below < len(ordered):
        tallies[histogram, (route, INF)] += len(ordered) - below
    # One by one, as single observations are added: `sum` of floats is another number from Python 3.12 on.
    tallies[histogram, (route, SUM)] += reduce(add, values)  # type: ignore[assignment]  # Counter adds floats as well as ints
