"""For tests of judges that call: time wound by hand, a provider and a server that say what a test tells them."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from ragwatch.errors import JudgeError
from ragwatch.judges.llm.caller import Caller
from ragwatch.judges.llm.failures import CallError, CallFailure
from ragwatch.judges.llm.judge import LLMJudge
from ragwatch.judges.llm.options import CallOptions, Prices
from ragwatch.judges.llm.prompt import Prompt
from ragwatch.judges.llm.provider import Completion
from ragwatch.judges.llm.reply import ReplyError
from ragwatch.judges.llm.scheduler import CallScheduler, Clock
from ragwatch.pipeline.sampling_control import InMemoryBudget
from ragwatch.statistics.verdict import Usage
from ragwatch.telemetry import Telemetry
from support.answering import Asked, Reply, answering
from support.kit import a_judge_context

PRICES = Prices(input=1.0, output=10.0)
USAGE = Usage(100, 10)
JudgeAt = Callable[..., LLMJudge]
"""Makes judges at an address: the fixture `judge_at` of the tests of judges."""


class HandClock(Clock):
    """A clock that sleeping moves on. Who sleeps at the same time sleeps side by side."""

    def __init__(self) -> None:
        self.at = 1000.0
        self.slept: list[float] = []

    def now(self) -> float:
        """The time it shows."""
        return self.at

    async def sleep(self, seconds: float) -> None:
        """Move on by so much; others have their turn meanwhile."""
        until = self.at + seconds
        self.slept.append(seconds)
        await asyncio.sleep(0)
        self.at = max(self.at, until)


def said(text: str = "yes", stop: str = "end_turn", usage: Usage | None = USAGE, **parts: Any) -> Completion:
    """A reply of 100 tokens in and 10 out."""
    return Completion(text, usage, stop, **parts)


def failed(reason: str = "server", message: str = "HTTP 500", **parts: Any) -> CallError:
    """A call that failed, for nothing."""
    return CallError(CallFailure(reason), message, **parts)


def an_ask(user: str = "the page", max_tokens: int = 50) -> Prompt:
    """An ask whose only valid reply is `yes`."""
    return Prompt("the rubric", user, {"type": "object"}, max_tokens, _yes)


def _yes(text: str) -> object:
    if text != "yes":
        raise ReplyError("claims[0].id", "must be one that was asked about")
    return "understood"


class ScriptedProvider:
    """A provider that goes through a script, and then always says yes.

    Attributes:
        asked: What it was sent: the page and the most tokens of the reply.
    """

    model = "scripted"

    def __init__(self, *script: Any) -> None:
        self.script = list(script)
        self.asked: list[tuple[str, int]] = []
        self.closed = False

    async def call(self, ask: Prompt, *, max_tokens: int, timeout: float) -> Completion:  # noqa: ASYNC109, ARG002 - the port's
        """The next line of the script; an awaitable one is awaited."""
        self.asked.append((ask.user, max_tokens))
        await asyncio.sleep(0)
        step = self.script.pop(0) if self.script else said()
        if callable(step):
            step = await step()
        if isinstance(step, BaseException):
            raise step
        assert isinstance(step, Completion)
        return step

    async def probe(self) -> str:
        """It answers."""
        return "scripted answers"

    async def close(self) -> None:
        """It is closed."""
        self.closed = True


async def refused(reading: Awaitable[object], why: str | None = None) -> tuple[str, bool]:
    """Reason and permanence of the error that a reading ends in, whose message has `why`, a regular expression."""
    with pytest.raises(JudgeError, match=why) as caught:
        await reading
    return caught.value.reason, caught.value.permanent


def scripted_judge(provider: Any, telemetry: Telemetry | None = None, **parts: Any) -> LLMJudge:
    """A judge over a provider of the test; `parts` are those of its context, and options of the judge."""
    asked = {name: parts.pop(name) for name in ("quantities", "criteria", "redact") if name in parts}
    given = CallOptions.model_validate(
        {"model": "scripted", "base_url": "http://127.0.0.1:9", "prices": PRICES, **parts}
    )
    context = a_judge_context(telemetry, **asked)
    return LLMJudge("mine", "claude", provider, given, context, clock=HandClock(), rng=random.Random(1))


class Bench:
    """A caller over a scripted provider, with everything around it in reach."""

    def __init__(
        self,
        *script: Any,
        telemetry: Telemetry | None = None,
        prices: Prices | None = PRICES,
        concurrency: int = 4,
        timeout: float = 30.0,
        thinking: int = 0,
    ) -> None:
        self.telemetry = telemetry or Telemetry()
        self.clock = HandClock()
        self.purse = InMemoryBudget()
        self.provider = ScriptedProvider(*script)
        self.pool = CallScheduler(
            "mine", concurrency=concurrency, telemetry=self.telemetry, clock=self.clock, rng=random.Random(7)
        )
        self.caller = Caller(
            "mine",
            self.provider,
            CallOptions(model="m", base_url="http://mine", timeout_seconds=timeout, thinking_tokens=thinking),
            prices=prices,
            scheduler=self.pool,
            budget=self.purse,
            telemetry=self.telemetry,
            clock=self.clock,
        )

    def counts(self, count: str) -> dict[tuple[str, ...], float]:
        """Counts of one kind, by their labels behind judge and model."""
        return {labels[2:]: number for (kind, labels), number in self.telemetry.counts().items() if str(kind) == count}


@contextmanager
def canned(*replies: tuple[int, Mapping[str, str], Any]) -> Iterator[tuple[str, list[Any]]]:
    """A real server that gives these replies (status, headers, body) in order, the last one for ever.

    Yields its address and the bodies that it was sent.
    """
    sent: list[Any] = []
    waiting = list(replies)

    def next_reply(asked: Asked) -> Reply:
        sent.append(asked.body)
        status, headers, content = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        return status, content(asked.body) if callable(content) else content, headers

    with answering(next_reply) as (address, _):
        yield address, sent
