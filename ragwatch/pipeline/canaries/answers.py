"""Canary answers: judges the answers of the service to canaries, also those from the expected contexts (oracle runs).

With a reference answer, a judge can also measure correctness and context recall. If an answer is bad in an oracle run,
too, the generator is at fault.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

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
        contexts: `retrieved`: from its own retriever. `gold`: it got the expected ones.
        answer: The answer; None where there is none, or a context has no text.
        scores: Scores by quantity, including those that need a reference; None where nothing was judged.
        why: Why nothing was judged.
    """

    canary: str
    contexts: str
    answer: str | None
    scores: Scores | None
    why: str = ""


class AnswerJudging:
    """Judges the answers of a suite.

    Args:
        judge: The judge.
        oracle: Whether to make oracle runs, with probes that support them.
        clock: Seconds since the epoch.
        timeout_seconds: A reading that takes longer is cancelled.
    """

    def __init__(
        self, judge: Judge, *, oracle: bool, clock: Callable[[], float], timeout_seconds: float = 60.0
    ) -> None:
        self._judge = judge
        self._slots = asyncio.Semaphore(judge.concurrency)  # without it, a judge in threads would block the store
        self._timeout = timeout_seconds
        self._oracle = oracle
        self._clock = clock

    async def judge(self, suite: str, reports: Sequence[CanaryReport], probe: Probe) -> list[JudgedAnswer]:
        """Judge the answers in these reports, and those of an oracle run."""
        reports = [report for report in reports if not report.canary.negative]
        tasks = [self._judge_retrieved(suite, report) for report in reports if report.failure is None]
        if self._oracle and isinstance(probe, Oracle):
            tasks += [self._judge_oracle(suite, report.canary, probe) for report in reports]
        return list(await asyncio.gather(*tasks))

    async def _judge_retrieved(self, suite: str, report: CanaryReport) -> JudgedAnswer:
        sample = sample_of(report.canary, report.retrieved, suite=suite, at=report.at)
        return await self._judged(report.canary, RETRIEVED, sample, "no answer, or a context without its text")

    async def _judge_oracle(self, suite: str, canary: Canary, probe: Oracle) -> JudgedAnswer:
        texts = gold_texts(canary)
        if texts is None:
            return JudgedAnswer(canary.name, GOLD, None, None, "an expected context has an id and no text")
        retrieved = await probe.ask_with(canary.query, texts)
        sample = sample_of(canary, retrieved, suite=suite, at=self._clock(), gold=texts)
        return await self._judged(canary, GOLD, sample, str(retrieved.failure or "no answer"))

    async def _judged(self, canary: Canary, contexts: str, sample: Sample | None, why: str) -> JudgedAnswer:
        if sample is None or not sample.answer.strip():
            return JudgedAnswer(canary.name, contexts, None, None, why)
        try:
            async with self._slots, asyncio.timeout(self._timeout):
                evidence, _ = await self._judge.read(sample)
        except TimeoutError:
            return JudgedAnswer(
                canary.name, contexts, sample.answer, None, f"timeout: not read within {self._timeout:g} s"
            )
        except JudgeError as error:
            return JudgedAnswer(canary.name, contexts, sample.answer, None, f"{error.reason}: {error}")
        except Exception as error:  # noqa: BLE001 - one failed reading must not discard what the retriever found
            return JudgedAnswer(
                canary.name, contexts, sample.answer, None, f"internal: {type(error).__name__}: {error}"
            )
        scores = {str(quantity): score for quantity, score in score_all(evidence).items()}
        if sample.reference is not None:
            scores |= {str(quantity): score for quantity, score in score_by_reference(evidence).items()}
        return JudgedAnswer(canary.name, contexts, sample.answer, scores)


def means(suite: str, answers: Sequence[JudgedAnswer]) -> dict[tuple[Gauge, tuple[str, ...]], float]:
    """Mean score over the answers of a suite, by quantity and by origin of the contexts; unknown means are absent."""
    names = {(answer.contexts, name) for answer in answers for name in answer.scores or {}}
    gauges: dict[tuple[Gauge, tuple[str, ...]], float] = {}
    for contexts, name in sorted(names):
        scores = (answer.scores.get(name) for answer in answers if answer.scores and answer.contexts == contexts)
        mean = mean_of_known(scores)
        if mean is not None:
            gauges[Gauge.CANARY_ANSWER, (suite, name, contexts)] = mean
    return gauges


def to_records(answers: Sequence[JudgedAnswer]) -> list[dict[str, object]]:
    """The answers as JSON values, to be stored with the run."""
    return [
        {
            "canary": answer.canary,
            "contexts": answer.contexts,
            "answer": answer.answer,
            "scores": None if answer.scores is None else dict(answer.scores),
            "why": answer.why,
        }
        for answer in answers
    ]


def from_records(records: object) -> list[JudgedAnswer]:
    """The answers that `to_records` returned; none where the records are of another version."""
    try:
        return [JudgedAnswer(**record) for record in records]  # type: ignore[attr-defined]  # stored values are checked here
    except (TypeError, ValueError):
        return []
