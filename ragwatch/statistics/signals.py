"""Traffic signals: counts and histograms over all requests, which need no judge."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import add, eq, itemgetter

from ragwatch.model.sample import Context, Sample
from ragwatch.statistics.relevance import rank_sample, ranking_metrics
from ragwatch.statistics.tally import BUCKETS, INF, SUM, Tallies, Tally, bound_label
from ragwatch.statistics.text.citations import count_citations
from ragwatch.statistics.text.phrases import MAX_ABSTENTION_CHARS, is_abstention
from ragwatch.statistics.text.scripts import LanguageCheck
from ragwatch.statistics.text.vocabulary import NoveltyMeter

_TEXT = itemgetter(Context._fields.index("text"))  # the same as `.text`, in C
_RANKING_METRICS = tuple(metric for metric in ranking_metrics() if metric.measure != "context_precision")
"""A metric that is added later has no sum for the rows that were counted before."""
_UPDATED = itemgetter(Context._fields.index("updated_at"))
_DAY = 86400.0
SLOTS = 1 << 12
"""Size of the table of repeated answers."""
_MAX_SCORE = 1e30
"""A larger score is ignored: some retrievers write the largest float for a missing score, and sums would overflow."""


class RepeatedAnswers:
    """Remembers the newest answers by hash, so that one that comes again for another question is noticed.

    A later answer in the same slot replaces an earlier one, so of answers that are far apart only some are noticed. The
    table belongs to a process: after a start it is empty.
    """

    def __init__(self) -> None:
        self._answers = [0] * SLOTS
        self._questions = [0] * SLOTS

    def add(self, route: str, question: str, answer: str) -> bool:
        """Remember an answer. Returns whether the same route gave the same one to another question."""
        given, asked = hash((route, answer)), hash(question)
        slot = given % SLOTS
        repeated = self._answers[slot] == given and self._questions[slot] != asked
        self._answers[slot], self._questions[slot] = given, asked
        return repeated


class SignalCounter:
    """Collects the signals of one batch of samples by route, and adds them to the tallies at the end of the batch.

    Values are kept in lists until then, because intake runs for every line of a busy log. Questions of routes without a
    novelty meter are collected for learning a vocabulary; without `meters` novelty is not monitored, nor is it without
    `repeated` which answers come again. No answer is later than `now`, and those without a time were given then.
    """

    def __init__(
        self,
        meters: Mapping[str, NoveltyMeter] | None = None,
        repeated: RepeatedAnswers | None = None,
        now: float | None = None,
    ) -> None:
        self._repeated = repeated
        self._now = now
        self._differs = LanguageCheck().differs
        self._routes: dict[str, _RouteSignals] = {}
        self._collects_questions = meters is not None
        self._meters = dict(meters or {})  # a copy, so that they stay the same for the whole batch

    def add(self, route: str, sample: Sample) -> None:
        """Collect the signals of one sample; `route` is a label value (a configured route, or `other`)."""
        signals = self._routes.get(route)
        if signals is None:
            signals = self._routes[route] = _RouteSignals()
        contexts, answer = sample.contexts, sample.answer
        count = len(contexts)
        signals.values[Tally.CONTEXTS].append(count)
        signals.values[Tally.ANSWER_CHARS].append(len(answer))
        if count:
            score = contexts[0].score
            if score is not None and -_MAX_SCORE < score < _MAX_SCORE:
                signals.values[Tally.TOP_SCORE].append(score)
            if count > 1 and _has_duplicates(contexts):
                signals.counts[Tally.DUPLICATE_CONTEXTS] += 1
            if any(map(_UPDATED, contexts)):  # no date is 0
                self._add_age(signals, sample)
        if not answer or answer.isspace():
            signals.counts[Tally.EMPTY_ANSWERS] += 1
        elif len(answer) <= MAX_ABSTENTION_CHARS and is_abstention(answer):
            signals.counts[Tally.ABSTENTIONS] += 1
        else:
            self._add_answered(route, signals, sample)
        if sample.relevant is not None:
            signals.judged.append(sample)
        if self._collects_questions and sample.question:
            signals.questions.append(sample.question)

    def _add_answered(self, route: str, signals: _RouteSignals, sample: Sample) -> None:
        """Collect the signals of an answer that is one."""
        question, answer, contexts = sample.question, sample.answer, sample.contexts
        if contexts:
            citations = count_citations(answer, contexts)
            if not citations.named:
                signals.counts[Tally.UNCITED_ANSWERS] += 1
            if citations.dangling:
                signals.counts[Tally.DANGLING_CITATIONS] += 1
        if question:
            if self._differs(question, answer):
                signals.counts[Tally.OTHER_LANGUAGE] += 1
            if self._repeated is not None and self._repeated.add(route, question, answer):
                signals.counts[Tally.REPEATED_ANSWERS] += 1

    def _add_age(self, signals: _RouteSignals, sample: Sample) -> None:
        """Collect the median age of the documents (0 if changed after the answer), the younger one of two."""
        dates = sorted(filter(None, map(_UPDATED, sample.contexts)))
        times = [at for at in (sample.at, self._now) if at is not None]
        if times:
            signals.values[Tally.DOCUMENT_AGE].append(max(0.0, min(times) - dates[len(dates) // 2]) / _DAY)

    def to_learn_from(self) -> dict[str, list[str]]:
        """Return the questions of routes without a novelty meter, by route."""
        return {
            route: signals.questions
            for route, signals in self._routes.items()
            if signals.questions and route not in self._meters
        }

    def add_to(self, tallies: Tallies) -> None:
        """Add the collected signals to the tallies."""
        for route, signals in self._routes.items():
            if route in self._meters:
                signals.values[Tally.QUESTION_STRANGENESS] = self._meters[route].strangeness(signals.questions)
            for histogram, values in signals.values.items():
                _observe_all(tallies, histogram, route, values)
            if empty := signals.values[Tally.CONTEXTS].count(0):
                tallies[Tally.EMPTY_RETRIEVALS, (route,)] += empty
            for tally, amount in signals.counts.items():
                tallies[tally, (route,)] += amount
            for sample in signals.judged:
                _count_ranking(tallies, route, sample)


def _count_ranking(tallies: Tallies, route: str, sample: Sample) -> None:
    """Add the ranking metrics of a sample with relevant ids, or the reason why they are unknown."""
    case = rank_sample(sample)
    if case.ranking is None:
        tallies[Tally.UNRANKED, (route, str(case.unknown))] += 1
        return
    tallies[Tally.RANKED, (route,)] += 1
    for metric in _RANKING_METRICS:
        labels = (route, metric.measure, "" if metric.k is None else str(metric.k))
        tallies[Tally.RANKING_SCORE, labels] += metric.of(case.ranking) or 0.0  # type: ignore[assignment]  # the same


def _has_duplicates(contexts: tuple[Context, ...]) -> bool:
    """Return whether two contexts have the same text: comparing neighbours stops early, a set would hash all of it."""
    texts = sorted(map(_TEXT, contexts))
    return any(map(eq, texts, texts[1:]))


@dataclass(slots=True)
class _RouteSignals:
    """Signals of one batch on one route."""

    values: defaultdict[Tally, list[float]] = field(default_factory=lambda: defaultdict(list))  # by histogram
    questions: list[str] = field(default_factory=list)
    judged: list[Sample] = field(default_factory=list)  # with relevance judgements
    counts: Counter[Tally] = field(default_factory=Counter)  # answers that have a signal


def _observe_all(tallies: Tallies, histogram: Tally, route: str, values: Sequence[float]) -> None:
    """Add many observations to a histogram: they are sorted, and each bound is searched once."""
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
    # Added one by one, as `observe` does: since Python 3.12 `sum` compensates and rounds differently.
    tallies[histogram, (route, SUM)] += reduce(add, values)  # type: ignore[assignment]  # Counter adds floats as well as ints
