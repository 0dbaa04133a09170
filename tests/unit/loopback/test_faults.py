"""Every fault of the loopback server is what it is called, and strikes where the script says."""

from __future__ import annotations

import json
import random
from typing import Any

import anthropic
import httpx
import httpx2
import pytest
from loopback.asked import SAMPLE, SCHEMA, a_page, a_request, entries
from loopback.control import Control, Latency
from loopback.faults import FLAWS, KINDS, REFUSALS, STOPS, Fault, Script
from loopback.model import speak
from loopback.process import LoopbackProcess
from loopback.world import World

from ragwatch.judges.llm.prompt.quotes import folded, is_verbatim


@pytest.mark.costly
@pytest.mark.parametrize("kind", sorted(REFUSALS))
def test_every_error_arrives_as_the_sdk_knows_it(
    claude: anthropic.Anthropic,
    loopback: LoopbackProcess,
    kind: str,
) -> None:
    """Status, type, code and headers are those of the table; the next call is served."""
    loopback.control({"kind": kind, "times": 1, "should_retry": False})
    refusal = REFUSALS[kind]
    with pytest.raises(anthropic.APIStatusError) as caught:
        claude.messages.create(**a_request())
    error = caught.value
    assert (error.status_code, error.type, error.error_code) == (refusal.status, refusal.type, refusal.error_code)
    wanted = None if refusal.retry_after is None else f"{refusal.retry_after:g}"
    assert error.response.headers.get("retry-after") == wanted
    assert error.response.headers["x-should-retry"] == "false"
    assert claude.messages.create(**a_request()).stop_reason == "end_turn"
    assert loopback.record()["faults"] == {kind: 1}


def test_a_script_sets_retry_after(claude: anthropic.Anthropic, loopback: LoopbackProcess) -> None:
    """The header is what the script says: two hours, or a date."""
    loopback.control({"kind": "rate_limited", "retry_after": 7200})
    with pytest.raises(anthropic.RateLimitError) as caught:
        claude.messages.create(**a_request())
    assert float(caught.value.response.headers["retry-after"]) == 7200


@pytest.mark.parametrize("kind", sorted(STOPS))
def test_stops(claude: anthropic.Anthropic, loopback: LoopbackProcess, kind: str) -> None:
    """A reply can end otherwise than with its turn; it is billed all the same."""
    loopback.control(kind)
    message = claude.messages.create(**a_request())
    assert message.stop_reason == STOPS[kind]
    assert bool(message.content) == (kind != "refusal")
    assert message.usage.output_tokens > 0


def test_flaws_are_what_they_are_called() -> None:
    """Each spoils the reply in its own way, and none leaves it as it was."""
    good = speak(a_page(), SCHEMA).text
    found = {flaw: speak(a_page(), SCHEMA, flaw).text for flaw in FLAWS}
    assert len({good, *found.values()}) == 1 + len(FLAWS)
    claims = {flaw: json.loads(text).get("claims") for flaw, text in found.items() if flaw not in ("not_json", "empty")}
    assert claims["wrong_schema"] is None
    assert len(claims["missing_cells"]) == 1
    assert claims["duplicated_ids"][0]["id"] == claims["duplicated_ids"][1]["id"]
    assert claims["unknown_id"][-1]["id"] == "zzz.9"
    assert {row["verdict"] for row in claims["contradicted"]} == {"contradicted"}
    assert claims["waver"][0]["verdict"] != json.loads(good)["claims"][0]["verdict"]
    texts = [folded(each.text) for each in SAMPLE.contexts]
    for flaw, true in (("unquoted", False), ("fooled", True)):
        assert {row["verdict"] for row in claims[flaw]} == {"supported"}
        quotes = [cell["quote"] for row in claims[flaw] for cell in row["cells"]]
        assert quotes
        assert all(any(is_verbatim(quote, text) for text in texts) == true for quote in quotes)
    with pytest.raises(json.JSONDecodeError):
        json.loads(found["not_json"])


def test_a_proxy_page_and_half_a_body_come_with_status_200(web: httpx.Client, loopback: LoopbackProcess) -> None:
    """HTML where JSON should be, and JSON that breaks off."""
    loopback.control({"kind": "html", "times": 1}, {"kind": "truncated_json", "times": 1})
    page, half = (web.post("/v1/messages", json=a_request()) for _ in range(2))
    assert (page.status_code, half.status_code) == (200, 200)
    assert page.headers["content-type"].startswith("text/html")
    with pytest.raises(json.JSONDecodeError):
        half.json()


@pytest.mark.parametrize(("kind", "error"), [("reset", httpx.TransportError), ("cut_off", httpx.TransportError)])
def test_connections_break(web: httpx.Client, loopback: LoopbackProcess, kind: str, error: type[Exception]) -> None:
    """Before a reply, or in its middle; the call is recorded and the next one served."""
    loopback.control({"kind": kind, "times": 1})
    with pytest.raises(error):
        web.post("/v1/messages", json=a_request())
    assert web.post("/v1/messages", json=a_request()).status_code == 200
    assert [entry["fault"] for entry in loopback.requests()] == [kind, None]


def test_a_hanging_call_ends_with_its_client(claude: anthropic.Anthropic, loopback: LoopbackProcess) -> None:
    """Nothing comes until the client gives up; the server is free again and has billed the call."""
    loopback.control({"kind": "hang", "times": 1})
    with pytest.raises(anthropic.APITimeoutError):
        claude.with_options(timeout=httpx2.Timeout(20, read=0.1)).messages.create(**a_request())
    assert claude.messages.create(**a_request()).stop_reason == "end_turn"
    entries = loopback.requests()
    assert [entry["fault"] for entry in entries] == ["hang", None]


def test_a_slow_call_is_served_late(claude: anthropic.Anthropic, loopback: LoopbackProcess) -> None:
    """It takes the seconds that the script says, and is served."""
    loopback.control({"kind": "slow", "seconds": 0.2})
    assert claude.messages.create(**a_request()).stop_reason == "end_turn"
    assert loopback.requests()[0]["seconds"] >= 0.2


def test_a_script_strikes_where_it_says() -> None:
    """Path, text, times and those that go by first are heeded; a share is drawn alike from the same seed."""
    busy, page = Fault(kind="overloaded", after=1, times=2), Fault(kind="html", path="/v1/embeddings", match="tea")
    script = Script([busy, page])
    struck = [script.pick("/v1/messages", "") for _ in range(4)]
    assert [fault.kind if fault else None for fault in struck] == [None, "overloaded", "overloaded", None]
    assert script.pick("/v1/embeddings", "milk") is None
    assert script.pick("/v1/embeddings", "green tea") is not None
    faults = [Fault(kind="overloaded", share=0.3)]
    first, second, other = (Script(faults, seed) for seed in (1, 1, 2))
    draws = [[script.pick("/v1/messages", "") is not None for _ in range(1000)] for script in (first, second, other)]
    assert draws[0] == draws[1] != draws[2]
    assert 250 < sum(draws[0]) < 350


def test_unknown_faults_and_keys_are_refused(web: httpx.Client) -> None:
    """A script with a word that nobody knows is not half played."""
    scripts: list[dict[str, Any]] = [{"faults": [{"kind": "boredom"}]}, {"latencies": {}}]
    for script in scripts:
        assert web.post("/control", json=script).status_code == 400
    assert REFUSALS.keys() < KINDS


def test_latency_has_the_mean_it_says() -> None:
    """Lognormal around its mean, the same from the same seed; without a spread always the mean."""
    latency = Latency(mean=1.0, sigma=0.4)
    draws = [latency.draw(random.Random(seed)) for seed in range(4000)]
    assert sum(draws) / len(draws) == pytest.approx(1.0, abs=0.03)
    assert min(draws) > 0
    assert Latency(mean=0.5).draw(random.Random(0)) == 0.5
    again = [World(Control(latency=latency, seed=3)).wait("/v1/messages") for _ in range(2)]
    assert again[0] == again[1]


def test_a_full_bucket_answers_429_and_says_when(web: httpx.Client, loopback: LoopbackProcess) -> None:
    """Each reply tells what is left; without room a call is refused with the seconds to wait."""
    loopback.control(requests_per_minute=2)
    replies = [web.post("/v1/messages", json=a_request()) for _ in range(3)]
    assert [reply.status_code for reply in replies] == [200, 200, 429]
    left = [reply.headers["anthropic-ratelimit-requests-remaining"] for reply in replies]
    assert left == ["1", "0", "0"]
    assert 1 <= int(replies[2].headers["retry-after"]) <= 30
    assert replies[0].headers["anthropic-ratelimit-requests-reset"].endswith("Z")


def test_without_a_limit_nothing_is_refused(web: httpx.Client, loopback: LoopbackProcess) -> None:
    """The headers tell of room that never ends."""
    replies = [web.post("/v1/messages", json=a_request()) for _ in range(2)]
    assert [reply.headers["anthropic-ratelimit-requests-remaining"] for reply in replies] == ["4000", "4000"]
    assert replies[0].headers["anthropic-ratelimit-output-tokens-limit"] == "4000000"
    assert loopback.record()["faults"] == {}


def test_an_outage_comes_and_goes(claude: anthropic.Anthropic, loopback: LoopbackProcess) -> None:
    """A script can be changed under way: the record, the batches and the cache stay."""
    claude.messages.create(**a_request())
    batch = claude.messages.batches.create(requests=entries("a"))
    loopback.change("overloaded")
    with pytest.raises(anthropic.APIStatusError):
        claude.messages.create(**a_request())
    loopback.change()
    assert claude.messages.create(**a_request()).usage.cache_read_input_tokens
    assert claude.messages.batches.retrieve(batch.id).processing_status == "ended"
    assert [entry["status"] for entry in loopback.requests()] == [200, 529, 200]
