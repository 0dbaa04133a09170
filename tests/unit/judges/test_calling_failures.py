"""Table 3.1 of the facts, row by row, against a real server: each event has its reason, and is repeated where it helps.

`J6` of the facts: every row -> the right reason, and no score.
"""

import json
from typing import Any, NamedTuple

import pytest
from loopback.process import LoopbackProcess
from support.callers import HandClock, JudgeAt, canned, refused
from support.kit import a_sample

from ragwatch.errors import JudgeError
from ragwatch.judges.llm.failures import (
    CallFailure,
    error_of_response,
    failure_of_status,
    sanitize_message,
)
from ragwatch.judges.llm.judge import LLMJudge
from ragwatch.outgoing.client import retry_after
from ragwatch.pipeline.sampling_control import InMemoryBudget

CHAT = "/v1/chat/completions"
KINDS = ("claude", "openai")
QUICK = 1.0  # seconds that a hanging call may take: a busy server must have seen the request by then


class Row(NamedTuple):
    """One row: what happens, and what must follow.

    Attributes:
        fault: What the server does, always.
        failure: What is counted.
        reason: Why the sample is not read.
        calls: How often it is asked, the first time included.
        permanent: The sample does not go back to the queue.
        opens: The provider is left alone.
        paid: `nothing`, what was `used`, or the `worst` case.
        only: The kind that has this row; both where empty.
    """

    fault: Any
    failure: str
    reason: str
    calls: int
    permanent: bool = False
    opens: bool = False
    paid: str = "nothing"
    only: str = ""


ROWS = {
    "429 with a time": Row("rate_limited", "rate_limited", "rate_limited", 4),
    "429 without a time": Row("rate_limited_silently", "rate_limited", "rate_limited", 4),
    "429 that grows too fast": Row("ramp_limit", "rate_limited", "rate_limited", 4),
    "429 spend limit": Row("spend_limit", "budget_provider", "over_budget", 1, opens=True),
    "429 contract spend limit": Row("contract_spend_limit", "budget_provider", "over_budget", 1, opens=True),
    "400 own spend limit": Row("own_spend_limit", "budget_provider", "over_budget", 1, opens=True),
    "400 workspace spend limit": Row("workspace_spend_limit", "budget_provider", "over_budget", 1, opens=True),
    "402 billing": Row("billing", "budget_provider", "over_budget", 1, opens=True),
    "529 overloaded": Row("overloaded", "overloaded", "unavailable", 4),
    "500": Row("server_error", "server", "unavailable", 4),
    "503": Row("unavailable", "server", "unavailable", 4),
    "504": Row("gateway_timeout", "server", "unavailable", 4, paid="worst"),
    "408": Row("request_timeout", "server", "unavailable", 4, paid="worst"),
    "409": Row("conflict", "server", "unavailable", 4),
    "x-should-retry: false": Row({"kind": "overloaded", "should_retry": False}, "overloaded", "unavailable", 1),
    "x-should-retry: true": Row(
        {"kind": "bad_request", "should_retry": True}, "rejected", "rejected", 4, permanent=True
    ),
    "401": Row("bad_key", "misconfigured", "misconfigured", 1, opens=True),
    "403": Row("forbidden", "misconfigured", "misconfigured", 1, opens=True),
    "404": Row("retired_model", "misconfigured", "misconfigured", 1, opens=True),
    "413": Row("too_large", "rejected", "rejected", 1, permanent=True),
    "400": Row("bad_request", "rejected", "rejected", 1, permanent=True),
    "no answer in time": Row("hang", "timeout", "timeout", 4, paid="worst"),
    "connection reset": Row("reset", "unreachable", "unavailable", 4, paid="worst"),
    "connection cut in the reply": Row("cut_off", "unreachable", "unavailable", 4, paid="worst"),
    "200 with a page of a proxy": Row("html", "protocol", "protocol", 4, paid="worst"),
    "200 with JSON that was cut": Row("truncated_json", "protocol", "protocol", 4, paid="worst"),
    "max_tokens": Row("max_tokens", "truncated", "truncated", 2, permanent=True, paid="used"),
    "context window": Row("context_window", "truncated", "truncated", 1, permanent=True, paid="used", only="claude"),
    "refusal": Row("refusal", "refusal", "refused", 1, permanent=True, paid="used"),
    "unknown stop reason": Row("unknown_stop", "invalid_output", "unreadable", 2, permanent=True, paid="used"),
    "another schema": Row("wrong_schema", "invalid_output", "unreadable", 2, permanent=True, paid="used"),
    "missing cells": Row("missing_cells", "invalid_output", "unreadable", 2, permanent=True, paid="used"),
    "ids twice": Row("duplicated_ids", "invalid_output", "unreadable", 2, permanent=True, paid="used"),
    "an id that was not asked about": Row("unknown_id", "invalid_output", "unreadable", 2, permanent=True, paid="used"),
    "words instead of JSON": Row("not_json", "invalid_output", "unreadable", 2, permanent=True, paid="used"),
    "an empty reply": Row("empty", "invalid_output", "unreadable", 2, permanent=True, paid="used"),
}
CASES = [
    pytest.param(kind, row, id=f"{name}, {kind}")
    for name, row in ROWS.items()
    for kind in KINDS
    if row.only in {"", kind}
]


def figures(judge: LLMJudge, count: str) -> dict[str, float]:
    """Counts of a judge by their last label."""
    return {
        labels[-1]: value
        for (kind, labels), value in judge._context.telemetry.counts().items()
        if str(kind) == count and labels[0] == "mine"
    }


@pytest.mark.costly
@pytest.mark.parametrize(("kind", "row"), CASES)
async def test_j6_every_row_has_its_reason(judge_at: JudgeAt, loopback: LoopbackProcess, kind: str, row: Row) -> None:
    """Reason, tries, the way back to the queue, the breaker and the money are those of the row; there is no score."""
    hangs = row.fault == "hang"
    judge = judge_at(loopback.address, kind, timeout_seconds=QUICK if hangs else 30.0)
    if not hangs:
        await judge.read(a_sample("warm"))  # the openai kind knows the server's dialect from now on
    made = sum(figures(judge, "judge_calls").values())
    loopback.control(row.fault)
    purse = judge._context.budget
    assert isinstance(purse, InMemoryBudget)
    before, tokens = purse.spent().usd, sum(figures(judge, "judge_tokens").values())
    assert await refused(judge.read(a_sample("struck"))) == (row.reason, row.permanent)
    assert figures(judge, "judge_call_failures") == {row.failure: row.calls}
    assert figures(judge, "judge_calls") == {judge.model: row.calls + made}
    assert sum(figures(judge, "judge_retries").values()) == row.calls - 1
    assert judge._scheduler.healthy is not row.opens
    asked = loopback.requests("/v1/messages" if kind == "claude" else CHAT)
    assert len(asked) == row.calls
    spent, used = purse.spent().usd - before, sum(figures(judge, "judge_tokens").values()) - tokens
    assert (spent > 0.0, used > 0) == {"nothing": (False, False), "used": (True, True), "worst": (True, False)}[
        row.paid
    ]
    if row.paid == "used":
        assert purse.spent().usd == pytest.approx(figures(judge, "judge_cost_dollars")[judge.model])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("reply", "failure", "reason"),
    [
        (None, "unreachable", "unavailable"),
        ((502, {"content-type": "text/html"}, b"<html>Bad gateway</html>"), "server", "unavailable"),
        *(
            pytest.param((200, {}, body), "protocol", "protocol", marks=pytest.mark.costly)
            for body in (b"[]", b"{}", b"3", {"type": "message", "content": 7}, {"choices": []})
        ),
    ],
)
async def test_j6_what_is_no_reply(judge_at: JudgeAt, kind: str, reply: Any, failure: str, reason: str) -> None:
    """Nobody listens, which costs nothing; the page of a gateway, which may have been paid behind it; other JSON."""
    with canned(reply or (200, {}, b"")) as (address, _):
        judge = judge_at(address if reply else "http://127.0.0.1:9", kind)
        assert await refused(judge.read(a_sample()), "HTTP 502" if failure == "server" else None) == (reason, False)
    assert figures(judge, "judge_call_failures") == {failure: 4}
    assert isinstance(judge._context.budget, InMemoryBudget)
    assert (judge._context.budget.spent().tokens > 0) is bool(reply)


@pytest.mark.parametrize(
    "usage",
    [None, {}, {"input_tokens": True}, *({"input_tokens": odd, "output_tokens": 1} for odd in (-1, 2**63 - 2))],
)
async def test_j6_a_message_that_does_not_say_what_it_used(judge_at: JudgeAt, usage: Any) -> None:
    """Its text counts; its cost stays at the worst case, and no tokens are made up."""
    text = {"type": "text", "text": "I"}
    reply = {"type": "message", "content": [text], "stop_reason": "refusal", "usage": usage}
    with canned((200, {}, reply)) as (address, _):
        judge = judge_at(address)
        assert await refused(judge.read(a_sample())) == ("refused", True)
        assert isinstance(judge._context.budget, InMemoryBudget)
        assert judge._context.budget.spent().usd > 0.0
        assert figures(judge, "judge_tokens") == {}


async def test_j1_a_429_for_two_hours_frees_every_worker_at_once(judge_at: JudgeAt, loopback: LoopbackProcess) -> None:
    """With `retry-after: 7200`, 16 readings end at once, nobody sleeps, and we look again within the hour."""
    loopback.control({"kind": "rate_limited", "retry_after": 7200})
    judge = judge_at(loopback.address)
    clock = judge._clock
    assert isinstance(clock, HandClock)
    started = clock.now()
    for name in range(16):
        assert await refused(judge.read(a_sample(f"r{name}"))) == ("rate_limited", False)
    assert clock.now() == started
    assert clock.slept == []
    assert 60.0 < judge.ready_in() <= 3600.0
    assert len(loopback.requests()) == 1


def test_statuses_times_and_messages_of_a_provider() -> None:
    """Any other 5xx is the server's, any other 4xx the request's, and what is neither is no protocol of ours.

    Milliseconds go before seconds before a date; what is no time is none. A message that quotes the page is withheld,
    the key is starred out, and a code that is no code is dropped.
    """
    assert [failure_of_status(status, "", "", "") for status in (599, 418, 302)] == ["server", "rejected", "protocol"]
    assert failure_of_status(400, "invalid_request_error", "organization_on_hold", "") is CallFailure.MISCONFIGURED
    assert retry_after({"retry-after-ms": "250", "retry-after": "9"}, 0.0) == 0.25
    assert retry_after({"retry-after": "9"}, 0.0) == 9.0
    assert retry_after({"retry-after": "Thu, 01 Jan 1970 00:01:00 GMT"}, 10.0) == 50.0
    for text in ("soon", "-1", "inf", "", "Thu, 01 Jan 1970 00:00:01 GMT", f"Thu, 01 Jan 1970 {2**64}:00:00 GMT"):
        assert retry_after({"retry-after": text}, 10.0) is None
    page = "kqv.1| The patient was born in Lisbon on a rainy day."
    echo = {"error": {"type": "x y", "message": f"bad input: {page}", "details": {"error_code": page}}}
    told = str(error_of_response(400, {}, echo, now=0.0, page=page, key="sk-1"))
    assert told == "HTTP 400, (it quotes the sample)"
    assert sanitize_message("key sk-1 is bad\nreally", key="sk-1") == "key *** is bad really"
    assert len(sanitize_message("x" * 5_000)) == 300


async def test_a_server_that_echoes_the_page_finds_no_way_into_the_log(judge_at: JudgeAt) -> None:
    """Servers such as vLLM quote the request in their errors: neither error nor log holds text of the sample."""
    with canned((400, {}, lambda body: {"message": json.dumps(body["messages"]), "code": 400})) as (address, _):
        judge = judge_at(address, "openai")
        with pytest.raises(JudgeError) as caught:
            await judge.read(a_sample())
    assert "purr" not in str(caught.value)
    assert caught.value.permanent
