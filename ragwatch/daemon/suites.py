"""Builds the canary suites of a configuration."""

from __future__ import annotations

from collections.abc import Iterable

from ragwatch import probes
from ragwatch.config import Config
from ragwatch.config.canaries import SuiteConfig, SuitePlace
from ragwatch.daemon.shared import SharedState
from ragwatch.daemon.watchers import holder
from ragwatch.pipeline.canaries.answers import AnswerJudging
from ragwatch.pipeline.canaries.loop import CanaryLoop, CanarySuite
from ragwatch.ports import Judge
from ragwatch.probes.similarity import similarity


def suite_of(suite: SuiteConfig, answers: AnswerJudging | None = None) -> CanarySuite:
    """Build a canary suite with its probe, and optionally the judging of its answers.

    Raises:
        ConfigError: The probe cannot be built with these options.
    """
    options = suite.place
    by_text = any(not expected.id for canary in suite.canaries for expected in canary.expected)
    return CanarySuite(
        options.suite,
        suite.canaries,
        tuple(sorted(set(options.k))),
        probes.KINDS[suite.kind].build(suite.options, name=options.suite),
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
        tuple(suite_of(suite, answer_judging(suite.place)) for suite in config.canaries),
        store=shared.store,
        telemetry=shared.telemetry,
        holder=holder(),
        clock=shared.clock,
    )
