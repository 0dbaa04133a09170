"""Embedded judges, and what they read in one answer."""

from pathlib import Path
from typing import Any

from ragwatch.judges.lexical import judge as lexical
from ragwatch.judges.lexical.judge import LexicalJudge
from ragwatch.judges.local import judge as local
from ragwatch.judges.local.judge import LocalJudge
from ragwatch.model.evidence import Evidence
from ragwatch.model.quantities import Quantity
from ragwatch.model.sample import Context, Sample
from ragwatch.statistics.scores import score_all
from ragwatch.telemetry import EventCount, Telemetry
from support.kit import a_judge_context

TINY = Path(__file__).parents[1] / "data" / "local"


def by_words(telemetry: Telemetry | None = None, **options: Any) -> LexicalJudge:
    """A lexical judge."""
    return lexical.build(lexical.Options.model_validate(options), name="embedded", context=a_judge_context(telemetry))


def by_model(telemetry: Telemetry | None = None, **options: Any) -> LocalJudge:
    """A local judge with the small model of the tests, whose word is known (`tools/tiny_reader.py`)."""
    given = local.Options.model_validate({"weights": TINY} | options)
    return local.build(given, name="reader", context=a_judge_context(telemetry))


LEXICAL, LOCAL = by_words(), by_model()


def an_answer(answer: str, *contexts: str, question: str | None = None, **parts: Any) -> Sample:
    """One answer over these contexts."""
    return Sample("s", question, tuple(map(Context, contexts)), answer, **parts)


def read_by(judge: LexicalJudge, answer: str, *contexts: str, **parts: Any) -> Evidence:
    """What a judge reads in an answer over these contexts; `parts` are those of `an_answer`."""
    return judge.evidence(an_answer(answer, *contexts, **parts))


def left_to_words(telemetry: Telemetry) -> dict[str, float]:
    """How many claims a judge with a model has left to words, by reason."""
    counts = telemetry.counts().items()
    return {labels[1]: value for (count, labels), value in counts if count is EventCount.JUDGE_LEFT_TO_WORDS and value}


def has_negation(text: str) -> bool:
    """Whether one of the words is a negation: such a text may deny a claim."""
    return not {"not", "don't"}.isdisjoint(text.split())


def faithfulness_of(answer: str, *contexts: str, **parts: Any) -> float | None:
    """What the lexical judge makes of an answer."""
    return score_all(read_by(LEXICAL, answer, *contexts, **parts))[Quantity.FAITHFULNESS]
