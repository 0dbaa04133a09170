"""Kind `lexical`: the embedded judge. Pure Python, no model, no network, no key; milliseconds an answer.

It reads words. What it cannot do, and says so: tell a contradiction from an invention (`reads_contradiction` is
False), see a minimal edit made of the context's own words, follow another language than the contexts', or split a
question into needs. Method, data and figures: `training/README.md`.
"""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from ragwatch.core.evidence import Evidence
from ragwatch.core.sample import Sample
from ragwatch.core.verdict import FREE, Usage
from ragwatch.errors import JudgeError
from ragwatch.judges.lexical.claims import claims_of
from ragwatch.judges.lexical.limits import Deadline, check_claims, check_size
from ragwatch.judges.lexical.reader import Second, Thresholds, read
from ragwatch.judges.lexical.reference import READING, with_reference
from ragwatch.judges.lexical.tables import shipped
from ragwatch.ports import JudgeContext

Probability = Annotated[float, Field(gt=0.0, lt=1.0)]


class Options(BaseModel):
    """Settings of the embedded judge.

    Attributes:
        support: Probability at which a claim counts as supported.
        relevance: Probability at which a context counts as relevant.
        max_contexts: A sample with more contexts is left unjudged (`too_large`).
        max_claims: An answer, or a reference, with more claims is left unjudged.
        max_chars: Question, answer, reference and contexts with more characters together are left unjudged.
        max_answer_chars: An answer, or a reference, with more characters is left unjudged.
        max_question_chars: A sample whose question has more characters is left unjudged.
        max_seconds: A sample that takes more CPU seconds to read is left unjudged.
        concurrency: Samples read at a time, each in a thread; pure Python gains little beyond one.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    support: Probability = 0.5
    relevance: Probability = 0.5
    max_contexts: Annotated[int, Field(ge=1)] = 1000
    max_claims: Annotated[int, Field(ge=1)] = 500
    max_chars: Annotated[int, Field(ge=1)] = 1_000_000
    max_answer_chars: Annotated[int, Field(ge=1)] = 100_000
    max_question_chars: Annotated[int, Field(ge=1)] = 50_000
    max_seconds: Annotated[float, Field(gt=0.0, le=3600.0)] = 2.0
    concurrency: Annotated[int, Field(ge=1)] = 1


class LexicalJudge:
    """Reads samples by their words.

    Attributes:
        name: Configured name.
        kind: `lexical`.
        model: The fitted tables are its model.
        version: Changes with every change of the fitted tables, of how references are read, and of the probabilities
            at which it decides.
        concurrency: Samples read at a time.
        second: Who rules on claims after words; None where words do.
    """

    kind = "lexical"
    second: Second | None = None

    def __init__(self, options: Options, *, name: str, context: JudgeContext) -> None:
        self._options = options
        self._telemetry = context.telemetry
        self._tables = shipped()
        self._thresholds = Thresholds(options.support, options.relevance)
        self.name = name
        self.model = f"lexical-{self._tables.version}"
        self.version = f"{self.model}-r{READING}{_changed(options)}"
        self.concurrency = options.concurrency

    def ready_in(self) -> float:
        """It is always able."""
        return 0.0

    async def read(self, sample: Sample) -> tuple[Evidence, Usage]:
        """Evidence of one sample, read in a thread so that the loop goes on.

        Raises:
            JudgeError: The sample is larger than the options allow.
        """
        start = perf_counter()
        try:
            return await asyncio.to_thread(self.evidence, sample), FREE
        except JudgeError as error:
            self._telemetry.call_failed(self.name, self.model, error.reason, str(error))
            raise
        finally:
            self._telemetry.judge_called(self.name, self.model, perf_counter() - start)
            self._telemetry.judge_spent(self.name, self.model, FREE.by_direction(), 0.0)

    def evidence(self, sample: Sample) -> Evidence:
        """The same, at once: for scripts, benches and tests.

        Raises:
            JudgeError: The sample is larger than the options allow.
        """
        most = self._options.max_claims
        self._check_size(sample)
        check = Deadline(self._options.max_seconds)
        answer = claims_of(sample.answer, sample.question, most=most, check=check)
        check_claims(len(answer.claims), most)
        found = read(sample, answer, self._tables, self._thresholds, self._second(check), check=check)
        return with_reference(found, sample, answer, self._tables, self._thresholds, most=most, check=check)

    def _second(self, deadline: Deadline) -> Second | None:  # noqa: ARG002 - for judges that read on with a model
        """Who rules on the claims of one sample; None where words do."""
        return self.second

    def _check_size(self, sample: Sample) -> None:
        """Refuse by size alone, before anything is read."""
        options = self._options
        check_size(len(sample.contexts), options.max_contexts, "contexts")
        texts = {"question": sample.question or "", "answer": sample.answer, "reference": sample.reference or ""}
        most = {"question": options.max_question_chars}
        for name, text in texts.items():
            check_size(len(text), most.get(name, options.max_answer_chars), f"characters of its {name}")
        chars = sum(map(len, texts.values())) + sum(len(context.text) for context in sample.contexts)
        check_size(chars, options.max_chars, "characters")

    async def close(self) -> None:
        """Nothing is held."""


def _changed(options: Options) -> str:
    """What makes it read otherwise than by default, so that its verdicts share no mean with those."""
    chosen = options.model_dump(include={"support", "relevance"}, exclude_defaults=True)
    return "".join(f"-{name}{value:g}" for name, value in chosen.items())


def build(options: Options, *, name: str, context: JudgeContext) -> LexicalJudge:
    """The judge, with the tables that come with the package."""
    return LexicalJudge(options, name=name, context=context)
