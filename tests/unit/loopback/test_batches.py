"""The loopback server speaks Message Batches."""

from __future__ import annotations

import anthropic
import httpx
import pytest
from loopback.asked import entries, words_of
from loopback.process import LoopbackProcess


@pytest.mark.costly
def test_a_batch_ends_after_the_looks_it_was_given(claude: anthropic.Anthropic, loopback: LoopbackProcess) -> None:
    """In progress until then, with all entries processing; then every entry has its result, and is billed once."""
    loopback.control(batch={"polls": 2})
    batch = claude.messages.batches.create(requests=entries("a", "b", "c"))
    assert (batch.processing_status, batch.request_counts.processing) == ("in_progress", 3)
    assert claude.messages.batches.retrieve(batch.id).results_url is None
    ended = claude.messages.batches.retrieve(batch.id)
    assert (ended.processing_status, ended.request_counts.succeeded) == ("ended", 3)
    results = {each.custom_id: each.result for each in claude.messages.batches.results(batch.id)}
    assert set(results) == {"a", "b", "c"}
    for result in results.values():
        assert result.type == "succeeded"
        assert result.message.usage.service_tier == "batch"
        assert words_of(result.message)["address"]
    spent = loopback.record()["batch_usage"]
    list(claude.messages.batches.results(batch.id))
    claude.messages.batches.retrieve(batch.id)
    assert loopback.record()["batch_usage"] == spent
    assert loopback.record()["usage"] == {}


def test_entries_fail_one_by_one(claude: anthropic.Anthropic, loopback: LoopbackProcess) -> None:
    """An entry can expire, be errored by the script or by its own parameters, or stop early, beside good ones."""
    entry = {"path": "/v1/messages/batches/entry"}
    loopback.control(
        {"kind": "expired", "match": '"late"', **entry},
        {"kind": "overloaded", "match": '"busy"', **entry},
        {"kind": "refusal", "match": '"rude"', **entry},
    )
    wanted = [*entries("late", "busy", "rude", "good"), *entries("warm", temperature=0.5)]
    batch = claude.messages.batches.create(requests=wanted)
    claude.messages.batches.retrieve(batch.id)
    results = {each.custom_id: each.result for each in claude.messages.batches.results(batch.id)}
    types = {name: result.type for name, result in results.items()}
    assert types == {
        "late": "expired",
        "busy": "errored",
        "rude": "succeeded",
        "good": "succeeded",
        "warm": "errored",
    }
    assert results["busy"].type == "errored"
    assert results["busy"].error.error.type == "overloaded_error"
    assert results["rude"].type == "succeeded"
    assert results["rude"].message.stop_reason == "refusal"


def test_a_canceled_batch_processes_nothing(claude: anthropic.Anthropic, loopback: LoopbackProcess) -> None:
    """It is canceling, then ended, and nothing was billed."""
    loopback.control(batch={"polls": 5})
    batch = claude.messages.batches.create(requests=entries("a"))
    assert claude.messages.batches.cancel(batch.id).processing_status == "canceling"
    assert claude.messages.batches.retrieve(batch.id).processing_status == "ended"
    assert [each.result.type for each in claude.messages.batches.results(batch.id)] == ["canceled"]
    assert loopback.record()["batch_usage"] == {}


def test_batches_are_listed_newest_first_page_by_page(claude: anthropic.Anthropic) -> None:
    """The client's own paging finds them all."""
    made = [claude.messages.batches.create(requests=entries("a")).id for _ in range(3)]
    assert [batch.id for batch in claude.messages.batches.list(limit=2)] == made[::-1]


def test_batches_that_are_refused(claude: anthropic.Anthropic, web: httpx.Client) -> None:
    """Empty ones, bad and repeated names; unknown ones are not found, nor results of one that goes on."""
    for requests in ([], entries("a b"), entries("a", "a")):
        assert web.post("/v1/messages/batches", json={"requests": requests}).status_code == 400
    assert web.get("/v1/messages/batches/msgbatch_9/results").status_code == 404
    assert web.post("/v1/messages/batches/msgbatch_9/cancel").status_code == 404
    with pytest.raises(anthropic.NotFoundError):
        claude.messages.batches.retrieve("msgbatch_9")
    batch = claude.messages.batches.create(requests=entries("a"))
    assert web.get(f"/v1/messages/batches/{batch.id}/results").status_code == 404
