"""A population whose truth is known: a harsh judge reads it, a better one a part of it, people a part of that."""

from collections.abc import Mapping
from dataclasses import replace
from random import Random

from ragwatch.model.quantities import Quantity
from ragwatch.model.sample import Draw
from ragwatch.pipeline.labels.correction import LabelCorrection
from ragwatch.pipeline.labels.tasks import LabelTasks
from ragwatch.pipeline.labels.verdicts import LabelRules
from ragwatch.ports import Assignment, FollowUp, Store
from ragwatch.statistics.labels.label import Label
from ragwatch.statistics.verdict import Verdict
from support.kit import AT, JUDGE, a_claim, a_draw, a_reading, a_verdict, an_admission, an_evidence

LLM = "llm"
NOW = AT + 1800.0
CLAIMS = 4
ALONE = LabelRules({JUDGE: "scripted-1"}, (JUDGE,))
BOTH = LabelRules({JUDGE: "scripted-1", LLM: "scripted-1"}, (JUDGE, LLM))


class World:
    """Traffic of one hour, drawn and judged.

    Half of it is drawn at 0.2, half at 0.8 and is worse. The first judge overlooks three supported claims of ten, the
    second one of ten; both believe one false claim of twenty.

    Args:
        store: Where everything is.
        rng: Decides everything.
        requests: All traffic.
        rules: Which judges there are.
        begin: When it begins; half an hour later is now.
    """

    def __init__(
        self, store: Store, rng: Random, *, requests: int = 1200, rules: LabelRules = ALONE, begin: float = AT
    ) -> None:
        self.store, self.rules, self._rng, self._now = store, rules, rng, begin + 1800.0
        self.said: dict[str, list[bool]] = {}
        total = 0.0
        draws = []
        for index in range(requests):
            worse = index % 2 == 1
            truth = [rng.random() < (0.6 if worse else 0.9) for _ in range(CLAIMS)]
            total += sum(truth) / CLAIMS
            probability = 0.8 if worse else 0.2
            if rng.random() < probability:
                draw = a_draw(f"{rng.random()}-{index}", probability=probability, at=begin + index * 1200.0 / requests)
                self.said[draw.key] = truth
                draws.append(draw)
        self.truth = total / requests
        store.admit(an_admission(*draws))
        self._judge(draws)

    def _judge(self, draws: list[Draw]) -> None:
        first = [self._verdict(draw, JUDGE, 0.3) for draw in draws]
        if len(self.rules.chain) == 1:
            self.store.settle(first)
            return
        onward = [replace(draw, probability=draw.probability * 0.5) for draw in draws if self._rng.random() < 0.5]
        follow_ups = [FollowUp(draw.key, JUDGE, Assignment(LLM, draw.probability), draw.at) for draw in onward]
        self.store.settle(first, follow_ups)
        self.store.settle([self._verdict(draw, LLM, 0.1) for draw in onward])

    def _verdict(self, draw: Draw, judge: str, blind: float) -> Verdict:
        rng, rows = self._rng, []
        for true in self.said[draw.key]:
            seen = rng.random() >= blind if true else rng.random() < 0.05
            rows.append(
                a_claim((1, 0) if seen else (0, 0), support=rng.uniform(0.6, 1.0) if seen else rng.uniform(0.0, 0.5))
            )
        return a_verdict(draw, an_evidence(*rows), a_reading(judge))

    def labelling(self) -> LabelTasks:
        """Who asks people."""
        return LabelTasks(self.rules, store=self.store, clock=lambda: self._now, uniform=self._rng.random)

    def label(self, count: int, annotator: str = "ann", *, at_once: bool = True) -> None:
        """A person who is always right labels some answers, whose words are kept at once or one by one."""
        labelling = self.labelling()
        words = [self.word(task["key"], annotator) for task in labelling.tasks(annotator, count)]
        for some in [words] if at_once else [[word] for word in words]:
            labelling.put(some)

    def word(self, key: str, annotator: str = "ann") -> Mapping[str, object]:
        """What a person who is always right says."""
        truth = self.said[key]
        return Label(key, annotator, self._now, {Quantity.FAITHFULNESS: sum(truth) / len(truth)}).to_record()

    def people(self) -> LabelCorrection:
        """Who lays these words beside the judge's."""
        return LabelCorrection(self.rules, {"1h": 3600.0, "1d": 86400.0}, store=self.store)
