"""Prompts that are built again about a stored sample."""

from __future__ import annotations

import random

from support.callers import PRICES, HandClock, ScriptedProvider
from support.kit import a_draw, a_judge_context

from ragwatch.core.sample import Role, Sample, Turn
from ragwatch.daemon.actions import rebuilt_prompts
from ragwatch.judges.llm.calls.options import CallOptions
from ragwatch.judges.llm.judge import LLMJudge

DRAW = a_draw("a", history=(Turn(Role.USER, "I have a cat."),))


def a_judge(**options: object) -> LLMJudge:
    """A judge whose provider is never called."""
    given = CallOptions.model_validate({"model": "m", "base_url": "http://127.0.0.1:9", "prices": PRICES, **options})
    return LLMJudge(
        "mine", "claude", ScriptedProvider(), given, a_judge_context(), clock=HandClock(), rng=random.Random(1)
    )


def record(sample: Sample) -> dict[str, object]:
    """The stored form of a sample."""
    return sample.to_record()


def test_the_prompt_is_that_of_the_judge_but_for_its_ids() -> None:
    """Rubric and texts are those of a request; two samples have other ids, one sample the same each time."""
    judge = a_judge()
    built = rebuilt_prompts([judge], "mine", record(DRAW.sample))
    assert built is not None
    (prompt,) = built["prompts"]
    (sent,) = judge.start_reading(DRAW.sample, "seed").prompts()
    assert (prompt["system"], built["version"], built["error"]) == (sent.system, judge.version, None)
    lines = [line.partition("| ")[2] for line in prompt["user"].splitlines()]
    assert lines == [line.partition("| ")[2] for line in sent.user.splitlines()]
    assert "I have a cat." in prompt["user"]
    assert rebuilt_prompts([judge], "mine", record(DRAW.sample)) == built


def test_a_judge_that_asks_nobody_has_no_prompt() -> None:
    """A judge that is not configured, or that is no model, has none; one that would refuse the sample says why."""

    class Embedded:
        name = "embedded"

    assert rebuilt_prompts([a_judge()], "other", record(DRAW.sample)) is None
    assert rebuilt_prompts([Embedded()], "embedded", record(DRAW.sample)) is None  # type: ignore[list-item]
    built = rebuilt_prompts([a_judge(max_contexts=1)], "mine", record(DRAW.sample))
    assert built is not None
    assert (built["prompts"], built["error"]) == ([], "2 contexts, more than the 1 allowed")
