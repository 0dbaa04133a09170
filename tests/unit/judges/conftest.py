"""The loopback server, and judges that ask a model there or at another address."""

import random
from collections.abc import AsyncIterator
from typing import Any

import pytest
from loopback.fixture import KEY, loopback, loopback_process  # noqa: F401 - fixtures
from support.callers import HandClock, JudgeAt
from support.kit import a_judge_context

from ragwatch.judges import claude, openai
from ragwatch.judges.llm.judge import LLMJudge


@pytest.fixture
async def judge_at() -> AsyncIterator[JudgeAt]:
    """Makes judges at an address, with time wound by hand; they are closed at the end."""
    made: list[LLMJudge] = []

    def make(address: str, kind: str = "claude", **options: Any) -> LLMJudge:
        module: Any = {"claude": claude, "openai": openai}[kind]
        given: dict[str, Any] = {"base_url": address, "api_key": KEY}
        if kind == "openai":
            given |= {"base_url": f"{address}/v1", "model": "loopback", "prices": {"input": 1, "output": 2}}
        asked = {name: options.pop(name) for name in ("telemetry", "quantities") if name in options}
        context = options.pop("context", None) or a_judge_context(**asked)
        chosen = module.Options.model_validate(given | options)
        made.append(module.build(chosen, name="mine", context=context, clock=HandClock(), rng=random.Random(2)))
        return made[-1]

    yield make
    for judge in made:
        await judge.close()
