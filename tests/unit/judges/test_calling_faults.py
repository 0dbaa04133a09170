"""Faults: what a provider says of its limits, and what our own tests of a judge add to its figures."""

from __future__ import annotations

import asyncio
import random

import pytest
from pydantic import ValidationError
from support.callers import PRICES, HandClock, ScriptedProvider, said
from support.kit import a_draw, a_judge_context
from support.patience import DEADLINE

from ragwatch.core.verdict import Judged
from ragwatch.judges import claude
from ragwatch.judges.llm.calls.limits import parse_rate_limits
from ragwatch.judges.llm.calls.options import CallOptions
from ragwatch.judges.llm.calls.scheduler import CallScheduler
from ragwatch.judges.llm.judge import LLMJudge
from ragwatch.model.quantities import Quantity
from ragwatch.pipeline.reading import DrawReader, JudgeSelfTests
from ragwatch.telemetry import EventCount, Telemetry


async def test_no_header_stops_a_judge_for_months(telemetry: Telemetry) -> None:
    """A gateway that writes the reset as an instant (seconds since the epoch): an hour later we look again."""
    clock = HandClock()
    pool = CallScheduler("mine", concurrency=4, telemetry=telemetry, clock=clock, rng=random.Random(1))
    told = {"limit": "100", "remaining": "1", "reset": "1790000000"}
    limits = parse_rate_limits(
        [(f"x-ratelimit-{what}-requests", value) for what, value in told.items()], now=1_789_999_990.0
    )
    async with pool.slot(clock.now() + 25.0) as is_trial:
        pool.record_success(limits, 100, is_trial=is_trial)
    async with pool.slot(clock.now() + 25.0):  # the pace is heard when a call begins
        pass
    clock.at += 3601.0
    async with asyncio.timeout(DEADLINE), pool.slot(clock.now() + 25.0):
        pass


async def test_known_bad_samples_are_no_injections(telemetry: Telemetry) -> None:
    """`ragwatch_judge_instruction_like_texts` is about the service's texts, not about ours."""
    judge = LLMJudge(
        "mine",
        "scripted",
        ScriptedProvider(*[said('{"address":"fully"}')] * 4),
        CallOptions(model="scripted", base_url="http://127.0.0.1", prices=PRICES),
        a_judge_context(telemetry, quantities=frozenset({Quantity.ANSWER_RELEVANCY})),
        clock=HandClock(),
    )
    reader = DrawReader(judge, timeout_seconds=5.0, telemetry=telemetry)
    verdict = await reader.read(a_draw("a"))
    assert isinstance(verdict, Judged)
    await JudgeSelfTests(known_bad=1.0).run(verdict, reader)
    assert [labels for count, labels in telemetry.counts() if count is EventCount.INSTRUCTIONS] == []


def test_an_address_holds_no_password() -> None:
    """It is shown by `check` and in errors; the key has a place of its own that is not."""
    with pytest.raises(ValidationError, match="api_key") as caught:
        claude.Options(base_url="https://user:secret@gateway.example/v1")
    assert "secret" not in str(caught.value)
