"""Builds the canary suites of a configuration."""

from __future__ import annotations

from collections.abc import Iterable
from time import time

from ragwatch import probes
from ragwatch.config import Config
from ragwatch.config.canaries import SuiteConfig, SuitePlace
from ragwatch.core.canary.mark import CanaryMarks
from ragwatch.daemon.shared import Clock, SharedState
from ragwatch.daemon.watchers import holder
from ragwatch.pipeline.canaries.answers import AnswerJudging
from ragwatch.pipeline.canaries.loop import CanaryLoop, CanarySuite
from ragwatch.ports import Judge
from ragwatch.probes.similarity import similarity


def suite_of(
    suite: SuiteConfig, secret: bytes | None = None, answers: AnswerJudging | None = None, *, clock: Clock = time
) -> CanarySuite:
    """Build a canary suite with its probe, and optionally the judging of its answers.

    Args:
        suite: The configuration.
        secret: Secret of the state, with which requests are marked; None for an unmarked run.
        answers: Judges answers.
        clock: Seconds since the epoch.

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


def canary_loop(config: Config, judges: Iterable[Judge], shared: SharedState) -> CanaryLoop:
    """Build the loop that runs the canary suites of a configuration."""
    by_name, timeout = {judge.name: judge for judge in judges}, config.settings.judging.timeout

    def answer_judging(options: SuitePlace) -> AnswerJudging | None:
        if options.judge is None:
            return None
        return AnswerJudging(by_name[options.judge], oracle=options.oracle, clock=shared.clock, timeout_seconds=timeout)

    return CanaryLoop(
        tuple(
            suite_of(suite, shared.secret, answer_judging(suite.place), clock=shared.clock) for suite in config.canaries
        ),
        store=shared.store,
        telemetry=shared.telemetry,
        holder=holder(),
        clock=shared.clock,
    )
