"""Builds the canary suites of a configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import time

from ragwatch import probes
from ragwatch.config import Config
from ragwatch.config.canaries import SuiteConfig, SuitePlace
from ragwatch.daemon.shared import SharedState
from ragwatch.daemon.watchers import holder
from ragwatch.pipeline.canaries import AnswerJudging, CanaryLoop, CanarySuite
from ragwatch.ports import Clock, Judge
from ragwatch.probes.similarity import similarity
from ragwatch.statistics.canary.definition import CanaryMarks


def suite_of(
    suite: SuiteConfig, secret: bytes | None = None, answers: AnswerJudging | None = None, *, clock: Clock = time
) -> CanarySuite:
    """Build a canary suite with its probe, and optionally the judging of its answers.

    Requests are marked with the secret of the state; without one they are not.

    Raises:
        ConfigError: The probe cannot be built with these options.
    """
    options, marks = suite.place, CanaryMarks(secret or b"")
    by_text = any(not expected.id for canary in suite.canaries for expected in canary.expected)
    return CanarySuite(
        options.suite,
        suite.canaries,
        tuple(sorted(set(options.k))),
        probes.KINDS[suite.kind].build(
            suite.options, name=options.suite, mark=lambda: marks.mark(options.suite, clock())
        ),
        similar=similarity(options.similarity) if by_text else None,
        tau=options.tau,
        answers=answers,
    )


def answers_of(
    config: Config, suite: SuitePlace, judge_of: Callable[[str], Judge], *, clock: Clock = time
) -> AnswerJudging | None:
    """Build the judging of a suite's answers; None if the suite has no `judge`."""
    if suite.judge is None:
        return None
    timeout = config.settings.judging.timeout
    return AnswerJudging(judge_of(suite.judge), oracle=suite.oracle, clock=clock, timeout_seconds=timeout)


def canary_loop(config: Config, judges: Iterable[Judge], shared: SharedState) -> CanaryLoop:
    """Build the loop that runs the canary suites of a configuration."""
    by_name = {judge.name: judge for judge in judges}
    return CanaryLoop(
        tuple(
            suite_of(
                suite,
                shared.secret,
                answers_of(config, suite.place, by_name.__getitem__, clock=shared.clock),
                clock=shared.clock,
            )
            for suite in config.canaries
        ),
        store=shared.store,
        telemetry=shared.telemetry,
        holder=holder(),
        clock=shared.clock,
    )
