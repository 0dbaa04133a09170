"""Kind `local`: the embedded judge's second storey. Words first, then a small model where they end; no key, no network.

What it reads beside the lexical judge: whether evidence that shares the claim's words supports it, contradicts it
(`reads_contradiction` is True) or says something else, as a calibrated probability. Relevance and address are read from
words as before. It follows English only: the rest words decide, and that is counted. Method, data, figures and what it
cannot do: `training/LOCAL.md`. Needs the extra `local`; without it, or without its model, words alone read on, loudly.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from ragwatch.errors import RagwatchError
from ragwatch.judges.lexical import judge as lexical
from ragwatch.judges.lexical.judge import LexicalJudge, Probability
from ragwatch.judges.lexical.limits import Deadline
from ragwatch.judges.lexical.reader import Second, Thresholds
from ragwatch.judges.lexical.reference import READING
from ragwatch.judges.local.artefact import SHIPPED, ModelArtefact, load
from ragwatch.judges.local.cross_encoder import CrossEncoderPass, CrossEncoderRules, LexicalOnlyReason
from ragwatch.ports import JudgeContext


class Options(BaseModel):
    """Settings of the local judge.

    Attributes:
        support: Probability at which a claim counts as supported; None for the one that was fitted.
        contradiction: Probability at which a claim that is not supported counts as contradicted; None the same.
        relevance: Probability at which a context counts as relevant.
        weights: Folder of another model that `training/` has made; None for the one in the package.
        max_pairs: Claims, alone or beside one context, that the model reads of one sample; words decide the rest. It
            bounds the time of a sample: some 10 ms each.
        max_contexts: A sample with more contexts is left unjudged (`too_large`).
        max_claims: An answer, or a reference, with more claims is left unjudged.
        max_chars: Question, answer, reference and contexts with more characters together are left unjudged.
        max_answer_chars: An answer, or a reference, with more characters is left unjudged.
        max_question_chars: A sample whose question has more characters is left unjudged.
        max_seconds: A sample that takes more CPU seconds to read is left unjudged; the model's own, which `max_pairs`
            bounds, do not count.
        concurrency: Samples read at a time, each in a thread; one keeps one core busy.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    support: Probability | None = None
    contradiction: Probability | None = None
    relevance: Probability = 0.5
    weights: Path | None = None
    max_pairs: Annotated[int, Field(ge=1)] = 256
    max_contexts: Annotated[int, Field(ge=1)] = 1000
    max_claims: Annotated[int, Field(ge=1)] = 500
    max_chars: Annotated[int, Field(ge=1)] = 1_000_000
    max_answer_chars: Annotated[int, Field(ge=1)] = 100_000
    max_question_chars: Annotated[int, Field(ge=1)] = 50_000
    max_seconds: Annotated[float, Field(gt=0.0, le=3600.0)] = 2.0
    concurrency: Annotated[int, Field(ge=1)] = 1


class LocalJudge(LexicalJudge):
    """Reads samples by their words, and on with a model.

    Attributes:
        name: Configured name.
        kind: `local`.
        model: Digest of the model and its tables.
        version: Changes with every change of what it reads with, and of the probabilities at which it decides. Where
            words read alone it is that of the lexical judge, with whose verdicts its own then share a mean.
        concurrency: Samples read at a time.
        fallback: Why words read alone; None where the model reads.
    """

    kind = "local"
    second: CrossEncoderPass | None = None

    def __init__(self, options: Options, *, name: str, context: JudgeContext) -> None:
        super().__init__(_words(options), name=name, context=context)
        self.fallback: str | None = None
        words = f"{self.model}-r{READING}"
        try:
            artefact = load(options.weights or SHIPPED)
            self.second = self._storey(artefact, options)
        except ImportError as error:
            self.fallback = f"{error.name or error} is not installed; pip install 'ragwatch-exporter[local]'"
        except RagwatchError as error:
            self.fallback = str(error)
        else:
            self.model = f"local-{artefact.version}"
            self.version = f"{self.model}-{words}{_changed(options)}"
            self._left_to_words(dict.fromkeys(LexicalOnlyReason, 0))  # from zero, so that the first is an increase
        context.telemetry.judge_fell_back(name, self.version, self.fallback)

    def _second(self, deadline: Deadline) -> Second | None:
        return None if self.second is None else partial(self.second, deadline=deadline)

    def _storey(self, artefact: ModelArtefact, options: Options) -> CrossEncoderPass:
        from ragwatch.judges.local.session import PairModel  # noqa: PLC0415 - an extra: only this kind needs it

        rules = CrossEncoderRules(
            words=Thresholds(_words(options).support, options.relevance),
            supported_from=options.support or artefact.supported_from,
            contradicted_from=options.contradiction or artefact.contradicted_from,
            max_pairs=options.max_pairs,
        )
        return CrossEncoderPass(artefact, PairModel(artefact), rules, self._left_to_words)

    def _left_to_words(self, readings: Mapping[LexicalOnlyReason, int]) -> None:
        for reason, count in readings.items():
            self._telemetry.left_to_words(self.name, reason, count)


def _words(options: Options) -> lexical.Options:
    """The lexical judge's part of the options."""
    shared = options.model_dump(include=set(lexical.Options.model_fields), exclude_none=True)
    return lexical.Options(**shared)


def _changed(options: Options) -> str:
    """What makes it read otherwise than by default, so that its verdicts share no mean with those."""
    told = {"support", "contradiction", "relevance", "max_pairs"}
    chosen = options.model_dump(include=told, exclude_defaults=True)
    return "".join(f"-{name}{value:g}" for name, value in chosen.items())


def build(options: Options, *, name: str, context: JudgeContext) -> LocalJudge:
    """The judge, with the model that comes with the package or lies in the folder that is named."""
    return LocalJudge(options, name=name, context=context)
