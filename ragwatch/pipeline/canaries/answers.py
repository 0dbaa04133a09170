"""Canary answers: what the service answered to its canaries is judged, also from the right contexts (an oracle run).

Beside the reference the judge can say more than of live traffic: correctness, and context recall. An answer that is bad
from the right contexts too is the generator's own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from ragwatch.core.canary.answer import gold_texts, sample_of
from ragwatch.core.canary.definition import Canary
from ragwatch.core.canary.report import CanaryReport
from ragwatch.core.ranking import mean_of_known
from ragwatch.core.reference import score_by_reference
from ragwatch.core.sample import Sample
from ragwatch.core.scores import score_all
from ragwatch.core.snapshot import Gauge
from ragwatch.errors import JudgeError
from ragwatch.ports import Judge, Oracle, Probe

RETRIEVED, GOLD = "retrieved", "gold"
Scores = Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """One answer of the service to a canary, judged.

    Attributes:
        canary: Name of the canary.
        contexts: `retrieved`: it found its contexts itself. `gold`: it was given the right ones.
        answer: What it answered; None where it did not, or a context came without its text.
        scores: By quantity, those that need a reference included; None where nothing was judged.
        why: Why nothing was judged.
    """

    canary: str
    contexts: str
    answer: str | None
    scores: Scores | None
    why: str = ""


class AnswerJudging:
    """Has a suite's answers judged.

    Args:
        judge: Reads them.
        oracle: Whether the service is also asked with the right contexts, where the probe can do that.
        clock: Seconds since the epoch.
        timeout_seconds: A reading that takes longer is given up.
    """

    def __init__(
        self, judge: Judge, *, oracle: bool, clock: Callable[[], float], timeout_seconds: float = 60.0
    ) -> None:
        self._judge = judge
        self._places = asyncio.Semaphore(judge.concurrency)  # a judge in threads would take those of the store, too
        self._timeout = timeout_seconds
        self._oracle = oracle
        self._clock = clock

    async def of(self, suite: str, reports: Sequence[CanaryReport], probe: Probe) -> list[JudgedAnswer]:
        """The answers in these reports, and those of an oracle run."""
        found = [self._found(suite, each) for each in reports if each.failure is None and not each.canary.negative]
        given = []
        if self._oracle and _is_oracle(probe):
            given = [self._given(suite, each.canary, probe) for each in reports if not each.canary.negative]
        return list(await asyncio.gather(*found, *given))

    async def _found(self, suite: str, report: CanaryReport) -> JudgedAnswer:
        sample = sample_of(report.canary, report.retrieved, suite=suite, at=report.at)
        return await self._judged(report.canary, RETRIEVED, sample, "no answer, or a context without its text")

    async def _given(self, suite: str, canary: Canary, probe: Oracle) -> JudgedAnswer:
        texts = gold_texts(canary)
        if texts is None:
            return JudgedAnswer(canary.name, GOLD, None, None, "an expected context is known by its id alone")
        retrieved = await probe.ask_with(canary.query, texts)
        sample = sample_of(canary, retrieved, suite=suite, at=self._clock(), gold=texts)
        return await self._judged(canary, GOLD, sample, str(retrieved.failure or "no answer"))

    async def _judged(self, canary: Canary, contexts: str, sample: Sample | None, why: str) -> JudgedAnswer:
        if sample is None or not sample.answer.strip():
            return JudgedAnswer(canary.name, contexts, None, None, why)
        try:
            async with self._places, asyncio.timeout(self._timeout):
                evidence, _ = await self._judge.read(sample)
        except TimeoutError:
            return JudgedAnswer(
                canary.name, contexts, sample.answer, None, f"timeout: not read within {self._timeout:g} s"
            )
        except JudgeError as error:
            return JudgedAnswer(canary.name, contexts, sample.answer, None, f"{error.reason}: {error}")
        except Exception as error:  # noqa: BLE001 - one reading must not cost the run what the retriever found
            return JudgedAnswer(
                canary.name, contexts, sample.answer, None, f"internal: {type(error).__name__}: {error}"
            )
        scores = {str(each): score for each, score in score_all(evidence).items()}
        if sample.reference is not None:
            scores |= {str(each): score for each, score in score_by_reference(evidence).items()}
        return JudgedAnswer(canary.name, contexts, sample.answer, scores)


def _is_oracle(probe: Probe) -> TypeGuard[Oracle]:
    return hasattr(probe, "ask_with")


def means(suite: str, answers: Sequence[JudgedAnswer]) -> dict[tuple[Gauge, tuple[str, ...]], float]:
    """Mean score over a suite's answers, by quantity and by where the contexts came from; what is unknown is absent."""
    names = {(each.contexts, name) for each in answers for name in each.scores or {}}
    found: dict[tuple[Gauge, tuple[str, ...]], float] = {}
    for contexts, name in sorted(names):
        mean = mean_of_known(each.scores.get(name) for each in answers if each.scores and each.contexts == contexts)
        if mean is not None:
            found[Gauge.CANARY_ANSWER, (suite, name, contexts)] = mean
    return found


def to_records(answers: Sequence[JudgedAnswer]) -> list[dict[str, object]]:
    """The answers as JSON values, to be kept with the run."""
    return [
        {
            "canary": each.canary,
            "contexts": each.contexts,
            "answer": each.answer,
            "scores": None if each.scores is None else dict(each.scores),
            "why": each.why,
        }
        for each in answers
    ]


def from_records(records: object) -> list[JudgedAnswer]:
    """What `to_records` wrote; nothing where a version kept other things."""
    try:
        return [JudgedAnswer(**record) for record in records]  # type: ignore[attr-defined]  # what was kept is looked at here
    except (TypeError, ValueError):
        return []
