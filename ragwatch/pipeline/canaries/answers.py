"""Canary answers: judges the answers of the service to canaries, also those from the expected contexts (oracle runs).

With a reference answer, a judge can also measure correctness and context recall. If an answer is bad in an oracle run,
too, the generator is at fault.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from ragwatch.core.canary.answer import GOLD, RETRIEVED, JudgedAnswer, gold_texts, sample_of
from ragwatch.core.canary.definition import Canary
from ragwatch.core.canary.report import CanaryReport
from ragwatch.core.reference import score_by_reference
from ragwatch.core.sample import Sample
from ragwatch.core.scores import score_all
from ragwatch.errors import JudgeError
from ragwatch.ports import Judge, Oracle, Probe


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

    async def judge(self, suite: str, reports: Sequence[CanaryReport], probe: Probe) -> tuple[JudgedAnswer, ...]:
        """Judge the answers in these reports, and those of an oracle run."""
        reports = [report for report in reports if not report.canary.negative]
        tasks = [self._judge_retrieved(suite, report) for report in reports if report.failure is None]
        if self._oracle and isinstance(probe, Oracle):
            tasks += [self._judge_oracle(suite, report.canary, probe) for report in reports]
        return tuple(await asyncio.gather(*tasks))

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
        if sample is None:
            return JudgedAnswer(canary.name, contexts, None, None, why)
        if not sample.answer.strip():
            return JudgedAnswer(canary.name, contexts, sample.answer, None, "the answer is empty", abstained=True)
        try:
            async with self._slots, asyncio.timeout(self._timeout):
                evidence, _ = await self._judge.read(sample)
        except TimeoutError:
            why = f"timeout: not read within {self._timeout:g} s"
        except JudgeError as error:
            why = f"{error.reason}: {error}"
        except Exception as error:  # noqa: BLE001 - one failed reading must not discard what the retriever found
            why = f"internal: {type(error).__name__}: {error}"
        else:
            scores = {str(quantity): score for quantity, score in score_all(evidence).items()}
            if sample.reference is not None:
                scores |= {str(quantity): score for quantity, score in score_by_reference(evidence).items()}
            return JudgedAnswer(canary.name, contexts, sample.answer, scores, abstained=evidence.abstained)
        return JudgedAnswer(canary.name, contexts, sample.answer, None, why)
