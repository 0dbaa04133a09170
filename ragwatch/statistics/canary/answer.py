"""Answers of the whole service to canaries: what a judge reads, which are wrong, and which stage is at fault.

An oracle run gives the service the expected contexts. If the answer is wrong then, too, the generator is at fault.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

from ragwatch.model.enumerations import Described
from ragwatch.model.quantities import Quantity, ReferenceQuantity
from ragwatch.model.sample import Context, Sample
from ragwatch.statistics.canary.definition import Canary, Retrieved
from ragwatch.statistics.ranking import mean_of_known

RETRIEVED, GOLD = "retrieved", "gold"
WRONG_BELOW = 0.5
"""An answer is wrong below this correctness; without a reference, below this faithfulness."""


class AnswerFault(Described):
    """Stage at fault for a wrong answer. `UNKNOWN`: there is no answer from the expected contexts to compare with."""

    GENERATOR = ("generator", "even with the right contexts it is wrong: the generator")
    RETRIEVER = ("retriever", "with the right contexts it is right: the retriever")
    UNKNOWN = ("unknown", "it is wrong, and was not judged with the right contexts: the stage is unknown")


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """One answer of the service to a canary, judged."""

    canary: str
    contexts: str  # `retrieved`: from its own retriever. `gold`: it got the expected ones
    answer: str | None  # the answer; None where there is none, or a context has no text
    scores: Mapping[str, float | None] | None  # by quantity, with or without reference; None if not judged
    why: str = ""
    abstained: bool = False  # whether the answer is empty or an abstention

    @property
    def wrong(self) -> bool | None:
        """Whether the answer is wrong; None if that is unknown. Canaries can be answered: no answer is a wrong one."""
        if self.abstained:
            return True
        if self.scores is None:
            return None
        score = self.scores.get(ReferenceQuantity.CORRECTNESS)
        score = self.scores.get(Quantity.FAITHFULNESS) if score is None else score
        return None if score is None else score < WRONG_BELOW

    @property
    def unread(self) -> bool:
        """Whether there is an answer that the judge failed to read."""
        return self.answer is not None and self.scores is None and not self.abstained


def faults(answers: Sequence[JudgedAnswer]) -> dict[str, AnswerFault]:
    """Returns the stage at fault by canary, for the canaries whose answers are wrong."""
    wrong = {(answer.canary, answer.contexts): answer.wrong for answer in answers}
    by_canary: dict[str, AnswerFault] = {}
    for name in dict.fromkeys(answer.canary for answer in answers):
        gold = wrong.get((name, GOLD))
        if gold:
            by_canary[name] = AnswerFault.GENERATOR
        elif wrong.get((name, RETRIEVED)):
            by_canary[name] = AnswerFault.UNKNOWN if gold is None else AnswerFault.RETRIEVER
    return by_canary


def answer_means(answers: Sequence[JudgedAnswer]) -> dict[tuple[str, str], float]:
    """Returns the mean scores by quantity and origin of the contexts; unknown means are absent."""
    names = {(answer.contexts, name) for answer in answers for name in answer.scores or {}}
    means: dict[tuple[str, str], float] = {}
    for contexts, name in sorted(names):
        scores = (answer.scores.get(name) for answer in answers if answer.scores and answer.contexts == contexts)
        if (mean := mean_of_known(scores)) is not None:
            means[name, contexts] = mean
    return means


class AnswersLine(TypedDict):
    """The answers of a run as JSON values: mean correctness by origin of the contexts, and the wrong ones."""

    judged: int
    correctness: dict[str, float | None]
    faults: dict[str, str]
    verdict: list[str]
    not_judged: dict[str, int]


def answers_line(answers: Sequence[JudgedAnswer]) -> AnswersLine | None:
    """Returns the answers as `answers` of `ragwatch canary --json`; None if none was to be judged."""
    if not answers:
        return None
    means, wrong = answer_means(answers), faults(answers)
    correctness, canaries = str(ReferenceQuantity.CORRECTNESS), len({answer.canary for answer in answers})
    return {
        "judged": sum(answer.scores is not None for answer in answers),
        "correctness": {contexts: means.get((correctness, contexts)) for contexts in (GOLD, RETRIEVED)},
        "faults": {name: str(fault) for name, fault in wrong.items()},
        "verdict": [
            f"{fault.text} ({count} of {canaries} canaries)" for fault, count in sorted(Counter(wrong.values()).items())
        ],
        "not_judged": dict(Counter(answer.why for answer in answers if answer.scores is None)),
    }


def sample_of(
    canary: Canary, retrieved: Retrieved, *, suite: str, at: float, gold: Sequence[str] | None = None
) -> Sample | None:
    """Builds the sample of an answered canary, with its reference and the metadata keys `canary`, `suite` and `run`.

    The metadata keep it apart from live traffic. In an oracle run, `gold` are the contexts that the service was given.
    None if there is no answer or a context has no text: a judge would misread it.
    """
    if retrieved.answer is None:
        return None
    texts = [hit.text for hit in retrieved.hits] if gold is None else list(gold)
    complete = [text for text in texts if text is not None]
    if len(complete) < len(texts):
        return None
    if gold is None:
        contexts = tuple(Context(text, hit.id, hit.score) for text, hit in zip(complete, retrieved.hits, strict=True))
    else:
        contexts = tuple(map(Context, complete))
    run = "canary" if gold is None else "oracle"
    return Sample(
        f"{run}/{suite}/{canary.name}/{at}",
        canary.query,
        contexts,
        retrieved.answer,
        at,
        metadata={"canary": canary.name, "suite": suite, "run": run},
        reference=canary.reference,
    )


def gold_texts(canary: Canary) -> tuple[str, ...] | None:
    """Returns the texts of the expected contexts for an oracle run; None if there are none, or one has no text."""
    texts = tuple(context.text for context in canary.expected if context.text is not None)
    return texts if texts and len(texts) == len(canary.expected) else None
