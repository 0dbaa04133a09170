"""Suites: the canaries of a configuration, built."""

from __future__ import annotations

from collections.abc import Iterable

from ragwatch import probes
from ragwatch.config import Config
from ragwatch.config.canaries import SuiteConfig, SuitePlace
from ragwatch.daemon.shared import Shared
from ragwatch.daemon.watchers import holder
from ragwatch.pipeline.canaries.answers import AnswerJudging
from ragwatch.pipeline.canaries.loop import CanaryLoop, CanarySuite
from ragwatch.ports import Judge
from ragwatch.probes.similarity import similarity


def suite_of(each: SuiteConfig, answers: AnswerJudging | None = None) -> CanarySuite:
    """A suite of canaries with its probe, and who reads the answers.

    Raises:
        ConfigError: The probe cannot be built as configured.
    """
    place = each.place
    by_text = any(not expected.id for canary in each.canaries for expected in canary.expected)
    return CanarySuite(
        place.suite,
        each.canaries,
        tuple(sorted(set(place.k))),
        probes.KINDS[each.kind].build(each.options, name=place.suite),
        similarity(place.similarity) if by_text else None,
        place.tau,
        answers,
    )


def canaries(config: Config, readers: Iterable[Judge], shared: Shared) -> CanaryLoop:
    """The canaries that a configuration describes, with who reads their answers."""
    by_name, timeout = {judge.name: judge for judge in readers}, config.settings.judging.timeout

    def answers(place: SuitePlace) -> AnswerJudging | None:
        if place.judge is None:
            return None
        return AnswerJudging(by_name[place.judge], oracle=place.oracle, clock=shared.clock, timeout_seconds=timeout)

    return CanaryLoop(
        tuple(suite_of(each, answers(each.place)) for each in config.canaries),
        store=shared.store,
        telemetry=shared.telemetry,
        holder=holder(),
        clock=shared.clock,
    )
