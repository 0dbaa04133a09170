"""Labels: what people's words say of the judges, and of the answers, at each digest.

The corrected estimate of a window is PPI++ over the answers given in it, to the hour; windows shorter than that makes
sense of, and those with too few labels, have none. The time for which labels are fresh is a window too, as a rule the
only one with enough of them. Where a quantity is yes or no, a window without labels of its own is corrected after
Rogan and Gladen, by the error rates of the judge on all fresh labels: those are taken to hold in the window as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist, fmean

from ragwatch.core.estimate import Estimate
from ragwatch.core.estimators import rogan_gladen
from ragwatch.core.estimators.corrected import correct
from ragwatch.core.estimators.ppi import PpiSums
from ragwatch.core.labels.calibration import LabelledScore, in_traffic, known_of
from ragwatch.core.labels.label import Label
from ragwatch.core.scores import Quantity
from ragwatch.core.snapshot import EstimateRow, Gauge, Gauges
from ragwatch.pipeline.labels.sums import HOUR, LabelSums, Row, hours, labelled, less
from ragwatch.pipeline.labels.verdicts import DAY, AnswerVerdicts, LabelRules, answer_verdicts
from ragwatch.ports import Store

ROWS = 5000
TURNS = 4  # of ROWS at a digest: a long past is caught up with little by little
SHORTEST = 6 * HOUR  # to the hour, a shorter window would be another one
A_FEW = 5  # labels of yes and of no, below which error rates are not known
BINARY = frozenset({Quantity.TOP_RANKED_IGNORED})


@dataclass(frozen=True, slots=True)
class AnswerLabel:
    """What people said of one answer: mean scores, and the probability with which they were asked."""

    answer_verdicts: AnswerVerdicts
    scores: Mapping[Quantity, float]
    probability: float | None


class LabelCorrection:
    """Lays people's words beside those of the judges in force.

    Args:
        rules: A reload brings new ones, and another People.
        spans: Length of each window in seconds, by its name.
        store: Holds verdicts and labels.
    """

    def __init__(self, rules: LabelRules, spans: Mapping[str, float], *, store: Store) -> None:
        self._rules = rules
        self._spans = {name: span for name, span in spans.items() if SHORTEST <= span <= rules.fresh}
        if rules.fresh not in self._spans.values():
            self._spans[span_name(rules.fresh)] = rules.fresh
        self._store = store
        self._chains = LabelSums(rules, self._sheet)
        self._seen = 0
        self._last = 0.0
        self._sheets: dict[str, AnswerVerdicts | None] = {}
        self._made: object = None
        self._rows: tuple[EstimateRow, ...] = ()
        self._gauges: dict[tuple[Gauge, tuple[str, ...]], float] = {}

    def look(self, now: float, estimates: Sequence[EstimateRow]) -> tuple[tuple[EstimateRow, ...], Gauges]:
        """Corrected estimates beside those of the judges, and what is known of the judges. Empty without labels.

        Raises:
            StoreError: The store cannot be read.
        """
        labels = [label for label in self._store.labels(now - self._rules.fresh) if label.scores]
        if not labels:
            return (), {}
        words = self._words(labels)
        complete = self._catch_up(now)
        made = (labels, words, self._seen, int(now // HOUR))
        if made != self._made:
            self._gauges = dict(self._beside(words))
            come = (label.at for label in labels if label.at <= now)  # a person's clock may be ahead
            self._gauges[Gauge.LAST_LABEL, ()] = max(come, default=now)
            self._rows = tuple(self._corrected(words, now)) if complete else ()
            self._made = made if complete else None
        return (*self._rows, *self._by_error_rates(words, estimates)), self._gauges

    def _sheet(self, key: str) -> AnswerVerdicts | None:
        """What is known of an answer, and is in the sums: what retention has left of times it picked from is not."""
        found = answer_verdicts(self._store, self._rules.judges, key, texts=False)
        return found if found is not None and found.at > self._store.picked_until() else None

    def _words(self, labels: Sequence[Label]) -> list[AnswerLabel]:
        """What people said of each answer that a judge in force has read."""
        by_key: dict[str, list[Label]] = {}
        for label in labels:
            by_key.setdefault(label.key, []).append(label)
        self._sheets = {key: self._sheets[key] if key in self._sheets else self._figures(key) for key in by_key}
        since = self._store.picked_until()
        known = ((key, found) for key, found in self._sheets.items() if found is not None and found.at > since)
        return [answer_label(found, by_key[key]) for key, found in known]

    def _figures(self, key: str) -> AnswerVerdicts | None:
        found = self._sheet(key)
        return None if found is None else replace(found, lines={}, sample=None)  # texts are not kept in memory

    def _catch_up(self, now: float) -> bool:
        """Read what was judged since the last time. False while there is more."""
        if self._last - now > HOUR:  # the clock was ahead: what was too old for it is not too old at all
            self._chains, self._seen = LabelSums(self._rules, self._sheet), 0
        self._last = now
        self._chains.forget(now)
        for _ in range(TURNS):
            rows = self._store.window(self._seen, now - self._rules.fresh, ROWS)
            if not rows:
                return True
            self._chains.add(rows)
            for row in rows:
                self._sheets.pop(row.key, None)  # another judge has read it: look again next time
            self._seen = rows[-1].seq
        return False

    def _beside(self, words: Sequence[AnswerLabel]) -> Iterable[tuple[tuple[Gauge, tuple[str, ...]], float]]:
        """How many labels there are, and how the judges agree with them."""
        for quantity in Quantity:
            count = len(pairs_of(words, self._rules.chain[0], quantity))
            if count:
                yield (Gauge.LABELS, (str(quantity),)), float(count)
            for judge in self._rules.judges:
                found = in_traffic(pairs_of(words, judge, quantity), self._rules.minimum)
                if found is not None:
                    yield (Gauge.AGREEMENT, (judge, str(quantity))), found.value

    def _corrected(self, words: Sequence[AnswerLabel], now: float) -> Iterable[EstimateRow]:
        for name, span in self._spans.items():
            within = hours(now, span)
            missed = self._chains.missed(within)
            inside = [word for word in words if int(word.answer_verdicts.at // HOUR) in within]
            for (route, quantity), sums in sorted(self._chains.totals(within).items()):
                whole = self._with_words(sums, inside, route, quantity)
                found = correct(
                    whole,
                    unjudged_weight=missed.get(route, 0.0),
                    confidence=self._rules.confidence,
                    min_labels=self._rules.minimum,
                )
                if found.estimate is not None:
                    yield EstimateRow(quantity, route, self._rules.chain[0], name, found.estimate, corrected=True)
                if found.gain is not None:
                    self._gauges[Gauge.LABEL_GAIN, (str(quantity), route, name)] = found.gain

    def _with_words(self, sums: PpiSums, words: Sequence[AnswerLabel], route: str, quantity: Quantity) -> PpiSums:
        before: list[Row] = []
        after: list[Row] = []
        for word in words:
            if word.answer_verdicts.route == route and quantity in word.scores and word.probability is not None:
                row = tuple(
                    labelled(self._rules, word.answer_verdicts, quantity, word.scores[quantity], word.probability)
                )
                before += row[:1]
                after += row[1:]
        return less(sums, PpiSums.of(sums.tiers, before)) + PpiSums.of(sums.tiers, after)

    def _by_error_rates(self, words: Sequence[AnswerLabel], estimates: Sequence[EstimateRow]) -> Iterable[EstimateRow]:
        """Estimates of what is yes or no, of windows that have too few labels of their own."""
        first = self._rules.chain[0]
        done = {(row.quantity, row.route, row.window) for row in self._rows}
        for row in estimates:
            place = (row.quantity, row.route, row.window)
            if row.judge == first and row.quantity in BINARY and place not in done:
                pairs = pairs_of(
                    [word for word in words if word.answer_verdicts.route == row.route], first, row.quantity
                )
                found = by_error_rates(row.estimate, pairs, self._rules) if len(pairs) >= self._rules.minimum else None
                if found is not None:
                    yield replace(row, estimate=found, corrected=True)


def by_error_rates(found: Estimate, pairs: Sequence[LabelledScore], rules: LabelRules) -> Estimate | None:
    """A judge's rate of yes corrected by its sensitivity and specificity; None where these are not known well enough.

    Its `n` counts the judge's verdicts, its `n_eff` how many answers that people had scored would say as much.
    """
    known = known_of(pairs)
    if known is None or min(known.positives, known.negatives) < A_FEW:
        return None
    made = rogan_gladen.correct(found.value, found.n_eff, known, rules.confidence)
    if made is None:
        return None
    value, low, high = made
    error = (high - low) / 2.0 / NormalDist().inv_cdf(0.5 + rules.confidence / 2.0)
    least = max(value * (1.0 - value), 1.0 / (found.n_eff + 2.0))
    effective = min(found.n_eff, least / error**2) if error > 0.0 else found.n_eff
    bound = value * found.coverage
    return replace(
        found,
        value=value,
        low=low,
        high=high,
        n_eff=effective,
        bound_low=bound,
        bound_high=min(1.0, bound + 1.0 - found.coverage),
        interval="rogan-gladen",
    )


def answer_label(found: AnswerVerdicts, labels: Sequence[Label]) -> AnswerLabel:
    """What people said of one answer, taken together: the mean, where several have scored the same."""
    quantities = {quantity for label in labels for quantity in label.scores}
    scores = {each: fmean(label.scores[each] for label in labels if each in label.scores) for each in quantities}
    known = [label.probability for label in labels if label.probability is not None]
    return AnswerLabel(found, scores, known[-1] if known else None)


def pairs_of(words: Sequence[AnswerLabel], judge: str, quantity: Quantity) -> list[LabelledScore]:
    """Answers that a judge and people have scored."""
    found = []
    for word in words:
        score = word.answer_verdicts.scores.get(judge, {}).get(quantity)
        if score is not None and quantity in word.scores:
            found.append(LabelledScore(word.answer_verdicts.key, score, word.scores[quantity], word.probability))
    return found


def span_name(seconds: float) -> str:
    """A length of time as configuration writes it.

    >>> span_name(30 * 86400.0), span_name(43200.0)
    ('30d', '12h')
    """
    return f"{seconds / DAY:g}d" if seconds >= DAY else f"{seconds / HOUR:g}h"
