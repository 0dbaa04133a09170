"""The families of models that the kind `detector` runs: what they read, in which words, and what their outputs mean.

Sources of the templates and classes: the models' own code at KRLabsOrg/LettuceDetect (`detectors/transformer.py`,
`prompts/`, `scripts/canonicalize_prompts.py`), Liyan06/MiniCheck (`inference.py`), and `modeling_hhem_v2.py` of
vectara/hallucination_evaluation_model. NLI cross-encoders read (premise, hypothesis); `id2label` names their classes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, NamedTuple

from ragwatch.errors import JudgeError
from ragwatch.statistics.verdict import UnjudgedReason

Name = Literal[
    "lettucedetect", "lettucedetect_v2", "minicheck_roberta", "minicheck_deberta", "minicheck_t5", "hhem", "nli"
]

_QA = (
    "Briefly answer the following question:\n{question}\nBear in mind that your response should be strictly based on "
    "the following {count} passages:\n{context}\nIn case the passages do not contain the necessary information to "
    'answer the question, please reply with: "Unable to answer based on given passages."\noutput:'
)
_SUMMARY = "Summarize the following text:\n{context}\noutput:"
_HHEM = "<pad> Determine if the hypothesis is true given the premise?\n\nPremise: {context}\n\nHypothesis: {claim}"


class Reads(StrEnum):
    """What a model reads at once."""

    ANSWER = "answer"
    """The contexts and the question in a template, and the whole answer; it labels the tokens of the answer."""
    PAIR = "pair"
    """A context and a claim, as two texts."""
    TEXT = "text"
    """A context and a claim in a template, as one text."""


@dataclass(frozen=True, slots=True)
class Family:
    """Models with the same input and output.

    Attributes:
        window: Maximum number of tokens of contexts in an input.
        template: Template of the input, with `{context}`, and `{claim}` or `{question}` and `{count}`; "" for a pair.
        without_question: Template of an answer without a question.
        passage: Template of one context among several.
        classes: Indexes of the outputs "not supported" and "supported"; None where config.json names them.
    """

    reads: Reads
    max_tokens: int
    window: int
    template: str = ""
    without_question: str = ""
    passage: str = "{text}"
    classes: tuple[int, int] | None = (0, 1)


FAMILIES: Mapping[Name, Family] = {
    "lettucedetect": Family(
        Reads.ANSWER, 4096, 2048, _QA, _SUMMARY, passage="passage {number}: {text}", classes=(1, 0)
    ),
    "lettucedetect_v2": Family(
        Reads.ANSWER, 8192, 2048, "User request: {question}\n\n{context}", "{context}", classes=(1, 0)
    ),
    "minicheck_roberta": Family(Reads.TEXT, 512, 400, "{context}</s>{claim}"),
    "minicheck_deberta": Family(Reads.TEXT, 2048, 400, "{context}[SEP]{claim}"),
    "minicheck_t5": Family(Reads.TEXT, 2048, 700, "predict: {context}</s>{claim}", classes=(3, 209)),
    "hhem": Family(Reads.TEXT, 2048, 700, _HHEM),
    "nli": Family(Reads.PAIR, 512, 400, classes=None),
}
"""MiniCheck-Flan-T5 answers with a word: 3 and 209 are its tokens for no and yes; its window is 500 words."""


class Classes(NamedTuple):
    """Which output is which.

    Attributes:
        others: Indexes of the outputs that are not "supported".
        supported: Index of "supported".
        contradicted: Index of "contradicted"; None where the model does not tell it from "not in the context".
    """

    others: tuple[int, ...]
    supported: int
    contradicted: int | None = None


class Signals(NamedTuple):
    """Outputs of the model for one claim.

    Attributes:
        support: Logit of "supported" against all others.
        against: Logit of "contradicted" against all others; None where the model does not read it.
    """

    support: float
    against: float | None = None


def family_of(config: Mapping[str, object]) -> Name | None:
    """The family of a model by its config.json; None where that does not show it.

    >>> family_of({"architectures": ["ModernBertForTokenClassification"]})
    'lettucedetect'
    >>> family_of({"id2label": {"0": "entailment", "1": "not_entailment"}})
    'nli'
    """
    architectures = config.get("architectures")
    (name,) = map(str, architectures[:1]) if isinstance(architectures, list) and architectures else ("",)
    if name.startswith("HHEM"):
        return "hhem"
    if name.endswith("ForTokenClassification"):
        return "lettucedetect"
    return "nli" if "entailment" in labels_of(config) else None


def labels_of(config: Mapping[str, object]) -> dict[str, int]:
    """The outputs by their names in config.json, in lower case."""
    named = config.get("id2label")
    return {str(label).lower(): int(index) for index, label in named.items()} if isinstance(named, dict) else {}


def classes_of(family: Family, config: Mapping[str, object]) -> Classes:
    """The outputs of a model.

    Raises:
        ValueError: config.json does not name the outputs of an NLI model.
    """
    if family.classes is not None:
        return Classes(family.classes[:1], family.classes[1])
    labels = labels_of(config)
    if "entailment" not in labels or len(labels) < 2:
        raise ValueError("id2label in config.json has no label `entailment` beside others")
    supported = labels["entailment"]
    others = tuple(sorted(index for index in labels.values() if index != supported))
    return Classes(others, supported, labels.get("contradiction"))


def signals_of(classes: Classes, logits: Sequence[float]) -> Signals:
    """Read the logits of one claim, or of one token.

    >>> signals_of(Classes((0,), 1), [1.0, 3.0])
    Signals(support=2.0, against=None)

    Raises:
        JudgeError: An output is not finite, or missing.
    """
    every = (*classes.others, classes.supported)
    if max(every) >= len(logits) or not all(math.isfinite(logits[index]) for index in every):
        raise JudgeError(UnjudgedReason.UNREADABLE, "an output of the model is not finite, or missing")
    support = logits[classes.supported] - _log_sum_exp([logits[index] for index in classes.others])
    if classes.contradicted is None:
        return Signals(support)
    rest = [logits[index] for index in every if index != classes.contradicted]
    return Signals(support, logits[classes.contradicted] - _log_sum_exp(rest))


def _log_sum_exp(values: Sequence[float]) -> float:
    """Logarithm of the sum of exponentials."""
    high = max(values)
    return high + math.log(math.fsum(math.exp(value - high) for value in values))
